//! What the kernel says of the queue of the device that a file is, or lies on: whether it has turning platters, and whether it
//! discards.

use std::fs;
use std::os::linux::fs::MetadataExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// Whether the device at `path`, or the one that holds the file or directory there, says that it is rotational. None where
/// there is nothing, or no one device below it (memory, network, several devices), or it does not say.
pub fn is_rotational(path: &Path) -> Option<bool> {
    let about = fs::metadata(path).ok()?;
    let device = if about.file_type().is_block_device() { about.st_rdev() } else { about.st_dev() };
    match said_of(device, "rotational")?.as_str() {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

/// Whether the device at `path` discards, and zeroes what was discarded.
pub(super) fn takes_discards(path: &Path) -> bool {
    let Ok(about) = fs::metadata(path) else { return false };
    let is_above_zero = |what| said_of(about.st_rdev(), what).is_some_and(|text| text != "0");
    about.file_type().is_block_device()
        && is_above_zero("discard_max_bytes")
        && is_above_zero("write_zeroes_max_bytes")
}

/// What the kernel says of the queue of a device, or of its disk if it is a partition.
fn said_of(device: u64, what: &str) -> Option<String> {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let known = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
    let places = [format!("queue/{what}"), format!("../queue/{what}")];
    let text = places.iter().find_map(|file| fs::read_to_string(known.join(file)).ok())?;
    Some(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_on_no_device_says_nothing() {
        for path in ["/proc/version", "/dev/null", "/nowhere"] {
            assert_eq!(is_rotational(Path::new(path)), None, "{path}");
        }
    }

    #[test]
    fn a_device_says_the_same_by_its_file_system() {
        let text = fs::read_to_string("/proc/self/mounts").expect("mounts");
        let mounts = text
            .lines()
            .filter_map(|line| line.split_once(' '))
            .filter(|(device, _)| device.starts_with("/dev/"));
        for (device, rest) in mounts {
            let Some(place) = rest.split(' ').next() else { continue };
            let of_device = is_rotational(Path::new(device));
            if let Some(known) = of_device.filter(|_| fs::metadata(device).is_ok()) {
                assert!(
                    is_rotational(Path::new(place)).is_none_or(|other| other == known),
                    "{device} {place}"
                );
            }
        }
    }
}
