//! fio writes with checksums over NBD and reads them back, on every RAID level, healthy and without drives.

use std::path::Path;

use crate::support::{create, describe, directory, run, serve, serve_with, skipped, stop, uri};

/// fio with `verify=crc32c` over the whole volume.
fn fio(directory: &Path, arguments: &[&str]) {
    let uri = format!("--uri={}", uri(directory));
    let common = ["--name=verify", "--ioengine=nbd", &uri, "--iodepth=16", "--size=64M", "--verify=crc32c"];
    let rest = ["--verify_fatal=1", "--verify_state_save=0", "--randrepeat=1", "--output-format=terse"];
    run("fio", &[&common[..], &rest[..], arguments].concat());
}

#[test]
fn every_raid_level_keeps_what_fio_wrote() {
    if skipped("every_raid_level_keeps_what_fio_wrote", false, &["fio"]) {
        return;
    }
    for (raid, drives, set_size, may_lose) in [
        ("raid0", 3, 3, 0),
        ("raid1", 2, 2, 1),
        ("raid10", 4, 4, 1),
        ("raid5", 4, 4, 1),
        ("raid50", 6, 6, 1),
        ("raid6", 5, 5, 2),
    ] {
        eprintln!("{raid}");
        let directory = directory();
        let array = describe(directory.path(), raid, drives, set_size, "64MiB");
        create(&array);
        let server = serve(&array);
        fio(directory.path(), &["--rw=randwrite", "--bsrange=4k-128k"]);
        fio(directory.path(), &["--rw=randrw", "--bs=8k", "--fsync=64", "--io_size=16M"]);
        // A job that only verifies must know what the last one wrote: 64 KiB in sequence, with a fixed seed.
        fio(directory.path(), &["--rw=write", "--bs=64k"]);
        stop(server);
        for lost in 0..may_lose {
            std::fs::remove_file(directory.path().join(format!("d{}.img", lost * 2 + 1))).expect("a drive");
            // The other half of a mirror may be stale, for all it knows: the administrator must say that it is not.
            let consent: &[&str] = if raid == "raid1" { &["--without", "d1"] } else { &[] };
            let server = serve_with(&array, consent);
            fio(directory.path(), &["--rw=write", "--bs=64k", "--verify_only"]);
            fio(directory.path(), &["--rw=randwrite", "--bsrange=4k-128k"]);
            fio(directory.path(), &["--rw=write", "--bs=64k"]);
            stop(server);
        }
    }
}

#[test]
fn a_drive_that_disappears_under_load_is_done_without() {
    if skipped("a_drive_that_disappears_under_load_is_done_without", false, &["fio"]) {
        return;
    }
    let directory = directory();
    let array = describe(directory.path(), "raid6", 5, 5, "64MiB");
    create(&array);
    let server = serve(&array);
    fio(directory.path(), &["--rw=write", "--bs=64k"]);
    // Truncating the file of a running drive makes its reads end early and its writes extend it: a sick drive.
    let drive = std::fs::File::options().write(true).open(directory.path().join("d2.img")).expect("a drive");
    drive.set_len(20 << 20).expect("truncated");
    fio(directory.path(), &["--rw=write", "--bs=64k", "--verify_only"]);
    fio(directory.path(), &["--rw=randrw", "--bs=8k"]);
    stop(server);
}
