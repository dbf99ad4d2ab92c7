#!/bin/sh
# Become the systemd of the Debian below a folder, in namespaces of its own (unshare --cgroup --mount --pid --net --ipc --uts --fork):
# boot.sh ROOT. It sees no device and no setting of this machine other than those that it needs.
set -eu
root=$1
mount --make-rprivate /
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
for part in dev fs kernel vm; do
	mount --bind "$root/proc/sys/$part" "$root/proc/sys/$part"
	mount -o remount,bind,ro "$root/proc/sys/$part"
done
mount -t sysfs -o ro sys "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs dev "$root/dev"
mkdir "$root/dev/net" "$root/dev/pts" "$root/dev/shm" "$root/dev/mqueue"
for file in full null random tty urandom zero net/tun; do
	touch "$root/dev/$file"
	mount --bind "/dev/$file" "$root/dev/$file"
done
mount -t devpts -o newinstance,ptmxmode=0666 pts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
for folder in dev/shm run tmp; do mount -t tmpfs tmpfs "$root/$folder"; done
ip link set lo up
cd "$root"
mkdir -p old
pivot_root . old
umount -l /old
rmdir /old
exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --unit=multi-user.target </dev/null >/dev/null 2>&1
