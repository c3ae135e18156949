#!/usr/bin/env bash
# Builds the Debian packages in build/package and checks them with lintian. `./dev package` installs what is needed and
# calls this.
#   usage: debian/package.sh JOBS
set -euo pipefail

jobs=${1:?usage: debian/package.sh JOBS}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
output=$root/build/package
source=$output/source

die() {
  echo "package: $*" >&2
  exit 1
}

version=$(sed -n 's/^project(gannet VERSION \([0-9.]*\).*/\1/p' "$root/CMakeLists.txt")
soversion=$(sed -n 's/^set(GANNET_API_MAJOR \([0-9]*\))$/\1/p' "$root/capi/CMakeLists.txt")
[[ -n $version ]] || die "no version in CMakeLists.txt"
[[ -n $soversion ]] || die "no GANNET_API_MAJOR in capi/CMakeLists.txt"
changelog=$(dpkg-parsechangelog -l "$root/debian/changelog" -S Version)
[[ $changelog == "$version" ]] ||
  die "debian/changelog is of version $changelog, CMakeLists.txt of $version; add an entry to debian/changelog"

# A copy of what git knows and of what it does not ignore; always at the same place, for a compiler cache.
rm -rf "$source"
mkdir -p "$source"
rm -f "$output"/*.{deb,changes,buildinfo}
git -C "$root" ls-files -z --cached --others --exclude-standard |
  (cd "$root" && while IFS= read -r -d '' file; do if [[ -e $file ]]; then printf '%s\0' "$file"; fi; done) |
  tar -C "$root" --null --files-from=- -cf - | tar -C "$source" -xf -

# The package of the library is named after its SONAME.
sed "s/@SOVERSION@/$soversion/" "$source/debian/control.in" >"$source/debian/control"
mv "$source/debian/libgannet.install.in" "$source/debian/libgannet$soversion.install"

# A compiler cache, if there is one. debhelper gives the build another home directory, so the cache is named.
if command -v ccache >/dev/null && [[ -d /usr/lib/ccache ]]; then
  export PATH=/usr/lib/ccache:$PATH CCACHE_DIR DEB_CXXFLAGS_APPEND=-fpch-preprocess
  CCACHE_DIR=$(ccache --get-config cache_dir)
  export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
fi

(cd "$source" && dpkg-buildpackage --build=binary --no-sign --no-pre-clean --jobs="$jobs")
echo "== lintian"
lintian --fail-on error,warning "$output"/*.changes
echo "== build/package"
(cd "$output" && ls -l -- *.deb)
