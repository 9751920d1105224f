//! What the system itself uses a file or device for: file systems that are mounted, swap, and devices that others are
//! built on.
//!
//! A block device that is in use cannot be opened exclusively; a file under a loop device can, and so can a device under
//! one. So the loop devices on it, their partitions, and what lies on those are looked at too. Nothing is opened for
//! writing, and no file is looked at but those that the system names and that are called as the one that is meant: others
//! may be on a file system that hangs.

use std::collections::BTreeSet;
use std::fmt::{self, Display, Formatter};
use std::fs::{Metadata, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use tier0_world::real::retry_while_busy;

use super::HELD_TRIES;
use super::loop_device::{LoopDevice, number_of};

/// What the system uses something for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemUse {
    /// The device on it that is used; none where it is used itself.
    device: Option<PathBuf>,
    purpose: Purpose,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Purpose {
    Mounted(PathBuf),
    Swap,
    /// A device is built on it, as of LVM, LUKS or md.
    Holder(String),
    /// A process has it open exclusively.
    Exclusive,
}

impl Display for SystemUse {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.device {
            Some(device) => write!(f, "{device:?} on it ")?,
            None => write!(f, "it ")?,
        }
        match &self.purpose {
            Purpose::Mounted(place) => write!(f, "is mounted at {place:?}; unmount it"),
            Purpose::Swap => write!(f, "is swap space; disable it (swapoff)"),
            Purpose::Holder(holder) => write!(f, "is part of {holder:?}; remove it from there"),
            Purpose::Exclusive => write!(f, "is in use; stop its user (\"fuser -v\" and \"lsblk\" show it)"),
        }
    }
}

impl SystemUse {
    /// Has `open` open what lies at a path to write to it, unless the system uses it: a mounted file system, or a process that
    /// has it by a device on it, would go on writing too.
    ///
    /// # Errors
    /// What `open` says, or `in_use` of what it is used for.
    pub fn open_unused<T, E>(
        path: &Path,
        open: impl FnOnce() -> Result<T, E>,
        in_use: impl Fn(SystemUse) -> E,
    ) -> Result<T, E> {
        let is_free = |usage: Option<SystemUse>| usage.map_or(Ok(()), |usage| Err(in_use(usage)));
        is_free(SystemUse::of(path))?;
        // Another process that has it by a device on it is told by its lock.
        let opened = open()?;
        is_free(SystemUse::of_devices_on(path))?;
        Ok(opened)
    }

    /// What the system says that a file or device, or a device on it, is used for.
    pub fn of(path: &Path) -> Option<SystemUse> {
        let about = std::fs::metadata(path).ok()?;
        let system = System::read();
        if system.swaps_on(&about) {
            return Some(SystemUse { device: None, purpose: Purpose::Swap });
        }
        devices_on(path, &about).into_iter().find_map(|number| {
            let device = (number != own_number(&about)).then(|| node_of(number));
            system.purpose_of(number).map(|purpose| SystemUse { device, purpose })
        })
    }

    /// A device on a file or device that is held exclusively, whatever for. The kernel takes its time to close what a
    /// killed process had, so that is waited for, for at most 5 s. This process has the device open exclusively, so the kernel
    /// lets no other one hold its partitions, and refuses them to this one too.
    pub fn of_devices_on(path: &Path) -> Option<SystemUse> {
        let about = std::fs::metadata(path).ok()?;
        let own = own_number(&about);
        let partitions = if own == 0 { Vec::new() } else { partitions_of(own) };
        let is_other = |number: &u64| *number != own && !partitions.contains(number);
        let others = devices_on(path, &about).into_iter().filter(is_other);
        others
            .map(node_of)
            .find(|device| is_held(device))
            .map(|device| SystemUse { device: Some(device), purpose: Purpose::Exclusive })
    }
}

/// Whether a device is held exclusively. One that may not be opened tells nothing.
fn is_held(device: &Path) -> bool {
    let open = || OpenOptions::new().read(true).custom_flags(libc::O_EXCL | libc::O_NONBLOCK).open(device);
    let is_busy = |error: &io::Error| error.kind() == io::ErrorKind::ResourceBusy;
    retry_while_busy(HELD_TRIES, open, is_busy).is_err_and(|error| is_busy(&error))
}

/// The number of a device itself; none of a file.
fn own_number(about: &Metadata) -> u64 {
    if about.file_type().is_block_device() { about.rdev() } else { 0 }
}

/// The devices by which a file or device can be used: itself, loop devices on it, their partitions, and so on.
fn devices_on(path: &Path, about: &Metadata) -> BTreeSet<u64> {
    let mut found = BTreeSet::new();
    let mut open = match about.file_type().is_block_device() {
        true => vec![about.rdev()],
        false => loop_devices_on(path, about),
    };
    while let Some(number) = open.pop() {
        if !found.insert(number) {
            continue;
        }
        open.extend(partitions_of(number));
        let node = node_of(number);
        open.extend(std::fs::metadata(&node).iter().flat_map(|about| loop_devices_on(&node, about)));
    }
    found
}

fn loop_devices_on(path: &Path, about: &Metadata) -> Vec<u64> {
    let devices = LoopDevice::on(about, path).into_iter();
    devices.filter_map(|device| Some(std::fs::metadata(device).ok()?.rdev())).collect()
}

fn directory_of(number: u64) -> PathBuf {
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    PathBuf::from(format!("/sys/dev/block/{major}:{minor}"))
}

