#!/usr/bin/env bash
# Measures the table of figures of README.md on this machine and prints it as Markdown, each line with its command.
# `./dev report` builds the program and calls this. The machine should be idle otherwise.
#   usage: bench/report.sh PROGRAM [SECONDS [RUNS]]
# SECONDS (5) is the measured time of a run of TPC-C or YCSB; a figure is the median of RUNS (3) runs.
set -euo pipefail

program=${1:?usage: bench/report.sh PROGRAM [SECONDS [RUNS]]}
seconds=${2:-5}
runs=${3:-3}
if ! [[ $seconds =~ ^[1-9][0-9]*$ && $runs =~ ^[1-9][0-9]*$ ]]; then
  echo "report: seconds ('$seconds') and runs ('$runs') must be whole numbers from 1 on" >&2
  exit 2
fi
[[ -x $program ]] || { echo "report: '$program' is not a program" >&2; exit 2; }

# On a disk, if there is one, because a file system in memory says nothing about durability.
work=$(mktemp -d "${TMPDIR:-/var/tmp}/gannet-report.XXXXXX")
trap 'rm -rf "$work"' EXIT

# The first number of this name in a JSON report; empty if there is none.
field() {
  sed -n "/\"$1\": [-0-9]/{s/.*: \([-0-9.e+]*\).*/\1/p;q;}" "$2"
}

# 1234567 -> 1,234,567
with_commas() {
  printf '%.0f\n' "$1" | sed -e ':next' -e 's/^\([0-9]*[0-9]\)\([0-9]\{3\}\)/\1,\2/' -e 't next'
}

# run ARGUMENT...: runs the program. Its output goes to $work/output, and is shown if it fails.
run() {
  echo "gannet $*" >&2
  if ! "$program" "$@" >"$work/output" 2>"$work/errors"; then
    cat "$work/output" "$work/errors" >&2
    echo "report: failed: gannet $*" >&2
    exit 1
  fi
}

# row WHAT MEDIAN RUNS CALIBRATION ARGUMENTS
row() {
  # shellcheck disable=SC2016
  printf '| %s | %s | %s | %s | `gannet %s` |\n' "$@"
}

# rate WHAT UNIT FIELD ARGUMENT...: a row with the median of the runs' FIELD. DIR among the arguments is a new directory.
rate() {
  local what=$1 unit=$2 name=$3 values=() calibrations=() i calibration shown range memory='-'
  shift 3
  for (( i = 0; i < runs; ++i )); do
    rm -rf "$work/data"
    run "${@/#DIR/$work/data}" --json "$work/report.json"
    if grep -q '"holds": false' "$work/report.json"; then
      echo "report: a consistency condition does not hold: gannet $*" >&2
      exit 1
    fi
    values+=("$(field "$name" "$work/report.json")")
    [[ -n ${values[i]} ]] || { echo "report: no '$name' in the report of gannet $*" >&2; exit 1; }
    for calibration in dependent_read_ns_before_run dependent_read_ns_after_run; do
      calibrations+=("$(field "$calibration" "$work/report.json")")
    done
  done
  mapfile -t values < <(printf '%s\n' "${values[@]}" | sort -g)
  mapfile -t calibrations < <(printf '%s\n' "${calibrations[@]}" | sed '/^$/d' | sort -g)
  shown=$(with_commas "${values[runs / 2]}")
  range=-
  if (( runs > 1 )); then range="$(with_commas "${values[0]}") to $(with_commas "${values[-1]}")"; fi
  if (( ${#calibrations[@]} )); then
    memory=$(printf '%.0f to %.0f ns' "${calibrations[0]}" "${calibrations[-1]}")
  fi
  row "$what" "$shown $unit" "$range" "$memory" "$*"
}

# count WHAT PATTERN ARGUMENT...: a row with the line that the sed script PATTERN prints for the output.
count() {
  local what=$1 pattern=$2 shown
  shift 2
  run "$@"
  shown=$(sed -n "$pattern" "$work/output")
  [[ -n $shown ]] || { echo "report: nothing to report from gannet $*" >&2; exit 1; }
  row "$what" "$shown" - - "$*"
}

machine() {
  local cpu memory system
  cpu=$(sed -n '/^model name/{s/^[^:]*: //p;q;}' /proc/cpuinfo)
  memory=$(awk '$1 == "MemTotal:" { printf "%.0f GiB", $2 / 1048576 }' /proc/meminfo)
  # shellcheck source=/dev/null
  system=$(. /etc/os-release && echo "$PRETTY_NAME")
  echo "$(nproc) CPUs (${cpu:-unknown}), $memory, $system, $(date -u +%Y-%m-%d); load average before the first run" \
    "$(cut -d ' ' -f 1 /proc/loadavg). $runs run(s) of $seconds s for each line: the median, the lowest and the highest" \
    "run, and the time of a dependent 64-byte read around the runs (calibration)."
}

tpcc=(tpcc run --duration "${seconds}s")
ycsb=(ycsb --workload c --keys 1M --duration "${seconds}s")
rack=(ycsb --workload c --distribution uniform --keys 1M --fabric sim --clients 15x24 --nic 2x-cx4-100g
  --warmup 150us --duration 300us)

machine
echo
echo '| what | median | runs | calibration | command |'
echo '|---|--:|--:|--:|---|'
rate 'TPC-C, 1 thread, 1 warehouse' 'transactions/s' transactions_per_second "${tpcc[@]}" --warehouses 1 --threads 1
rate 'TPC-C, 2 threads, 2 warehouses' 'transactions/s' transactions_per_second "${tpcc[@]}" --warehouses 2 --threads 2
rate 'the same on two nodes' 'transactions/s' transactions_per_second \
  "${tpcc[@]}" --warehouses 2 --threads 2 --nodes 2
rate 'the same on one node, every commit durable' 'transactions/s' transactions_per_second \
  "${tpcc[@]}" --warehouses 2 --threads 2 --dir DIR --create
rate 'YCSB C, XStore, one-sided' 'GETs/s' operations_per_second "${ycsb[@]}" --index xstore
rate 'YCSB C, hash, one-sided' 'GETs/s' operations_per_second "${ycsb[@]}" --index hash
runs=1  # of the simulation: every run gives the same
rate 'YCSB C on a simulated rack, XStore, one-sided' 'GETs/s' operations_per_second "${rack[@]}"
rate 'the same by calls' 'GETs/s' operations_per_second "${rack[@]}" --path rpc
count 'simulated clusters with faults, judged' 's/^\([0-9,]*\) seeds from .*: \([0-9]* failed\),.*/\1 seeds, \2/p' sim --seeds 200 --until 2ms
count 'crash tests' 's/^operations: .* begun, \([0-9,]*\) acknowledged.*/\1 operations acknowledged, none lost/p' crashtest --cycles 50
