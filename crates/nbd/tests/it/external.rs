//! Other people's clients against the server. Each test is skipped, saying so, where its program is not installed.

use crate::common::{ServerThread, Sockets, ram, run};
use tier0_nbd::server::ExportOptions;
use tier0_units::ByteCount;

fn start(sockets: &Sockets) -> ServerThread {
    ServerThread::start(sockets, |world, server| {
        let gold = ExportOptions { description: "flash".into(), ..ExportOptions::named("gold") };
        server.add_export(gold, ram(world, ByteCount::mib(64))).expect("a free name");
        let old = ExportOptions { read_only: true, ..ExportOptions::named("old") };
        server.add_export(old, ram(world, ByteCount::mib(1))).expect("a free name");
    })
}

/// Bytes that repeat nowhere nearby.
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let words = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 24) as u8
    });
    words.take(bytes).collect()
}

#[test]
fn nbdinfo_sees_the_exports_and_what_they_can_do() {
    let sockets = Sockets::new();
    let _server = start(&sockets);
    let Some(list) = run("nbdinfo", &["--list", &sockets.uri("").to_string()]) else { return };
    for expected in ["export=\"gold\"", "description: flash", "export=\"old\"", "base:allocation"] {
        assert!(list.contains(expected), "{expected} is missing:\n{list}");
    }
    let info = run("nbdinfo", &[&sockets.uri("gold").to_string()]).expect("installed");
    for expected in [
        "newstyle-fixed without TLS, using structured packets",
        "export-size: 67108864",
        "can_flush: true",
        "can_fua: true",
        "can_multi_conn: true",
        "can_trim: true",
        "can_zero: true",
        "can_df: true",
        "is_read_only: false",
        "block_size_minimum: 512",
    ] {
        assert!(info.contains(expected), "{expected} is missing:\n{info}");
    }
    let old = run("nbdinfo", &["--is", "readonly", &sockets.uri("old").to_string()]);
    assert!(old.is_some());
    let map = run("nbdinfo", &["--map", &sockets.uri("gold").to_string()]).expect("installed");
    assert!(map.split_whitespace().eq(["0", "67108864", "0", "data"]), "{map}");
}

#[test]
fn nbdcopy_copies_there_and_back() {
    let sockets = Sockets::new();
    let _server = start(&sockets);
    let (from, to) = (sockets.file("from"), sockets.file("to"));
    std::fs::write(&from, noise(64 << 20)).expect("a file");
    let uri = sockets.uri("gold").to_string();
    let Some(_) = run("nbdcopy", &["--flush", from.to_str().expect("UTF-8"), &uri]) else { return };
    // Several connections, several threads, synchronous.
    for mode in [&["--connections=4"][..], &["--connections=1", "--request-size=1048576"], &["--synchronous"]]
    {
        let arguments = [mode, &[&uri, to.to_str().expect("UTF-8")]].concat();
        run("nbdcopy", &arguments).expect("installed");
        assert!(std::fs::read(&from).expect("a file") == std::fs::read(&to).expect("a file"), "{mode:?}");
        std::fs::remove_file(&to).expect("a file");
    }
}

#[test]
fn qemu_img_and_qemu_io_agree_with_the_server() {
    let sockets = Sockets::new();
    let _server = start(&sockets);
    let uri = sockets.uri("gold").to_string();
    let file = sockets.file("image");
    std::fs::write(&file, noise(64 << 20)).expect("a file");
    let file = file.to_str().expect("UTF-8");
    let Some(_) = run("qemu-img", &["convert", "-n", "-f", "raw", "-O", "raw", file, &uri]) else { return };
    let compared = run("qemu-img", &["compare", "-f", "raw", "-F", "raw", file, &uri]).expect("installed");
    assert!(compared.contains("Images are identical"), "{compared}");
    let io = run(
        "qemu-io",
        &[
            "-f",
            "raw",
            "-c",
            "write -P 0x11 4096 65536",
            "-c",
            "write -f -P 0x22 8192 4096",
            "-c",
            "write -z -u 16384 8192",
            "-c",
            "discard 32768 4096",
            "-c",
            "read -P 0x11 4096 4096",
            "-c",
            "read -P 0x22 8192 4096",
            "-c",
            "read -P 0 16384 8192",
            "-c",
            "write -P 0x33 777 100",
            "-c",
            "read -P 0x33 777 100",
            "-c",
            "flush",
            &uri,
        ],
    )
    .expect("installed");
    assert!(!io.contains("Pattern verification failed"), "{io}");
    let map = run("qemu-img", &["map", "--output=json", "-f", "raw", &uri]).expect("installed");
    assert!(map.contains("\"length\": 67108864"), "{map}");
}

#[test]
fn fio_verifies_what_it_wrote() {
    let sockets = Sockets::new();
    let _server = start(&sockets);
    let uri = format!("--uri={}", sockets.uri("gold"));
    let common = ["--name=t", "--ioengine=nbd", &uri, "--size=64m", "--verify=crc32c", "--verify_fatal=1"];
    for load in [
        &["--rw=randwrite", "--bs=8k", "--iodepth=32"][..],
        &["--rw=randrw", "--bsrange=512-256k", "--blockalign=512", "--iodepth=16"],
        &["--rw=write", "--bs=1m", "--iodepth=4", "--fsync=8"],
        &["--rw=randtrimwrite", "--bs=4k", "--iodepth=8", "--io_size=8m"],
    ] {
        let Some(report) = run("fio", &[&common[..], load].concat()) else { return };
        assert!(report.contains("err= 0"), "{report}");
    }
}

/// Waits until nbdfuse shows its file; false where it gave up, as it does without the right to mount.
#[expect(clippy::disallowed_methods, reason = "another program is waited for")]
fn mounted(file: &std::path::Path, nbdfuse: &mut std::process::Child) -> bool {
    loop {
        if file.exists() {
            return true;
        }
        if nbdfuse.try_wait().expect("a child").is_some() {
            return false;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

#[test]
fn nbdfuse_mounts_the_export_as_a_file() {
    let sockets = Sockets::new();
    let _server = start(&sockets);
    let (directory, uri) = (sockets.file("mount"), sockets.uri("gold").to_string());
    std::fs::create_dir(&directory).expect("a directory");
    let Ok(mut nbdfuse) = std::process::Command::new("nbdfuse").arg(&directory).arg(&uri).spawn() else {
        return eprintln!("skipped: nbdfuse is not installed");
    };
    let file = directory.join("nbd");
    if !mounted(&file, &mut nbdfuse) {
        return eprintln!("skipped: nbdfuse may not mount here");
    }
    let data = noise(1 << 20);
    let written = std::fs::OpenOptions::new().write(true).open(&file).and_then(|file| {
        std::os::unix::fs::FileExt::write_all_at(&file, &data, 4096)?;
        file.sync_all()
    });
    let read = std::fs::read(&file);
    run("umount", &[directory.to_str().expect("UTF-8")]).expect("a mount can be undone");
    assert!(nbdfuse.wait().expect("a child").success());
    written.expect("nbdfuse writes and flushes");
    let read = read.expect("nbdfuse reads");
    assert!(read.len() == 64 << 20 && read[4096..][..data.len()] == data, "the file holds what was written");
}
