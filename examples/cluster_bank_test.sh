#!/usr/bin/env bash
# usage: cluster_bank_test.sh <program> <cluster file>
# Two servers, two clients at the same time, then a server that is killed while a client runs.
set -euo pipefail
program=$1 example=$2
scratch=$(mktemp -d)
trap 'jobs -p | xargs -r kill -9 2>/dev/null || true; rm -rf "$scratch"' EXIT
file=$scratch/cluster.toml
sed 's,^memory_file = .*,memory_file = "memory",' "$example" >"$file"

servers=()
for id in 0 1; do
  "$program" "$file" serve "$id" >"$scratch/server$id" 2>&1 &
  servers+=($!)
done

echo "== two clients"
"$program" "$file" run 500 >"$scratch/client" &
client=$!
"$program" "$file" run 500 | tee "$scratch/other"
wait "$client"
cat "$scratch/client"
grep -q '1000 accounts hold 100000 cents' "$scratch/client"
grep -q '1000 accounts hold 100000 cents' "$scratch/other"
grep -q ready "$scratch/server0"

echo "== a mistake in the file"
sed 's,^cents,sents,' "$file" >"$scratch/wrong.toml"
if "$program" "$scratch/wrong.toml" run 1 2>"$scratch/error"; then exit 1; fi
grep 'wrong.toml:8: \[bank\] cents: is missing' "$scratch/error"

echo "== another file than the servers have"
sed 's,^cents.*,cents = 7,' "$file" >"$scratch/other.toml"
if "$program" "$scratch/other.toml" run 1 2>"$scratch/error"; then exit 1; fi
grep 'give all processes of a cluster the same' "$scratch/error"

echo "== a server dies"
"$program" "$file" run 1000000000 >"$scratch/running" 2>"$scratch/error" &
client=$!
until grep -qs 'client in slot' "$scratch/running"; do
  kill -0 "$client" || { cat "$scratch/error"; exit 1; }
  sleep 0.02
done
kill -9 "${servers[1]}"
if wait "$client"; then exit 1; fi
grep 'server 1 (node 1) of .* is gone' "$scratch/error"

echo "== the other leaves"
kill -TERM "${servers[0]}"
wait "${servers[0]}"
[[ ! -e $scratch/memory ]]
