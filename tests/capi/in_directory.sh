#!/usr/bin/env bash
# usage: in_directory.sh <program>: runs it with a fresh directory as its argument, which it removes afterwards.
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$1" "$scratch"
