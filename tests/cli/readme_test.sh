#!/usr/bin/env bash
# usage: readme_test.sh <source directory> <build directory>
# Checks the ```sh blocks of README.md and docs/commands.md: each `./dev` command must exist, each program must have been built,
# and each `gannet` command line must work (with a shorter run). README.md must stay short.
set -euo pipefail
source=$1 build=$2
lines=$(wc -l <"$source/README.md")
(( lines <= 150 )) || { echo "README.md has $lines lines, more than 150: move what is not needed first to a page of docs/"; exit 1; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

commands=$(awk '/^```sh$/ { on = 1; next } /^```/ { on = 0 } on' "$source/README.md" "$source/docs/commands.md" |
  sed 's/ *#.*//' | sed '/^$/d')
dev_help=$("$source/dev" help)
checked=0
while IFS= read -r command; do
  echo "== $command"
  read -ra words <<<"$command"
  case ${words[0]} in
    ./dev)
      grep -qE "^  ${words[1]}( |$)" <<<"$dev_help" || { echo "./dev has no command ${words[1]}"; exit 1; }
      if [[ ${words[1]} == tpcc ]]; then
        "$build/cli/gannet" tpcc run "${words[@]:2}" --duration 200ms --warmup 0s >/dev/null
      fi
      ;;
    build/release/cli/gannet)
      if [[ " $command " == *" run "* ]]; then words+=(--duration 200ms --warmup 0s); fi
      if [[ " $command " == *" ycsb "*" --duration 1s "* ]]; then read -ra words <<<"${command/--duration 1s/--duration 200ms}"; fi
      if [[ " $command " == *" sim --seeds 100 "* ]]; then words[-1]=10; fi
      if [[ " $command " == *" reproduce xstore "* ]]; then words+=(--keys 2K --clients 2x2 --scale 0.05); fi
      if [[ " $command " == *" reproduce catfish "* ]]; then words+=(--keys 5K --clients 2x2 --only fig11 --scale 0.02); fi
      if [[ " $command " == *" reproduce rolex "* ]]; then words+=(--keys 2K --clients 2x2 --only fig7 --scale 0.05); fi
      if [[ " $command " == *" reproduce paths "* ]]; then words+=(--only load-step --scale 0.02); fi
      if [[ " $command " == *" reproduce kinds "* ]]; then words+=(--keys 1K --clients 2x2 --only read --scale 0.05); fi
      "$build/cli/gannet" "${words[@]:1}" >/dev/null
      ;;
    build/release/*)
      [[ -x $build/${words[0]#build/release/} ]] || { echo "${words[0]} is not a program"; exit 1; }
      ;;
    printf) # into a command of the program
      bash -o pipefail -c "${command//build\/release\/cli\/gannet/$build/cli/gannet}" >/dev/null
      ;;
    git | cd | sudo | cmake | ctest) ;;
    *) echo "the test does not know what to do with: $command"; exit 1 ;;
  esac
  checked=$((checked + 1))
done <<<"$commands"
echo "$checked commands"
(( checked >= 20 ))
