#!/usr/bin/env bash
# usage: install_test.sh <build directory> <consumer project> <its source> <C++ compiler>
set -euo pipefail
build=$1 consumer=$2 source=$3 compiler=$4
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

cmake --install "$build" --prefix "$scratch/prefix" >/dev/null
"$scratch/prefix/bin/gannet" --version
# Moving the tree must not break it.
mv "$scratch/prefix" "$scratch/moved"
prefix=$scratch/moved
# Away from the source tree, so that no header is found there.
cp "$source" "$scratch/consumer.cc"

echo "== find_package"
cmake -S "$consumer" -B "$scratch/build" -G Ninja -DSOURCE="$scratch/consumer.cc" -DCMAKE_CXX_COMPILER="$compiler" \
  -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
cmake --build "$scratch/build"
"$scratch/build/consumer"

echo "== pkg-config"
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name gannet.pc)")
export PKG_CONFIG_PATH
read -ra cflags <<<"$(pkg-config --cflags gannet)"
read -ra libs <<<"$(pkg-config --libs gannet)"
"$compiler" "${cflags[@]}" "$scratch/consumer.cc" "${libs[@]}" -o "$scratch/consumer"
"$scratch/consumer"
