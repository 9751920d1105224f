//! Whether what a file lies on has turning platters, as the kernel says.

use std::fs;
use std::os::linux::fs::MetadataExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// Whether the device at `path`, or the one that holds the file or directory there, says that it is rotational. None where
/// there is nothing, or no one device below it (memory, network, several devices), or it does not say.
pub fn is_rotational(path: &Path) -> Option<bool> {
    let about = fs::metadata(path).ok()?;
    let device = if about.file_type().is_block_device() { about.st_rdev() } else { about.st_dev() };
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let known = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
    // A partition has the queue of its disk.
    let says = ["queue/rotational", "../queue/rotational"];
    let text = says.iter().find_map(|file| fs::read_to_string(known.join(file)).ok())?;
    match text.trim() {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
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
