#!/usr/bin/env bash
# Checks a model with SPIN.
#
#   check.sh MODEL CASES                  each line of CASES: pass|fail, then switches; # begins a comment
#   check.sh MODEL pass|fail SWITCH...    one case
#
# A result depends on nothing but the model, its cases and this script. So NAME.checked, next to NAME.pml, has a digest of
# the three that were checked last, and the cases are checked again only if it differs, or with GANNET_MODELS=all. If all
# ended as they must, the script writes the new digest there: commit it with the model.
#
# Exit code 0: every case ended as it must. "fail" means that an assertion is violated; a run that is not complete
# (memory, depth) is neither. A case that must fail ends within seconds, so its checker is compiled without optimisation,
# which would take longer than the check.
set -euo pipefail

script=$(realpath "${BASH_SOURCE[0]}")
model=$(realpath "$1")
shift
cases=$(realpath -m "$1")
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"

# check <pass|fail> <switch>...
check() {
  local must=$1 found verdict optimise=-O1
  [[ $must == pass ]] || optimise=-O0
  shift
  spin -a "$@" "$model" >spin.log 2>&1 || { cat spin.log; return 1; }
  "${CC:-cc}" "$optimise" -w -DSAFETY -DCOLLAPSE -DVECTORSZ=2048 -DMEMLIM=4000 -o pan pan.c
  ./pan -m400000 -n -w22 >pan.log 2>&1 || true
  if grep -qE '^pan:[0-9]+: (assertion violated|invalid end state)' pan.log; then
    found=fail
  elif grep -q 'errors: 0' pan.log && ! grep -qE 'Search not completed|max search depth too small|out of memory' pan.log; then
    found=pass
  else
    cat pan.log
    found=incomplete
  fi
  verdict=ok
  [[ $found == "$must" ]] || verdict="WRONG, it must $must"
  printf '%-10s %s: %s (%s states)\n' "$found" "$*" "$verdict" \
    "$(awk '/states, stored/ { printf "%d", $1 }' pan.log)"
  [[ $verdict == ok ]]
}

if [[ $1 == pass || $1 == fail ]]; then
  check "$@"
  exit
fi
checked=${model%.pml}.checked
digest=$(cat "$model" "$cases" "$script" | sha256sum | cut -d ' ' -f 1)
if [[ ${GANNET_MODELS:-changed} != all ]] && grep -qsx "$digest" "$checked"; then
  echo "the model and its cases are as they were when all were checked"
  exit 0
fi
failed=0
count=0
while read -r -a words; do
  [[ ${#words[@]} -gt 0 && ${words[0]} != \#* ]] || continue
  count=$((count + 1))
  check "${words[@]}" || failed=$((failed + 1))
done <"$cases"
echo "$count cases, $failed not as they must be"
[[ $failed -eq 0 && $count -gt 0 ]] || exit 1
echo "$digest" >"$checked"
