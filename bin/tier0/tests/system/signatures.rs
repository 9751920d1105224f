//! What other programs left on a drive that tier0 takes by force: nothing recognises it afterwards.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

use crate::support::{create_by, describe, directory, run, serve, skipped, stop, tier0, verb};

/// Bytes of each drive.
const DRIVE_BYTES: u64 = 256 << 20;
/// Where ext4 with blocks of 4 KiB has the copy of its superblock that e2fsck tries first: at its second block group.
const EXT_COPY_AT: u64 = 128 << 20;

/// Puts a signature on a file of [`DRIVE_BYTES`].
type Sign = fn(&Path);

fn text(path: &Path) -> &str {
    path.to_str().expect("a path of plain characters")
}

fn ext4(path: &Path) {
    run("mkfs.ext4", &["-q", "-F", "-b", "4096", text(path)]);
    assert_ne!(
        bytes(path, EXT_COPY_AT, 1024),
        [0; 1024],
        "mkfs.ext4 makes no copy where e2fsck looks for one"
    );
}

fn swap(path: &Path) {
    run("mkswap", &[text(path)]);
}

fn gpt(path: &Path) {
    run("sgdisk", &["--new=1:2048:+64M", text(path)]);
}

fn md_1_0(path: &Path) {
    // 8 to 12 KiB before the end, at a multiple of 4 KiB.
    md(path, (DRIVE_BYTES / 512 - 16) / 8 * 8);
}

fn md_1_1(path: &Path) {
    md(path, 0);
}

fn md_1_2(path: &Path) {
    md(path, 8);
}

/// The superblock of an md array of format 1.x (include/uapi/linux/raid/md_p.h), of a mirror without a second half.
fn md(path: &Path, sector: u64) {
    let mut superblock = [0; 256];
    let mut put = |at: usize, value: &[u8]| superblock[at..at + value.len()].copy_from_slice(value);
    put(0, &0xa92b_4efc_u32.to_le_bytes());
    put(4, &1u32.to_le_bytes());
    put(16, &[7; 16]);
    put(32, b"leftover");
    put(72, &1u32.to_le_bytes());
    put(80, &(DRIVE_BYTES / 512 - 64).to_le_bytes());
    put(92, &1u32.to_le_bytes());
    put(136, &(DRIVE_BYTES / 512 - 64).to_le_bytes());
    put(144, &sector.to_le_bytes());
    let words =
        superblock.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().expect("four bytes")));
    let sum: u64 = words.map(u64::from).sum();
    let sum = (sum as u32).wrapping_add((sum >> 32) as u32);
    superblock[216..220].copy_from_slice(&sum.to_le_bytes());
    let file = OpenOptions::new().write(true).open(path).expect("a drive");
    file.write_all_at(&superblock, sector * 512).expect("written");
}

/// Both swap and an md superblock of either end.
fn several(path: &Path) {
    swap(path);
    md_1_0(path);
}

fn bytes(path: &Path, at: u64, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    File::open(path).expect("a drive").read_exact_at(&mut bytes, at).expect("read");
    bytes
}

/// A drive that holds nothing.
fn empty(path: &Path) {
    File::create(path).and_then(|file| file.set_len(DRIVE_BYTES)).expect("a drive");
}

