#!/bin/sh
# Makes the guest: kernel ($1/vmlinuz) and initial file system ($1/initrd), which is all that it has. No udev and no
# systemd are in it, so nothing assembles drives but the job. $2 is the mirror, $3 the suite.
set -eu
directory=$1 mirror=$2 suite=$3
root=$directory/root
init=$(dirname "$0")/init.sh
rm -rf --one-file-system "$root" "$directory/tree"
debootstrap --variant=minbase \
    --include=busybox-static,fio,bcache-tools,dmsetup,mdadm,kmod,linux-image-cloud-amd64 \
    "$suite" "$root" "$mirror" >"$directory/debootstrap.log" 2>&1

tree=$directory/tree
mkdir -p "$tree/bin" "$tree/sbin" "$tree/dev" "$tree/proc" "$tree/sys" "$tree/run" "$tree/tmp"
cp "$root/bin/busybox" "$tree/bin/busybox"
ln -s busybox "$tree/bin/sh"

# What the job calls, and what that is linked with.
for program in /usr/bin/fio /usr/sbin/make-bcache /usr/sbin/dmsetup /usr/sbin/mdadm; do
    for file in $program $(chroot "$root" ldd "$program" | grep -o '/[^ ]*'); do
        mkdir -p "$tree$(dirname "$file")"
        cp -L "$root$file" "$tree$file"
    done
done

# Modules, in the order in which they can be loaded.
version=$(basename "$root"/lib/modules/*)
mkdir "$tree/modules"
for module in virtio_pci virtio_blk virtio_console raid0 bcache dm-mod dm-cache dm-cache-smq; do
    chroot "$root" modprobe --ignore-install --show-depends --set-version "$version" "$module" |
        sed -n 's/^insmod \([^ ]*\).*/\1/p'
done | awk '!seen[$0]++' | while read -r file; do
    cp "$root$file" "$tree/modules/"
    basename "$file" >>"$tree/modules/order"
done

install -m 755 "$init" "$tree/init"
cp "$root/boot/vmlinuz-$version" "$directory/vmlinuz"
(cd "$tree" && find . | cpio --quiet -o -H newc) >"$directory/initrd.part"
rm -rf --one-file-system "$root" "$tree"
# Last, so that what is there is whole.
mv "$directory/initrd.part" "$directory/initrd"
