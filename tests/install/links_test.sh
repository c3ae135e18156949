#!/usr/bin/env bash
# usage: links_test.sh <directory> [<link>...]: what README.md in the directory links is there, but for these links.
set -euo pipefail
directory=$1
shift
missing=0
while IFS= read -r link; do
  for allowed in "$@"; do [[ $link != "$allowed" ]] || continue 2; done
  [[ -e $directory/$link ]] || { echo "README.md links $link, which is not in $directory"; missing=1; }
done < <(grep -o '\](\([^)#]*\.[a-z]*\|LICENSE\)[)#]' "$directory/README.md" | sed 's/^](//; s/[)#]$//' | grep -v '^http' | sort -u)
exit "$missing"
