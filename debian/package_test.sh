#!/usr/bin/env bash
# Unpacks the packages of build/package into a temporary directory, and uses them from there as their users would. Nothing
# is installed on this machine. `./dev package --test` builds the packages and calls this.
set -euo pipefail

project=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
packages=$project/build/package
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
root=$scratch/root

die() {
  echo "package_test: $*" >&2
  exit 1
}

debs=("$packages"/*.deb)
[[ -e ${debs[0]} ]] || die "no packages in $packages; run ./dev package"
for deb in "${debs[@]}"; do
  [[ $deb == *-dbgsym_* ]] || dpkg-deb --extract "$deb" "$root"
done
library=$(dirname "$(find "$root" -name libgannet.so)")

echo "== what the packages need can be installed"
installable=()
for deb in "${debs[@]}"; do [[ $deb == *-dbgsym_* ]] || installable+=("$deb"); done
apt-get install --simulate -o Debug::NoLocking=1 "${installable[@]}" >"$scratch/simulation" ||
  { cat "$scratch/simulation" >&2; die "apt-get cannot install the packages"; }
for name in gannet gannet-lab libgannet-dev python3-gannet; do
  grep -q "^Inst $name " "$scratch/simulation" || die "apt-get would not install $name"
done

echo "== the library's package is named after its SONAME"
soname=$(objdump -p "$library"/libgannet.so | awk '$1 == "SONAME" { print $2 }')
ls "$packages"/libgannet"${soname##*.so.}"_*.deb >/dev/null || die "no package is named after $soname"

echo "== the -dev package needs all that its pkg-config files name"
export PKG_CONFIG_PATH=$library/pkgconfig
depends=$(dpkg-deb --field "$packages"/libgannet-dev_*.deb Depends)
for module in $(pkg-config --print-requires --print-requires-private gannet); do
  owner=$(dpkg-query --search "$(pkg-config --variable=pcfiledir "$module")/$module.pc" | cut -d : -f 1)
  [[ ", $depends," == *", $owner,"* || $depends == *"$owner ("* ]] || die "libgannet-dev does not depend on $owner, which has $module.pc"
done

echo "== gannet"
"$root/usr/bin/gannet" --version
"$project/tests/install/links_test.sh" "$root/usr/share/doc/gannet" LICENSE
zcat "$root/usr/share/man/man1/gannet.1.gz" | grep -q '^\.TH' || die "gannet.1 is no man page"
[[ -e $root/usr/share/man/man1/gannet-get.1.gz ]] || die "gannet get has no man page"
bash -n "$root/usr/share/bash-completion/completions/gannet"
"$root/usr/bin/gannet" sim --seed 1 | tail -1
[[ -e $root/usr/share/man/man1/gannet-lab-sim.1.gz ]] || die "gannet-lab sim has no man page"
"$root/usr/bin/gannet" tpcc run --warehouses 1 --threads 1 --warmup 100ms --duration 1s | tail -20

echo "== a program in C, by pkg-config"
mkdir "$scratch/sources"
cp "$project"/examples/{visits.c,hello_transaction.cc,cluster_bank.cc} "$scratch/sources"
read -ra flags <<<"$(pkg-config --cflags --libs libgannet)"
cc -std=c99 -Wall -Werror "$scratch/sources/visits.c" "${flags[@]}" -o "$scratch/visits"
LD_LIBRARY_PATH=$library "$project/examples/visits_test.sh" "$scratch/visits"

echo "== a program in C++, by CMake"
cmake -S "$project/tests/install/consumer" -B "$scratch/build" -G Ninja -DSOURCES="$scratch/sources" \
  -DCMAKE_PREFIX_PATH="$root/usr" >/dev/null
cmake --build "$scratch/build"
needed=$(readelf -d "$scratch/build/consumer" | grep -c '(NEEDED)')
(( needed <= 10 )) || die "hello_transaction needs $needed shared libraries"
[[ $("$scratch/build/consumer") == *"7500 and 2500 cents"* ]] || die "hello_transaction prints something else"

echo "== Python"
PYTHONPATH=$root/usr/lib/python3/dist-packages /usr/bin/python3 -B "$project/examples/cities.py" |
  grep -F "northernmost is Helsinki"
[[ -e $root/usr/lib/python3/dist-packages/gannet/_gannet.pyi ]] || die "the stubs are missing"
echo "all packages work"
