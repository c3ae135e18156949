#!/usr/bin/env bash
# usage: wheel_test.sh <build directory> <source directory>
# README's line makes a wheel of the Python package and installs it, without a network; pip install . does, too. Both
# take the module from the build directory.
set -euo pipefail
build=$1 source=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
line=$(sed -n 's/^ *\(\.\/dev wheel .*\)$/\1/p' "$source/README.md")
[[ $(wc -l <<<"$line") == 1 && $line == *"pip install"* ]] || {
  echo "README.md has no line that installs the wheel"
  exit 1
}
# The line runs in a directory that has what it uses of the source tree: so `env` is made here.
ln -s "$source/examples" examples
ln -s "$source/build" build
printf '#!/bin/sh\nexec "%s/dev" "$@"\n' "$source" >dev
chmod +x dev

export GANNET_BUILD=$build
# No network, and no settings of this machine.
unset PIP_FIND_LINKS PYTHONPATH
export PIP_CONFIG_FILE=/dev/null PIP_INDEX_URL=http://127.0.0.1:9/ PIP_RETRIES=0 http_proxy=http://127.0.0.1:9 \
  https_proxy=http://127.0.0.1:9
# Debian's Python is the first one, as on a fresh machine.
PATH=/usr/bin:$PATH bash -euc "$line"
works() { [[ $(env/bin/python3 examples/cities.py) == *"northernmost is Helsinki"* ]]; }
works
# Not that of a build directory.
[[ $(env/bin/python3 -c 'import gannet; print(gannet.__file__)') == "$scratch"/env/* ]]

env/bin/pip install --quiet --force-reinstall "$source"
works
[[ $(env/bin/python3 -c 'from importlib.metadata import version; print(version("gannet"))') == [0-9]* ]]

if GANNET_BUILD=$scratch env/bin/python3 -B "$source/python/build_backend.py" wheel 2>said; then
  echo "a directory is no build"
  exit 1
fi
grep -q 'is no build for' said || { cat said; exit 1; }
