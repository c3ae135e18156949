#!/usr/bin/env bash
# usage: install_test.sh <build directory> <consumer project> <C++ compiler>
set -euo pipefail
build=$1 consumer=$2 compiler=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

cmake --install "$build" --prefix "$scratch/prefix" >/dev/null
"$scratch/prefix/bin/gannet" --version
# Moving the tree must not break it.
mv "$scratch/prefix" "$scratch/moved"
prefix=$scratch/moved

echo "== find_package"
cmake -S "$consumer" -B "$scratch/build" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
cmake --build "$scratch/build" >/dev/null
"$scratch/build/consumer"

echo "== pkg-config"
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name gannet.pc)")
export PKG_CONFIG_PATH
read -ra cflags <<<"$(pkg-config --cflags gannet)"
read -ra libs <<<"$(pkg-config --libs gannet)"
"$compiler" "${cflags[@]}" "$consumer/consumer.cc" "${libs[@]}" -o "$scratch/consumer"
"$scratch/consumer"
