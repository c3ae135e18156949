#!/usr/bin/env bash
# Real verbs without a NIC: runs a command in a small virtual machine whose kernel has a software RDMA device (SoftRoCE,
# rdma_rxe). The command sees the files of this machine (its own writes are lost), the network 10.77.0.1/24 (and
# fd77::1/64) with the device rxe0 on it, and nothing else.
#
#   bed.sh [--cache DIR] [--limit SECONDS] [--memory MEGABYTES] -- COMMAND [ARGUMENT...]
#   bed.sh [--cache DIR] --prepare                 only downloads the kernel and makes the initramfs
#
# This script prints the command's output and returns its exit code; or 125 if the machine did not start or did not end
# in time (then it prints the machine's console). The variables GTEST_* and GANNET_* are passed on.
#
# How it works: Debian's kernel package is unpacked, not installed, into the cache (default: build/softroce). qemu emulates the
# CPU in software, so this needs neither KVM nor root. The host's root directory is shared read-only by 9p; an overlay of
# a tmpfs makes it writable for the guest.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=$here/../../build/softroce
limit=600
memory=4096
prepare_only=false

die() {
  echo "softroce: $*" >&2
  exit 125
}

while (( $# )); do
  case $1 in
    --cache) cache=$2; shift 2 ;;
    --limit) limit=$2; shift 2 ;;
    --memory) memory=$2; shift 2 ;;
    --prepare) prepare_only=true; shift ;;
    --) shift; break ;;
    *) die "unknown option $1" ;;
  esac
done
$prepare_only || (( $# )) || die "no command; see the head of ${BASH_SOURCE[0]}"

for tool in qemu-system-x86_64 busybox cpio depmod modprobe apt-get dpkg; do
  PATH=$PATH:/usr/sbin:/sbin command -v "$tool" >/dev/null ||
    die "$tool is missing. Install the packages of the step softroce in cmake/debian-packages.txt:" \
        "apt-get install qemu-system-x86 busybox-static cpio kmod iproute2"
done
export PATH=$PATH:/usr/sbin:/sbin

mkdir -p "$cache"
cache=$(cd "$cache" && pwd)

# Modules that the guest loads, in this order; modprobe finds their dependencies. rxe cannot register without
# crc32_generic.
modules=(virtio_pci 9pnet_virtio 9p overlay dummy crc32_generic ib_uverbs rdma_rxe rdma_cm rdma_ucm)

unpack_kernel() {
  local package unpacked=$cache/unpacked.$$ version directory
  # linux-image-amd64 itself is empty: it names the newest kernel.
  package=$(apt-cache depends linux-image-amd64 | awk '$1 == "Depends:" && $2 ~ /^linux-image-/ { print $2; exit }')
  [[ -n $package ]] || die "apt knows no linux-image-amd64; run apt-get update"
  mkdir "$unpacked"
  # A package index that is older than the archive's last update may name a package that has been removed.
  (cd "$unpacked" && { apt-get -q download "$package" || { apt-get -q update && apt-get -q download "$package"; }; }) \
    >"$cache/download.log" 2>&1 || { cat "$cache/download.log" >&2; die "cannot download $package"; }
  dpkg -x "$unpacked"/linux-image-*.deb "$unpacked"
  version=$(basename "$unpacked"/lib/modules/*)
  depmod -b "$unpacked" "$version"

  # The initramfs: busybox, the modules, and init.
  directory=$unpacked/initramfs
  mkdir -p "$directory"/{bin,proc,sys,dev,host,root,results}
  cp "$(command -v busybox)" "$directory/bin/busybox"
  cp "$here/init.sh" "$directory/init"
  chmod +x "$directory/init"
  local module path
  for module in "${modules[@]}"; do
    modprobe -d "$unpacked" -S "$version" --show-depends "$module" | awk '$1 == "insmod" { print $2 }'
  done | awk '!seen[$0]++' >"$unpacked/load-order"
  while IFS= read -r path; do
    cp "$path" "$directory/bin/"
    basename "$path"
  done <"$unpacked/load-order" >"$directory/load-order"
  (cd "$directory" && find . | cpio --quiet -o -H newc | gzip -1) >"$unpacked/initramfs.gz"

  # Renamed in one step, so that another run finds them complete.
  mv "$unpacked"/boot/vmlinuz-* "$unpacked/vmlinuz"
  mkdir "$unpacked/bed"
  mv "$unpacked/vmlinuz" "$unpacked/initramfs.gz" "$unpacked/bed/"
  rm -rf "$cache/bed"
  mv "$unpacked/bed" "$cache/bed"
  cp "$here/init.sh" "$cache/bed/init.sh"
  rm -rf "$unpacked"
}

(
  flock 9
  if ! cmp -s "$here/init.sh" "$cache/bed/init.sh"; then unpack_kernel; fi
) 9>"$cache/lock"
if $prepare_only; then exit 0; fi

results=$(mktemp -d "${TMPDIR:-/tmp}/softroce.XXXXXX")
trap 'rm -rf "$results"' EXIT
{
  printf 'cd %q\n' "$PWD"
  while IFS= read -r name; do printf 'export %s=%q\n' "$name" "${!name}"; done < <(compgen -e | grep -E '^(GTEST|GANNET)_')
  printf '%q ' "$@"
  echo
} >"$results/command"

# On a busy host the emulated timer may be late when the kernel checks it at boot (no_timer_check) and later (nowatchdog);
# rcu_expedited: otherwise destroying a queue pair waits for some ticks.
kernel_options="console=ttyS0 quiet panic=-1 mitigations=off no_timer_check nowatchdog rcupdate.rcu_expedited=1"

# The kernel copies with `rep movsb` if the CPU claims to be fast at it. qemu emulates that byte by byte, so not even a
# word would be written atomically. Without erms and fsrm it copies words, like the fast microcode of real CPUs.
timeout --kill-after=5 "$limit" qemu-system-x86_64 -accel tcg,thread=multi -cpu max,-erms,-fsrm -m "$memory" -smp 2 \
  -nodefaults -display none -no-reboot \
  -kernel "$cache/bed/vmlinuz" -initrd "$cache/bed/initramfs.gz" -append "$kernel_options" \
  -chardev "file,id=console,path=$results/console" -serial chardev:console -serial stdio \
  -fsdev local,id=host,path=/,security_model=none,readonly=on,multidevs=remap \
  -device virtio-9p-pci,fsdev=host,mount_tag=host \
  -fsdev "local,id=results,path=$results,security_model=none" -device virtio-9p-pci,fsdev=results,mount_tag=results \
  </dev/null || echo "softroce: qemu ended with code $? (124: not within $limit s)" >&2

if [[ ! -s $results/exit-code ]]; then
  echo "softroce: the machine did not run the command to its end. Its console:" >&2
  tail -n 100 "$results/console" >&2 || true
  exit 125
fi
exit "$(<"$results/exit-code")"
