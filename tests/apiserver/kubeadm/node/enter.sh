#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# enter.sh DIR NAME: makes the namespaces that it runs in a node, whose first process it
# becomes. Its root is that of the host; over it lies DIR/nodes/NAME/tree, which is mounted
# already and keeps what it writes. DIR/nodes/NAME/disk keeps what no overlay can keep.
set -eu
lab=$1 dir=$1/nodes/$2 name=$2
mount --make-rprivate /
root=$dir/root
mkdir -p "$root"
mount -t overlay -o "lowerdir=/,upperdir=$dir/tree/upper,workdir=$dir/tree/work" node "$root"
cd "$root"
mkdir -p proc sys dev run tmp var/lib/containerd var/lib/etcd var/lib/kubelet var/log/pods etc/kubernetes .old
mkdir -p usr/local/kubernetes
mount --bind "$lab/kubernetes" usr/local/kubernetes
mount -t proc proc proc
mount -t sysfs sys sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 dev dev
for file in null zero full random urandom tty kmsg; do
	: >"dev/$file"
	mount --bind "/dev/$file" "dev/$file"
done
mkdir dev/pts dev/shm dev/mqueue
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
mount -t tmpfs shm dev/shm
mount -t tmpfs -o mode=755 run run
mount -t tmpfs -o mode=1777 tmp tmp
mount -t tmpfs -o mode=700 home root
cp -a "$lab/common/root/." root/
for place in containerd etcd kubelet; do
	mkdir -p "$dir/disk/$place"
	mount --bind "$dir/disk/$place" "var/lib/$place"
done
# What the kubelet sets in the kernel, it sets in files here.
mkdir -p "$dir/tree/settings"
for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
	kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
	path=proc/sys/${setting%=*} file=$dir/tree/settings/$(echo "${setting%=*}" | tr / _)
	echo "${setting#*=}" >"$file"
	mount --bind "$file" "$path"
done
# It boots at other times than the host.
cat proc/sys/kernel/random/uuid >"$dir/tree/boot_id"
mount --bind "$dir/tree/boot_id" proc/sys/kernel/random/boot_id
hostname "$name"
ip link set lo up
echo 1 >proc/sys/net/ipv4/ip_forward
pivot_root . .old
umount -l /.old
mount --make-rshared /
exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root /opt/lab/first.py \
	>/var/log/first.log 2>&1
