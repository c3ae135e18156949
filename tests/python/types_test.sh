#!/usr/bin/env bash
# usage: types_test.sh <python> <directory of the built package> <source directory> <cache directory>
# The package, the examples and tests/python/typed.py are right to mypy --strict, and the stubs have what the module has.
set -euo pipefail
python=$1 package=$2 source=$3 cache=$4
"$python" -m mypy --version >/dev/null || { echo "types_test: install mypy" >&2; exit 1; }
cd "$package"  # mypy then takes the package from here, and no other one that is installed
"$python" -m mypy --strict --ignore-missing-imports --cache-dir "$cache" gannet "$source"/examples/*.py "$source/tests/python/typed.py"
# Not what pybind11 makes of every class: its own metaclass, and an __init__ that refuses.
PYTHONPATH=$package "$python" -B -m mypy.stubtest --allowlist <(echo 'gannet\._gannet\.[A-Z]\w+(\.__init__)?') gannet._gannet
