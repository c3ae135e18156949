#!/usr/bin/env bash
# usage: word_counts_test.sh <word_counts>
set -euo pipefail
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
diff <(echo "gannet gull gannet tern" | "$1" "$directory/words" g) <(printf 'gannet 2\ngull 1\n')
diff <(echo "gull" | "$1" "$directory/words" "") <(printf 'gannet 2\ngull 2\ntern 1\n')
# A key that is too long is an error that names the table and says what to do.
if head -c 100 /dev/zero | tr '\0' x | "$1" "$directory/words" g 2>"$directory/error"; then exit 1; fi
grep -q "table 'counts'" "$directory/error"
