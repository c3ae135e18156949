#!/bin/busybox sh
# The first process of the machine that bed.sh starts: makes the RDMA device, then runs the command on the host's files.
b=/bin/busybox
$b mount -t proc proc /proc
$b mount -t sysfs sysfs /sys
$b mount -t devtmpfs devtmpfs /dev
while read -r module; do
  $b insmod /bin/"$module" || echo "init: cannot load $module"
done </load-order

$b mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=loose,ro host /host
$b mount -t 9p -o trans=virtio,version=9p2000.L results /results
$b mkdir /changes
$b mount -t tmpfs tmpfs /changes
$b mkdir /changes/upper /changes/work
$b mount -t overlay -o lowerdir=/host,upperdir=/changes/upper,workdir=/changes/work overlay /root
for directory in proc sys dev; do $b mount --move /$directory /root/$directory; done
$b mkdir -p /root/dev/shm /root/dev/pts
$b mount -t tmpfs tmpfs /root/dev/shm
$b mount -t devpts devpts /root/dev/pts
$b mount -t tmpfs tmpfs /root/run

$b cat >/root/run/start <<'SCRIPT'
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb
ulimit -l unlimited
ulimit -c 0
ip link set lo up
ip address add 10.77.0.1/24 dev dummy0
ip address add fd77::1/64 dev dummy0 nodad
ip link set dummy0 up
rdma link add rxe0 type rxe netdev dummy0 || exit 125
. /run/command
SCRIPT
$b cp /results/command /root/run/command
$b stty -F /root/dev/ttyS1 raw  # keeps the command's line endings
$b chroot /root /bin/bash /run/start >/root/dev/ttyS1 2>&1
echo $? >/results/exit-code
$b sync
$b poweroff -f
