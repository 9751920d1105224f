#!/bin/busybox sh
# The guest's only process of its own: runs the job that comes in on the drive with the serial number "job". What the job
# prints goes out by virtio-serial, line by line; what goes wrong, by the console.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
/bin/busybox --install -s /bin
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
while read -r module; do insmod "/modules/$module" || echo "module $module cannot be loaded"; done </modules/order
until out=$(ls -d /dev/vport*p1 2>/dev/null); do sleep 0.1; done
until [ -e /sys/block/vda/serial ]; do sleep 0.1; done
# Drives by the serial numbers that qemu gives them.
mkdir -p /drives
for drive in /sys/block/vd*; do ln -s "/dev/$(basename "$drive")" "/drives/$(cat "$drive/serial")"; done
cd /tmp
tar xf /drives/job
sh ./job.sh >"$out" 2>/dev/console
echo "ended $?" >"$out"
sync
poweroff -f
