#!/usr/bin/env bash
# usage: exports_test.sh <libgannet.so> <gannet.h>
# The library exports the functions that the header declares, and nothing else.
set -euo pipefail
exported=$(nm --dynamic --defined-only --format=posix "$1" | awk '$2 != "A" { sub(/@.*/, "", $1); print $1 }' | sort -u)
declared=$(grep -oP '^GANNET_(API|CHECKED)\b.*?\K\bgannet_\w+(?=\()' "$2" | sort -u)
diff <(echo "$declared") <(echo "$exported") >&2 || {
  echo "the header's functions (<) are not the library's symbols (>)" >&2
  exit 1
}
echo "$(wc -l <<<"$declared") functions, and nothing else"
