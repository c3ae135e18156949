#!/usr/bin/env bash
# usage: abi_test.sh [--keep] <libgannet.so> <gannet.h> <kept.abi>
# The binary interface of the library is the one that kept.abi describes: programs that were compiled before still run.
# After an addition --keep writes kept.abi again. A change that is no addition needs another major number of the library.
set -euo pipefail
keep=false
if [[ $1 == --keep ]]; then keep=true; shift; fi
library=$1 header=$2 kept=$3
command -v abidw >/dev/null || { echo "abi_test: install abigail-tools" >&2; exit 1; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/headers"
cp "$header" "$scratch/headers"
# Only what the header declares; no paths and lines, so that the file is the same on every machine.
abidw --exported-interfaces-only --drop-private-types --headers-dir "$scratch/headers" --no-corpus-path \
  --no-comp-dir-path --no-show-locs --no-elf-needed "$library" >"$scratch/new.abi"
[[ $(grep -c '<function-decl' "$scratch/new.abi") -gt 50 && $(grep -c '<data-member' "$scratch/new.abi") -ge 8 ]] || {
  echo "abi_test: the library has no debugging information of its interface" >&2
  exit 1
}
if $keep; then cp "$scratch/new.abi" "$kept"; fi
if ! abidiff "$kept" "$scratch/new.abi" >&2; then
  echo "abi_test: the binary interface has changed. If functions were only added: abi_test.sh --keep ..." >&2
  exit 1
fi
echo "the binary interface is the kept one"
