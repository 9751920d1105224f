# One boot of the guest: sets up a stack ($stack) on its drives and runs what $steps names, one after the other:
# make, open, fill, warm, settle, a measured load (steady, cut, shifted), and go, a load that only a power cut ends.
# `settings` is written by the benchmark. What is printed is read by it: "begin STEP", fio's JSON, "end STEP".
set -eu
. ./settings

assemble_disks() {
    # RAID 0 without a superblock: there is nothing to assemble, and nothing that a power cut could leave behind.
    yes | mdadm --build /dev/md0 --level=0 --raid-devices=2 --chunk=64 \
        "$(readlink /drives/disk0)" "$(readlink /drives/disk1)" >/dev/console 2>&1
}

# A device of dm: name, table.
map() {
    dmsetup create --noudevrules --noudevsync "$1" --table "$2"
    name "$1"
}

# Names a device of dm, which without udev nobody else does.
name() {
    [ -e "/dev/mapper/$1" ] || ln -s "/dev/dm-$(dmsetup info -c --noheadings -o minor "$1")" "/dev/mapper/$1"
}

open_bcache() {
    for member in /dev/md0 "$(readlink /drives/ssd)"; do
        echo "$member" >/sys/fs/bcache/register
    done
    until [ -e /dev/bcache0 ] && [ -e /sys/block/bcache0/bcache/cache/congested_read_threshold_us ]; do sleep 0.1; done
    # An SSD slower than this is bypassed, and under emulation each is.
    echo 0 >/sys/block/bcache0/bcache/cache/congested_read_threshold_us
    echo 0 >/sys/block/bcache0/bcache/cache/congested_write_threshold_us
    echo writeback >/sys/block/bcache0/bcache/cache_mode
    device=/dev/bcache0
}

open_dm_cache() {
    ssd=$(readlink /drives/ssd)
    all=$(blockdev --getsz "$ssd")
    metadata=10240
    map metadata "0 $metadata linear $ssd 0"
    map fast "0 $((all - metadata)) linear $ssd $metadata"
    # A superblock of zeros makes it anew.
    [ "$1" = make ] && dd if=/dev/zero of=/dev/mapper/metadata bs=4096 count=1 conv=fsync 2>/dev/null
    # Blocks of 32 KiB, the smallest.
    map hybrid "0 $(blockdev --getsz /dev/md0) cache /dev/mapper/metadata /dev/mapper/fast /dev/md0 64 1 writeback smq 0"
    device=/dev/mapper/hybrid
}

set_up() {
    [ "$stack" = tier0 ] || assemble_disks
    case $stack in
    disks) device=/dev/md0 ;;
    bcache)
        # Small buckets: with fewer than some thousand of them it does not start.
        [ "$1" = open ] || make-bcache --writeback --wipe-bcache --bucket 16k \
            -C "$(readlink /drives/ssd)" -B /dev/md0 >/dev/console 2>&1
        open_bcache
        ;;
    dm-cache) open_dm_cache "$1" ;;
    tier0) device=$(readlink /drives/volume) ;;
    esac
}

# What the stack itself counts, where it counts at once.
counted() {
    if [ "$stack" = dm-cache ]; then
        echo "status $1 $(dmsetup status hybrid)"
    fi
}

load() { # distribution, seconds, depth
    fio --name=load --filename="$device" --direct=1 --ioengine=io_uring --rw=randrw --rwmixread=90 --bs=8k \
        --norandommap --randrepeat=0 --random_distribution="$1" --time_based --runtime="$2" --iodepth="$3" \
        --output-format=json
}

# A measured load: the host counts what the drives do between the two words.
measure() { # step, distribution
    counted before
    echo "begin $1"
    load "$2" "$seconds" "$depth"
    echo "end $1"
    counted after
}

for step in $steps; do
    case $step in
    make | open) set_up $step ;;
    fill)
        fio --name=fill --filename="$device" --direct=1 --ioengine=io_uring --rw=write --bs=1m --iodepth=4 \
            --end_fsync=1 --output-format=json
        ;;
    warm) load "$hot" "$warm_seconds" 64 ;;
    settle) load "$shifted" "$settle_seconds" "$depth" ;;
    steady | cut) measure $step "$hot" ;;
    shifted) measure $step "$shifted" ;;
    go)
        echo "going"
        load "$hot" 600 "$depth"
        ;;
    esac
    echo "done $step"
done