/// What blkid finds by looking at the content.
fn recognised(path: &Path) -> String {
    let output = Command::new("blkid").args(["-p", text(path)]).output().expect("it starts");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Nothing recognises anything on a drive that tier0 has taken, and what tier0 does not use of its ends is zeros.
fn assert_unrecognised(path: &Path, held: &str) {
    assert_eq!(recognised(path), "", "blkid still finds {held}");
    assert_eq!(run("wipefs", &["-n", text(path)]), "", "wipefs still finds {held}");
    for (at, count) in [(0, 64 << 10), (DRIVE_BYTES - (64 << 10), 64 << 10)] {
        let rest = bytes(path, at, count).iter().filter(|byte| **byte != 0).count();
        assert_eq!(rest, 0, "of {held}, bytes are left within 64 KiB of {at}");
    }
}

const SIGNATURES: [(&str, Sign, &[&str]); 7] = [
    ("ext4", ext4, &["mkfs.ext4"]),
    ("swap", swap, &["mkswap"]),
    ("GPT", gpt, &["sgdisk"]),
    ("md 1.0", md_1_0, &[]),
    ("md 1.1", md_1_1, &[]),
    ("md 1.2", md_1_2, &[]),
    ("swap and md 1.0", several, &["mkswap"]),
];

/// ext4, GPT, swap and md survived `create --force`: a repair program or a start of the system took the member for theirs.
#[test]
fn nothing_that_create_overwrites_is_recognised_afterwards() {
    if skipped("signatures", false, &["blkid", "wipefs"]) {
        return;
    }
    for (name, sign, programs) in SIGNATURES {
        if skipped(name, false, programs) {
            continue;
        }
        let directory = directory();
        let array = describe(directory.path(), "raid1", 2, 2, "24MiB");
        let drives = [0, 1].map(|number| directory.path().join(format!("d{number}.img")));
        drives.iter().for_each(|drive| empty(drive));
        sign(&drives[1]);
        assert_ne!(recognised(&drives[1]), "", "the test puts no {name} on the drive");
        let held = bytes(&drives[1], 0, DRIVE_BYTES as usize);
        // Not even where the front is zeros, as of md 1.0.
        let refused = tier0(&["create", text(&array)]).output().expect("it starts");
        assert_eq!(refused.status.code(), Some(2), "{name} is overwritten without consent");
        let refused = tier0(&["create", text(&array), "--force"]).output().expect("it starts");
        assert_eq!(refused.status.code(), Some(2), "{name} is overwritten without consent");
        assert!(bytes(&drives[1], 0, DRIVE_BYTES as usize) == held, "{name}: a refused create has written");
        create_by(&array, &["--force", "--yes"]);
        drives.iter().for_each(|drive| assert_unrecognised(drive, name));
    }
}

/// `e2fsck -fy` found the old file system by its copy, and repaired it over the array's data.
#[test]
fn e2fsck_finds_nothing_to_repair_on_a_stopped_member() {
    if skipped("signatures", false, &["mkfs.ext4", "e2fsck"]) {
        return;
    }
    let directory = directory();
    let array = describe(directory.path(), "raid1", 2, 2, "24MiB");
    let drive = directory.path().join("d0.img");
    empty(&drive);
    ext4(&drive);
    create_by(&array, &["--force", "--yes"]);
    let before = bytes(&drive, 0, DRIVE_BYTES as usize);
    let checked = Command::new("e2fsck").args(["-fy", text(&drive)]).output().expect("it starts");
    // 8: it cannot do its work.
    assert_eq!(checked.status.code(), Some(8), "{}", String::from_utf8_lossy(&checked.stdout));
    assert!(bytes(&drive, 0, DRIVE_BYTES as usize) == before, "e2fsck has changed a member");
    stop(serve(&array));
}

/// The same of drives that join an array that serves.
#[test]
fn nothing_on_drives_that_join_by_force_is_recognised_afterwards() {
    if skipped("signatures", false, &["blkid", "wipefs", "mkfs.ext4"]) {
        return;
    }
    let directory = directory();
    let array = describe(directory.path(), "raid1", 2, 2, "24MiB");
    create_by(&array, &[]);
    let server = serve(&array);
    let [added, replacing] = ["added", "replacing"].map(|name| directory.path().join(format!("{name}.img")));
    for (drive, sign) in [(&added, ext4 as Sign), (&replacing, several)] {
        empty(drive);
        sign(drive);
    }
    let add = ["drive", "add", "--name", "added", "--path", text(&added)];
    let held = bytes(&added, 0, DRIVE_BYTES as usize);
    let refused = tier0(&[&add[..2], &[text(&array)], &add[2..]].concat()).output().expect("it starts");
    assert_eq!(refused.status.code(), Some(2), "a file system is overwritten without consent");
    assert!(bytes(&added, 0, DRIVE_BYTES as usize) == held, "a refused drive add has written");
    verb(&array, &[&add[..], &["--force", "--yes"]].concat());
    let replace = ["drive", "replace", "d0", "--name", "new", "--path", text(&replacing), "--force", "--yes"];
    verb(&array, &replace);
    stop(server);
    assert_unrecognised(&added, "ext4");
    assert_unrecognised(&replacing, "swap and md 1.0");
}

/// Partitions of a table that was erased could still be mounted, with what they held.
#[test]
fn partitions_of_a_table_that_was_erased_are_gone() {
    if skipped("signatures", true, &["sgdisk", "losetup", "addpart"]) {
        return;
    }
    let directory = directory();
    let image = directory.path().join("d0.img");
    empty(&image);
    gpt(&image);
    let device = LoopDevice::on(&image);
    let partition = format!("{}p1", device.0);
    let known = format!("/sys/class/block/{}", partition.trim_start_matches("/dev/"));
    if !Path::new(&known).exists() {
        // A kernel may be built without GPT; it knows partitions that it is told.
        run("addpart", &[&device.0, "1", "2048", "131072"]);
    }
    assert!(Path::new(&known).exists(), "the kernel does not offer {partition}");
    let array = directory.path().join("array.toml");
    let file = format!(
        "[array]\nname = \"system\"\n[[drive]]\nname = \"d0\"\npath = \"{}\"\n[[pool]]\nname = \"p\"\nraid = \"raid0\"\n",
        device.0
    );
    std::fs::write(&array, file).expect("an array file");
    create_by(&array, &["--force", "--yes"]);
    assert!(!Path::new(&known).exists(), "the kernel still offers {partition}");
    drop(device);
    assert_unrecognised(&image, "GPT");
}

/// A loop device with partitions, which goes when this is dropped.
struct LoopDevice(String);

impl LoopDevice {
    fn on(image: &Path) -> LoopDevice {
        LoopDevice(run("losetup", &["--partscan", "--find", "--show", text(image)]).trim().to_owned())
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        // What is left of it goes with the machine's next start.
        let _ = Command::new("losetup").args(["--detach", &self.0]).status();
    }
}

/// `load --overwrite` wrote under a mounted file system, which `create --force` refuses.
#[test]
fn a_load_does_not_write_to_what_the_system_uses() {
    if skipped("signatures", true, &["losetup", "mkfs.ext4", "mount", "umount"]) {
        return;
    }
    let directory = directory();
    let image = directory.path().join("mounted.img");
    empty(&image);
    ext4(&image);
    let device = LoopDevice::on(&image);
    let point = directory.path().join("here");
    std::fs::create_dir(&point).expect("a directory");
    run("mount", &[&device.0, text(&point)]);
    let load = |target: &str, words: &[&str]| {
        let arguments = [&["load", target, "--ios", "10"], words].concat();
        tier0(&arguments).output().expect("it starts")
    };
    let writes = [&device.0, text(&image)].map(|target| load(target, &["--read", "0", "--overwrite"]));
    let profiled =
        tier0(&["lab", "profile", text(&image), "--read", "0", "--overwrite"]).output().expect("it starts");
    let reads = load(text(&image), &[]);
    run("umount", &[text(&point)]);
    for refused in writes.iter().chain([&profiled]) {
        let told = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{told}");
        assert!(told.contains("mounted at") && told.contains("unmount it"), "{told}");
    }
    assert_eq!(reads.status.code(), Some(0), "{}", String::from_utf8_lossy(&reads.stderr));
    let checked = Command::new("e2fsck").args(["-fn", text(&image)]).output().expect("it starts");
    assert_eq!(checked.status.code(), Some(0), "{}", String::from_utf8_lossy(&checked.stdout));
    // Nothing uses it any more.
    let written = load(&device.0, &["--read", "0", "--overwrite"]);
    assert_eq!(written.status.code(), Some(0), "{}", String::from_utf8_lossy(&written.stderr));
}