/// What /dev calls a device.
fn node_of(number: u64) -> PathBuf {
    let place = std::fs::canonicalize(directory_of(number)).unwrap_or_default();
    // What lies in a directory of /dev has an exclamation mark for the slash in sysfs.
    let name = place.file_name().unwrap_or_default().to_string_lossy().replace('!', "/");
    Path::new("/dev").join(name)
}

fn entries_of(directory: &Path) -> impl Iterator<Item = PathBuf> {
    std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// The partitions that the kernel knows on a device.
pub(super) fn partitions_of(number: u64) -> Vec<u64> {
    let directory = directory_of(number);
    let partitions = entries_of(&directory).filter(|entry| entry.join("partition").exists());
    partitions.filter_map(|entry| number_in(&std::fs::read_to_string(entry.join("dev")).ok()?)).collect()
}

/// The number of a device, of its two parts.
fn number_in(text: &str) -> Option<u64> {
    let (major, minor) = text.trim().split_once(':')?;
    Some(rustix::fs::makedev(major.parse().ok()?, minor.parse().ok()?))
}

/// What is mounted, and what is swap.
struct System {
    /// By device: where its file system is mounted.
    mounts: Vec<(u64, PathBuf)>,
    swaps: Vec<PathBuf>,
}

impl System {
    fn read() -> System {
        let text = |path| std::fs::read(path).unwrap_or_default();
        let mounts = text("/proc/self/mountinfo");
        let swaps = text("/proc/swaps");
        System { mounts: lines(&mounts).flat_map(mount).collect(), swaps: swap_places(&swaps) }
    }

    fn purpose_of(&self, number: u64) -> Option<Purpose> {
        if let Some((_, place)) = self.mounts.iter().find(|(device, _)| *device == number) {
            return Some(Purpose::Mounted(place.clone()));
        }
        let node = std::fs::metadata(node_of(number));
        if node.is_ok_and(|about| self.swaps_on(&about)) {
            return Some(Purpose::Swap);
        }
        let holder = entries_of(&directory_of(number).join("holders")).next()?;
        let name = std::fs::read_to_string(holder.join("dm/name")).ok();
        let plain = || holder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Some(Purpose::Holder(name.map_or_else(plain, |name| name.trim().to_owned())))
    }

    fn swaps_on(&self, wanted: &Metadata) -> bool {
        self.swaps.iter().filter_map(|swap| std::fs::metadata(swap).ok()).any(|swap| {
            match wanted.file_type().is_block_device() {
                true => swap.file_type().is_block_device() && swap.rdev() == wanted.rdev(),
                false => number_of(&swap) == number_of(wanted),
            }
        })
    }
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

/// The files and devices of a list of swap spaces (proc_swaps(5)), which has a headline.
fn swap_places(text: &[u8]) -> Vec<PathBuf> {
    lines(text).skip(1).filter_map(|line| words(line).next().map(unescaped)).collect()
}

/// The devices of a line of mountinfo (proc_pid_mountinfo(5)), and where they are mounted: some file systems have a number
/// of their own, and name the device.
fn mount(line: &[u8]) -> Vec<(u64, PathBuf)> {
    let fields: Vec<&[u8]> = words(line).collect();
    let [_, _, number, _, place, rest @ ..] = &fields[..] else { return Vec::new() };
    let source = rest.iter().skip_while(|word| **word != b"-").nth(2).map(|source| unescaped(source));
    let source = source.filter(|source| source.starts_with("/dev"));
    let named = source.and_then(|source| std::fs::metadata(source).ok());
    let named = named.filter(|about| about.file_type().is_block_device()).map(|about| about.rdev());
    let number = std::str::from_utf8(number).ok().and_then(number_in);
    number.into_iter().chain(named).map(|number| (number, unescaped(place))).collect()
}

/// A path in which spaces and the like stand as octal numbers, as in `\040`.
fn unescaped(word: &[u8]) -> PathBuf {
    let mut bytes = Vec::new();
    let mut rest = word;
    while let [first, after @ ..] = rest {
        let octal = after.get(..3).filter(|_| *first == b'\\');
        let octal = octal.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        bytes.push(octal.unwrap_or(*first));
        rest = if octal.is_some() { &after[3..] } else { after };
    }
    std::ffi::OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_mounted_is_read_from_the_list_of_mounts() {
        let told = mount(b"36 35 98:7 /mnt1 /mnt\\0402 rw,noatime master:1 - ext3 none rw,errors=continue");
        assert_eq!(told, [(rustix::fs::makedev(98, 7), PathBuf::from("/mnt 2"))]);
        assert_eq!(mount(b"36 35"), []);
    }

    #[test]
    fn what_is_swap_is_read_from_the_list_of_swap_spaces() {
        let text =
            b"Filename\t\tType\t\tSize\n/dev/sda2   partition\t8\t0\t-2\n/my\\040swap file\t8\t0\t-3\n";
        assert_eq!(swap_places(text), [PathBuf::from("/dev/sda2"), PathBuf::from("/my swap")]);
        assert_eq!(swap_places(b""), Vec::<PathBuf>::new());
    }

    #[test]
    fn a_file_that_nobody_uses_is_free() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("free.img");
        std::fs::write(&file, [0; 512]).expect("a file");
        assert_eq!(SystemUse::of(&file), None);
        assert_eq!(SystemUse::of_devices_on(&file), None);
    }
}
