#!/usr/bin/env bash
# usage: durable_counter_test.sh <program>
# Kills the program while it counts, and starts it again: it must continue from at least the last number that it printed.
set -euo pipefail
program=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

"$program" "$scratch/data" 100000000 >"$scratch/out" &
victim=$!
until grep -q '^reached 20$' "$scratch/out"; do
  kill -0 "$victim" || { echo "it ended by itself"; exit 1; }
  sleep 0.05
done
kill -9 "$victim"
wait "$victim" || true

# The kill may have cut the last line.
last=$(grep -aE '^reached [0-9]+$' "$scratch/out" | tail -n 2 | head -n 1 | cut -d' ' -f2)
"$program" "$scratch/data" 5 >"$scratch/again"
found=$(sed -n 's/^found //p' "$scratch/again")
reached=$(sed -n 's/^reached //p' "$scratch/again" | tail -n 1)
echo "killed after $last, found $found, reached $reached"
(( found >= last && last >= 19 && reached == found + 5 ))
