//! Whether a server of an array has its drives although it does not answer at the control socket: it is starting, or
//! ending, or its socket was removed.
//!
//! Asked of Linux: the process that holds a lock on a drive's file stands in `/proc/locks`, and what was started in its
//! command line. What is not told there (a file system that numbers its files in another way, a process of another
//! namespace) is not known, and nothing is said then.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tier0_array::Description;

/// One sentence on the server of the array file at `file` that holds drives of it; none where there is none, or none that
/// one could know.
pub(crate) fn silent_server(description: &Description, file: &Path) -> Option<String> {
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let held = description.drives.iter().find_map(|drive| {
        let about = std::fs::metadata(drive.path.as_ref()?).ok()?;
        let (major, minor) = (rustix::fs::major(about.dev()), rustix::fs::minor(about.dev()));
        let process = holder(&locks, &format!("{major:02x}:{minor:02x}:{}", about.ino()))?;
        serves(process, file).then_some((process, drive.name.as_str()))
    });
    let (process, drive) = held?;
    let log = log_of(process).map_or_else(|| "its log".to_owned(), |log| format!("its log ({log:?})"));
    Some(format!(
        "array {:?} has a server (process {process}) that holds drive {drive:?} and does not answer at the control socket {:?}: \
         it is starting, or ending, or its socket was taken away; {log} says what it waits for: wait for it, or stop \
         it",
        description.name,
        description.control.as_deref().unwrap_or(Path::new(""))
    ))
}

/// The process that has an exclusive lock of a whole file, by the file's numbers.
fn holder(locks: &str, wanted: &str) -> Option<u32> {
    locks.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [_, "FLOCK", _, "WRITE", process, file, ..] if file == wanted => process.parse().ok(),
            _ => None,
        }
    })
}

/// Whether a process is `tier0 serve` with this array file.
fn serves(process: u32, file: &Path) -> bool {
    let at = PathBuf::from(format!("/proc/{process}"));
    let Ok(line) = std::fs::read(at.join("cmdline")) else { return false };
    let words: Vec<OsString> =
        line.split(|byte| *byte == 0).map(|word| OsString::from_vec(word.to_vec())).collect();
    let same = |one: &Path| match (std::fs::canonicalize(one), std::fs::canonicalize(file)) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    };
    // Its own user and root may read where it was started.
    let from = std::fs::read_link(at.join("cwd")).unwrap_or_default();
    words.iter().any(|word| word == "serve") && words.iter().any(|word| same(&from.join(word)))
}

/// The file that a process writes its log to, if it is one.
fn log_of(process: u32) -> Option<PathBuf> {
    let log = std::fs::read_link(format!("/proc/{process}/fd/2")).ok()?;
    log.is_file().then_some(log)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_locks_a_file_is_read_from_the_list_of_locks() {
        let locks = "1: POSIX  ADVISORY  WRITE 7 fe:00:12 0 EOF\n2: FLOCK  ADVISORY  READ 8 fe:00:12 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 9 fe:00:12 0 EOF\n3: FLOCK  ADVISORY  WRITE 10 fe:00:12 0 EOF\n";
        assert_eq!(holder(locks, "fe:00:12"), Some(10));
        assert_eq!(holder(locks, "fe:00:1"), None);
    }
}
