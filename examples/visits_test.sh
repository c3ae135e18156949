#!/usr/bin/env bash
# usage: visits_test.sh <visits>
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$1" "$scratch/visits" anna ben anna >"$scratch/first"
diff - "$scratch/first" <<<$'anna 2\nben 1'
"$1" "$scratch/visits" ben >"$scratch/second"
diff - "$scratch/second" <<<$'anna 2\nben 2'
if "$1" "$scratch/visits" "$(printf 'n%.0s' {1..65})" 2>"$scratch/error"; then exit 1; fi
grep -q "visits" "$scratch/error"
