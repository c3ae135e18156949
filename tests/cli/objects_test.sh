#!/usr/bin/env bash
# usage: objects_test.sh <build directory> <target> <number>
# The target must not need more than that many objects. A new user's first report waits until the program gannet is
# compiled, and the tests until all is.
set -euo pipefail
build=$1 target=$2 most=$3
needed=$(ninja -C "$build" -t inputs "$target" | grep '\.o$' | sort -u)
objects=$(wc -l <<<"$needed")
echo "$target needs $objects objects, of at most $most"
(( objects <= most )) || {
  sed 's,/.*,,' <<<"$needed" | sort | uniq -c
  echo "put what TPC-C does not need into another program than gannet (lab/), or make fewer and larger sources"
  exit 1
}
