#!/bin/sh
# check.sh SOURCE COMPILER [FLAGS]: the compiler's errors about SOURCE are exactly those that its lines name.
set -eu
source=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if "$@" -fsyntax-only "$source" 2>"$work/errors"; then
  echo "$source compiles"
  exit 1
fi
sed -n 's|.*// mistake: ||p' "$source" | LC_ALL=C sort >"$work/expected"
# GCC says `error: static assertion failed: TEXT`, clang also names the requirement before the text.
grep ' error: ' "$work/errors" |
  sed -e 's/.*static assertion failed[^:]*: //' -e 's/.*static_assert failed.*"\(.*\)".*/\1/' |
  LC_ALL=C sort >"$work/messages"
exec 3<"$work/messages"
while read -r beginning; do
  read -r message <&3 || message="no error"
  case $message in
    "$beginning"*) ;;
    *)
      echo "expected: $beginning; got: $message"
      cat "$work/errors"
      exit 1
      ;;
  esac
done <"$work/expected"
if read -r message <&3; then
  echo "one error too many: $message"
  exit 1
fi
