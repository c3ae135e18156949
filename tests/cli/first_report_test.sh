#!/usr/bin/env bash
# usage: first_report_test.sh <build directory> <number>
# A new user's first report waits until the program gannet is compiled: it must not need more than that many objects.
set -euo pipefail
build=$1 most=$2
needed=$(ninja -C "$build" -t inputs cli/gannet | grep '\.o$')
objects=$(wc -l <<<"$needed")
echo "gannet needs $objects objects, of at most $most"
(( objects <= most )) || {
  sed 's,/.*,,' <<<"$needed" | sort | uniq -c
  echo "put what TPC-C does not need into another program (lab/), or make fewer and larger sources"
  exit 1
}
