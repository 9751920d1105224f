//! What demos left behind that were killed before they could clear away.

use std::fs::{File, Metadata, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tier0_units::ByteCount;

/// What a temporary directory's name begins with: the number of its process and more follow.
const PREFIX: &str = "tier0-demo-";

/// The beginning of the name of this process's directory.
pub(super) fn prefix() -> String {
    format!("{PREFIX}{}-", std::process::id())
}

/// Removes the directories of this user's demos in `temporary` that have ended without that, and says which.
pub(super) fn remove(temporary: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(temporary).into_iter().flatten().flatten();
    let left = entries.map(|entry| entry.path()).filter(|path| is_left(path));
    left.filter_map(|path| {
        let size = ByteCount(size_of(&path));
        let removed = std::fs::remove_dir_all(&path).is_ok();
        removed.then(|| format!("removed {}, {size} that a demo left which was killed", path.display()))
    })
    .collect()
}

fn is_left(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let number = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
    let Some(process) = number.and_then(|number| number.parse::<u32>().ok()) else { return false };
    let is_ours = |found: &Metadata| found.is_dir() && found.uid() == rustix::process::geteuid().as_raw();
    let ours = std::fs::symlink_metadata(path).is_ok_and(|found| is_ours(&found));
    // The process may live where its number is not known here; then its drives are locked.
    ours && !PathBuf::from(format!("/proc/{process}")).exists() && !is_in_use(path)
}

fn is_in_use(directory: &Path) -> bool {
    let Ok(drive) = File::open(directory.join("drive0.img")) else { return false };
    matches!(drive.try_lock(), Err(TryLockError::WouldBlock))
}

fn size_of(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let sizes = entries.filter_map(|entry| {
        let found = entry.metadata().ok()?;
        Some(if found.is_dir() { size_of(&entry.path()) } else { found.blocks() * 512 })
    });
    sizes.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A demo that was killed left 513 MB in the temporary directory, for good.
    #[test]
    fn only_what_dead_demos_left_is_removed() {
        let temporary = tempfile::tempdir().expect("a directory");
        let at = |name: &str| temporary.path().join(name);
        // No process has this number: Linux gives at most 2^22.
        let dead = at("tier0-demo-4294967295-abc");
        let locked = at("tier0-demo-4294967295-def");
        let kept = [at(&format!("{}x", prefix())), at("tier0-demo-x"), at("something"), locked.clone()];
        for path in kept.iter().chain([&dead]) {
            std::fs::create_dir(path).expect("a directory");
            std::fs::write(path.join("drive0.img"), [1; 4096]).expect("a file");
        }
        let lock = File::open(locked.join("drive0.img")).expect("a file");
        lock.lock().expect("a lock");
        let told = remove(temporary.path());
        assert!(matches!(&told[..], [told] if told.contains("abc") && told.contains("4KiB")), "{told:?}");
        assert!(!dead.exists() && kept.iter().all(|path| path.exists()));
    }
}
