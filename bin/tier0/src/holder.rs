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

use tier0_description::{Description, Remnant};

/// One sentence on the server that holds drives of the array file at `file`: its own, or one that was started with another
/// file; none where there is none, or none that one could know.
pub(crate) fn silent_server(description: &Description, file: &Path) -> Option<String> {
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let held = description.drives.iter().filter_map(|drive| {
        let path = drive.path.as_deref()?;
        let process = holder_of(&locks, path).or_else(|| holder_of(&locks, &file_behind(path)?))?;
        Some((process, drive.name.as_str(), path))
    });
    let held: Vec<(u32, &str, &Path)> = held.collect();
    if let Some((_, drive, path)) = held.iter().find(|(process, ..)| *process == std::process::id()) {
        return Some(format!(
            "drive {drive:?} ({path:?}) does not respond: this process has opened it and still waits for it; \
             check the system log, or start without the drive (--without {drive}), which gives up its contents"
        ));
    }
    if let Some((process, drive, _)) = held.iter().find(|(process, ..)| serves(*process, file)) {
        let log = log_of(*process).map_or_else(|| "its log".to_owned(), |log| format!("its log ({log:?})"));
        return Some(format!(
            "array {:?}: its server (process {process}) holds drive {drive:?} and does not respond on the \
             control socket {:?}: it is starting or stopping, or its socket was removed; {log} shows the \
             cause: wait for the server, or stop it",
            description.name,
            description.control.as_deref().unwrap_or(Path::new(""))
        ));
    }
    held.iter().find_map(|(process, drive, path)| {
        let started = Started::of(*process)?;
        Some(format!(
            "drive {drive:?} ({path:?}) is in use by another process, the tier0 server {process}{}, so it is not missing; {}, or \
             stop that server first",
            started.with(),
            started.how_to_ask()
        ))
    })
}

/// The process that has an exclusive lock of what lies at a path.
fn holder_of(locks: &str, path: &Path) -> Option<u32> {
    let about = std::fs::metadata(path).ok()?;
    let (major, minor) = (rustix::fs::major(about.dev()), rustix::fs::minor(about.dev()));
    holder(locks, &format!("{major:02x}:{minor:02x}:{}", about.ino()))
}

/// The file behind a loop device: a server may hold that.
fn file_behind(path: &Path) -> Option<PathBuf> {
    let device = std::fs::canonicalize(path).ok()?;
    let name = device.strip_prefix("/dev").ok()?;
    let behind =
        std::fs::read_to_string(Path::new("/sys/block").join(name).join("loop/backing_file")).ok()?;
    Some(behind.trim_end_matches('\n').into())
}

/// How a server was started.
struct Started {
    /// With which array file, as far as that can be known.
    file: Option<PathBuf>,
    /// The file was read; one that was renamed or broken since is known by its name alone.
    is_there: bool,
}

impl Started {
    /// None where the process is no `tier0 serve`.
    fn of(process: u32) -> Option<Started> {
        let (words, from) = command_of(process)?;
        let program = Path::new(words.first()?).file_name()?;
        let verb = words.iter().position(|word| word == "serve")?;
        let arguments = &words[verb + 1..];
        let is_array = |path: &PathBuf| path.is_file() && Description::read(path).is_ok();
        let there = arguments.iter().map(|word| from.join(word)).find(is_array);
        let is_there = there.is_some();
        let file = there.or_else(|| named_file(arguments).map(|word| from.join(word)));
        program.to_string_lossy().starts_with("tier0").then_some(Started { file, is_there })
    }

    fn with(&self) -> String {
        let lacks = if self.is_there { "" } else { " (now missing or invalid)" };
        self.file.as_ref().map_or_else(String::new, |file| format!(" that was started with {file:?}{lacks}"))
    }

    fn how_to_ask(&self) -> String {
        let Some(file) = &self.file else {
            return "query it with \"tier0 status\" and the array file it was started with".to_owned();
        };
        if !self.is_there {
            // The verbs find its socket by the name of the file alone.
            let socket = Remnant::of(file).map(|remnant| remnant.control).filter(|control| control.exists());
            let at = socket.map_or_else(String::new, |at| format!(", control socket {at:?}"));
            return format!(
                "restore the array file under that name, or query it by the old name (tier0 status {}{at})",
                file.display()
            );
        }
        let control = Description::read(file).ok().and_then(|known| known.control);
        let at = control.map_or_else(String::new, |at| format!(", control socket {at:?}"));
        format!("query it (tier0 status {}{at})", file.display())
    }
}

/// The array file among the arguments of `tier0 serve`: the first that is neither an option nor its value.
fn named_file(arguments: &[OsString]) -> Option<&OsString> {
    let takes_value = |word: &OsString| word == "--listen" || word == "--without";
    let mut is_value = false;
    arguments.iter().find(|word| {
        let is_file = !is_value && !word.to_string_lossy().starts_with('-');
        is_value = takes_value(word);
        is_file
    })
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
    let Some((words, from)) = command_of(process) else { return false };
    let same = |one: &Path| match (std::fs::canonicalize(one), std::fs::canonicalize(file)) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    };
    words.iter().any(|word| word == "serve") && words.iter().any(|word| same(&from.join(word)))
}

/// What a process was started with, and where.
fn command_of(process: u32) -> Option<(Vec<OsString>, PathBuf)> {
    let at = PathBuf::from(format!("/proc/{process}"));
    let line = std::fs::read(at.join("cmdline")).ok()?;
    let words = line.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    let words = words.map(|word| OsString::from_vec(word.to_vec())).collect();
    // Its own user and root may read where it was started.
    Some((words, std::fs::read_link(at.join("cwd")).unwrap_or_default()))
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

    #[test]
    fn the_array_file_is_found_among_options() {
        let of = |words: &[&str]| {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            named_file(&words).map(|word| word.to_string_lossy().into_owned())
        };
        let words = ["-q", "--listen", "unix:s", "--without", "d0", "--listen=unix:t", "a.toml"];
        assert_eq!(of(&words).as_deref(), Some("a.toml"));
        assert_eq!(of(&["--json"]), None);
    }
}
