#!/usr/bin/env bash
# usage: install_test.sh <build directory> <consumer project> <examples> <C++ compiler> <docs/embedding.md>
set -euo pipefail
build=$1 consumer=$2 examples=$3 compiler=$4 page=$5
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

cmake --install "$build" --prefix "$scratch/prefix" >/dev/null
"$scratch/prefix/bin/gannet" --version
# Moving the tree must not break it.
mv "$scratch/prefix" "$scratch/moved"
prefix=$scratch/moved
# Outside of the source tree, so that no header is found there.
mkdir "$scratch/sources"
cp "$examples"/{hello_transaction.cc,cluster_bank.cc,visits.c} "$scratch/sources"

# needed FILE: how many shared libraries it names.
needed() { readelf -d "$1" | grep -c '(NEEDED)'; }
# at_most MEGABYTES PATH...: what is installed, and what is made of it, does not grow by debug information.
at_most() {
  local most=$1 megabytes
  shift
  megabytes=$(du -cm --apparent-size "$@" | tail -1 | cut -f 1)
  echo "${*##*/}: $megabytes MB"
  (( megabytes <= most )) || { echo "$* has $megabytes MB, more than $most"; exit 1; }
}
# few_libraries FILE: it is a program with Abseil in itself: it needs at most Gannet's six libraries and the compiler's five.
few_libraries() {
  local count
  count=$(needed "$1")
  (( count <= 11 )) || { echo "${1##*/} needs $count shared libraries:"; readelf -d "$1" | grep '(NEEDED)'; exit 1; }
}

echo "== what is installed"
at_most 60 "$prefix"
at_most 20 "$prefix/bin/gannet"
headers=$(find "$prefix/include" -name '*.h' | wc -l)
(( headers <= 42 )) || { echo "$headers headers are installed, more than 42: gannet/gannet.h includes too many"; exit 1; }
"$(dirname "$0")/links_test.sh" "$(dirname "$(find "$prefix" -name README.md)")"
echo "== find_package"
cmake -S "$consumer" -B "$scratch/build" -G Ninja -DSOURCES="$scratch/sources" -DCMAKE_CXX_COMPILER="$compiler" \
  -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
cmake --build "$scratch/build"
"$scratch/build/consumer"
few_libraries "$scratch/build/consumer"
# A shared library cannot have Abseil's archives, but must link.
readelf -d "$scratch/build/libplugin.so" | grep -q 'NEEDED.*libabsl_' || { echo "libplugin.so does not need Abseil"; exit 1; }
"$examples/visits_test.sh" "$scratch/build/visits"
"$examples/cluster_bank_test.sh" "$scratch/build/cluster_bank" "$examples/cluster_bank.toml"

echo "== find_package, with Abseil's shared libraries"
cmake -S "$consumer" -B "$scratch/shared" -G Ninja -DSOURCES="$scratch/sources" -DCMAKE_CXX_COMPILER="$compiler" \
  -DCMAKE_PREFIX_PATH="$prefix" -DGANNET_SHARED_ABSEIL=ON >/dev/null
cmake --build "$scratch/shared" --target consumer
"$scratch/shared/consumer"
readelf -d "$scratch/shared/consumer" | grep -q 'NEEDED.*libabsl_' || { echo "GANNET_SHARED_ABSEIL does nothing"; exit 1; }

echo "== docs/embedding.md"
# block LANGUAGE: the first block of this language.
block() {
  awk -v begin="\`\`\`$1" '$0 == begin && !done { on = 1; next } on && /^```/ { done = 1; on = 0 } on' "$page"
}
mkdir "$scratch/page"
block cpp >"$scratch/page/my_program.cc"
block cmake >"$scratch/page/CMakeLists.txt"
cmake -S "$scratch/page" -B "$scratch/page/build" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" \
  -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
cmake --build "$scratch/page/build"
said=$("$scratch/page/build/my_program")
few_libraries "$scratch/page/build/my_program"
at_most 12 "$scratch/page/build/my_program"
[[ -n $said ]] || { echo "the program of docs/embedding.md says nothing"; exit 1; }
# Headers of the standard library that cost compile time, and that txn/database.h does not need.
included=$("$compiler" -std=c++20 -I"$prefix/include/gannet" -M "$scratch/page/my_program.cc" | tr -s ' \\' '\n')
headers=$(grep -c "^$prefix/include/gannet/" <<<"$included" || true)
(( headers > 0 && headers <= 26 )) || { echo "txn/database.h includes $headers headers, not 1 to 26"; exit 1; }
for header in condition_variable deque iomanip locale regex shared_mutex thread; do
  if grep -q "/include/c++/[0-9.]*/$header\$" <<<"$included"; then
    echo "the program of docs/embedding.md includes <$header>"
    exit 1
  fi
done
grep -qF "The program prints \`$said\`" "$page" || { echo "docs/embedding.md does not say that it prints '$said'"; exit 1; }

echo "== completions and the man pages"
for file in bash-completion/completions/gannet{,-lab} zsh/site-functions/_gannet{,-lab} \
  man/man1/{gannet,gannet-get,gannet-tpcc-run,gannet-lab,gannet-lab-sim}.1; do
  [[ -s $prefix/share/$file ]] || { echo "share/$file is not installed"; exit 1; }
done
for program in gannet gannet-lab; do
  bash -n "$prefix/share/bash-completion/completions/$program"
  if command -v zsh >/dev/null; then zsh -f -n "$prefix/share/zsh/site-functions/_$program"; fi
done
"$prefix/bin/gannet" sim --seed 1 --until 1ms >/dev/null

echo "== pkg-config"
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name gannet.pc)")
export PKG_CONFIG_PATH
read -ra cflags <<<"$(pkg-config --cflags gannet)"
read -ra libs <<<"$(pkg-config --libs gannet)"
"$compiler" "${cflags[@]}" "$scratch/sources/cluster_bank.cc" "${libs[@]}" -o "$scratch/cluster_bank"
"$examples/cluster_bank_test.sh" "$scratch/cluster_bank" "$examples/cluster_bank.toml"
# With all warnings and without optimisation: the flags are all that the headers need.
said=$("$compiler" -O0 -Wall -Wextra "${cflags[@]}" "$scratch/sources/hello_transaction.cc" "${libs[@]}" -o "$scratch/hello" 2>&1)
[[ -z $said ]] || { echo "hello_transaction.cc does not compile quietly: $said"; exit 1; }
"$scratch/hello"
few_libraries "$scratch/hello"
"$compiler" "${cflags[@]}" -fsyntax-only -include gannet/gannet.h -x c++ /dev/null
read -ra libs <<<"$(pkg-config --define-variable=abseil="$(pkg-config --variable=shared_abseil gannet)" --libs gannet)"
"$compiler" "${cflags[@]}" -shared -fPIC "$scratch/sources/hello_transaction.cc" "${libs[@]}" -o "$scratch/libplugin.so"

echo "== pkg-config, C"
read -ra cflags <<<"$(pkg-config --cflags libgannet)"
read -ra libs <<<"$(pkg-config --libs libgannet)"
cc "${cflags[@]}" "$scratch/sources/visits.c" "${libs[@]}" -o "$scratch/visits"
LD_LIBRARY_PATH=$(pkg-config --variable=libdir libgannet) "$examples/visits_test.sh" "$scratch/visits"
