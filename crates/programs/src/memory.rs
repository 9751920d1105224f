//! A control group that limits the memory of programs, their page cache included; removed when it is dropped.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::ProgramError;
use crate::clock::pause;

/// How often the removal is tried, and how long apart: its processes may be ending.
const REMOVALS: u32 = 50;
const LOOK: Duration = Duration::from_millis(100);

/// A control group.
pub struct MemoryGroup {
    places: Option<Places>,
}

struct Places {
    /// Its directory.
    group: PathBuf,
    /// That of the group in which this program is.
    own: PathBuf,
    /// The file that has the limit, and what it holds where there is none.
    limit: (&'static str, &'static str),
}

impl MemoryGroup {
    /// One without a limit. Version 2 where that has the memory controller, else version 1; without either, memory is not
    /// limited ([`MemoryGroup::is_effective`]).
    ///
    /// # Errors
    /// The system does not let this user make one.
    pub fn new() -> Result<MemoryGroup, ProgramError> {
        let root = Path::new("/sys/fs/cgroup");
        let has_memory = std::fs::read_to_string(root.join("cgroup.subtree_control"))
            .is_ok_and(|all| all.split_whitespace().any(|one| one == "memory"));
        let (hierarchy, limit, controller) = match has_memory {
            true => (root.to_owned(), ("memory.max", "max"), ""),
            false => (root.join("memory"), ("memory.limit_in_bytes", "-1"), "memory"),
        };
        let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let own = own_group(&own, controller).map(|own| hierarchy.join(own.trim_start_matches('/')));
        let Some(own) = own.filter(|own| own.join("cgroup.procs").exists()) else {
            return Ok(MemoryGroup { places: None });
        };
        let group = hierarchy.join(format!("tier0-bench-{}", std::process::id()));
        std::fs::create_dir(&group)
            .map_err(ProgramError::system(format!("the control group {} cannot be made", group.display())))?;
        Ok(MemoryGroup { places: Some(Places { group, own, limit }) })
    }

    /// Whether this system has such groups.
    pub fn is_effective(&self) -> bool {
        self.places.is_some()
    }

    /// Sets the limit, bytes, or removes it.
    ///
    /// # Errors
    /// The system refuses it: more is in use that cannot be freed.
    pub fn limit(&self, bytes: Option<u64>) -> Result<(), ProgramError> {
        let Some(Places { group, limit: (file, none), .. }) = &self.places else { return Ok(()) };
        let value = bytes.map_or((*none).to_owned(), |bytes| bytes.to_string());
        std::fs::write(group.join(file), value)
            .map_err(ProgramError::system(format!("{file} of {} cannot be set", group.display())))
    }

    /// What its processes take beside pages of files and shared memory, bytes; none where that cannot be read. Memory of the
    /// kernel is not in it: most of that is given back when memory is short.
    pub fn process_bytes(&self) -> Option<u64> {
        let places = self.places.as_ref()?;
        let stat = std::fs::read_to_string(places.group.join("memory.stat")).ok()?;
        // The name in version 2, then that in version 1.
        field(&stat, "anon").or_else(|| field(&stat, "total_rss"))
    }

    /// Starts what is to live in it: children belong to their parent's group.
    ///
    /// # Errors
    /// Those of `start`; the group cannot be entered or left.
    pub fn holding<T>(&self, start: impl FnOnce() -> Result<T, ProgramError>) -> Result<T, ProgramError> {
        let Some(places) = &self.places else { return start() };
        let enter = |place: &Path| {
            std::fs::write(place.join("cgroup.procs"), std::process::id().to_string())
                .map_err(ProgramError::system(format!("the group {} cannot be entered", place.display())))
        };
        enter(&places.group)?;
        let started = start();
        enter(&places.own)?;
        started
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        let Some(places) = &self.places else { return };
        for _ in 0..REMOVALS {
            if std::fs::remove_dir(&places.group).is_ok() {
                return;
            }
            pause(LOOK);
        }
        eprintln!(
            "the control group {} stays: a process is still in it; remove it with rmdir",
            places.group.display()
        );
    }
}

/// A field of a memory.stat file, "NAME BYTES" on each line.
fn field(stat: &str, name: &str) -> Option<u64> {
    let line = stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line?.trim().parse().ok()
}

/// The group of a process by its cgroup file, "NUMBER:CONTROLLERS:PATH" (cgroups(7)); version 2 names no controllers.
fn own_group<'a>(file: &'a str, controller: &str) -> Option<&'a str> {
    file.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let controllers = fields.next()?;
        let path = fields.next()?;
        controllers.split(',').any(|one| one == controller).then_some(path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_group_is_found_in_both_versions() {
        let file = "5:cpu,cpuacct:/a\n4:memory:/b/c\n0::/d\n";
        assert_eq!(own_group(file, "memory"), Some("/b/c"));
        assert_eq!(own_group(file, ""), Some("/d"));
        assert_eq!(own_group("0::/d\n", "memory"), None);
    }

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let stat = "rss_huge 1\nrss 2\ntotal_rss 3\n";
        assert_eq!(
            (field(stat, "rss"), field(stat, "total_rss"), field(stat, "anon")),
            (Some(2), Some(3), None)
        );
    }
}
