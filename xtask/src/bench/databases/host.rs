//! What is measured of the host without the run: processor time, and the memory that is left for the page cache.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::error::BenchError;

/// Figures for the `[host]` of a prediction.
#[derive(Clone, Debug)]
pub(super) struct Host {
    /// Cores of the machine.
    pub(super) cores: usize,
    /// Processor time of a transaction in memory, the load generator's included, milliseconds.
    pub(super) transaction_ms: f64,
    /// Processor time of an I/O through file system, nbdfuse and array, the load generator's own included.
    pub(super) io_us: f64,
    /// Memory of PostgreSQL's processes beside shared buffers, bytes: at most, while users are connected.
    pub(super) process_bytes: u64,
    /// What the control group has left for pages of files.
    pub(super) page_cache_bytes: u64,
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.2} ms of processor time for a transaction, {:.0} µs for an I/O; {} MiB of memory for PostgreSQL's processes, so that {} MiB are left for the \
             page cache",
            self.transaction_ms,
            self.io_us,
            self.process_bytes >> 20,
            self.page_cache_bytes >> 20
        )
    }
}

/// A control group for the processor time of this program and all that it starts: on a shared machine, the time of all processors
/// is that of others too.
pub(super) struct ProcessorGroup {
    /// Its directory, and that of the group in which this program was; none where the system has no such groups.
    places: Option<(PathBuf, PathBuf)>,
}

impl ProcessorGroup {
    /// Enters one. Without version 1 of control groups, the time is that of the whole machine.
    pub(super) fn enter() -> Result<ProcessorGroup, BenchError> {
        let hierarchy = ["cpuacct", "cpu,cpuacct"].map(|name| Path::new("/sys/fs/cgroup").join(name));
        let Some(hierarchy) = hierarchy.into_iter().find(|place| place.join("cpuacct.usage").exists()) else {
            return Ok(ProcessorGroup { places: None });
        };
        let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let own = hierarchy.join(own_group(&own).unwrap_or_default().trim_start_matches('/'));
        let group = hierarchy.join(format!("tier0-databases-{}", std::process::id()));
        std::fs::create_dir(&group)
            .map_err(BenchError::system(format!("the control group {} cannot be made", group.display())))?;
        let entered = ProcessorGroup { places: Some((group.clone(), own)) };
        move_to(&group)?;
        Ok(entered)
    }

    /// Processor time that was spent in it so far, seconds.
    pub(super) fn spent_s(&self) -> Result<f64, BenchError> {
        let Some((group, _)) = &self.places else { return busy_s() };
        let usage = std::fs::read_to_string(group.join("cpuacct.usage"));
        let usage =
            usage.map_err(BenchError::system("the processor time of the control group cannot be read"))?;
        let nanos: Result<u64, _> = usage.trim().parse();
        nanos.map(|nanos| nanos as f64 / 1e9).map_err(|error| {
            BenchError::Failed(format!(
                "the processor time of the control group has an unknown form: {error}"
            ))
        })
    }
}

impl Drop for ProcessorGroup {
    fn drop(&mut self) {
        let Some((group, own)) = &self.places else { return };
        // What it started has ended before; where something has not, the group stays, and that is told.
        if move_to(own).is_err() || std::fs::remove_dir(group).is_err() {
            eprintln!(
                "the control group {} stays: a process is still in it; remove it with rmdir",
                group.display()
            );
        }
    }
}

fn move_to(group: &Path) -> Result<(), BenchError> {
    std::fs::write(group.join("cgroup.procs"), std::process::id().to_string())
        .map_err(BenchError::system(format!("the control group {} cannot be entered", group.display())))
}

/// The group of a process by its cgroup file, "NUMBER:CONTROLLERS:PATH" (cgroups(7)).
fn own_group(file: &str) -> Option<&str> {
    file.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let controllers = fields.next()?;
        let path = fields.next()?;
        controllers.split(',').any(|one| one == "cpuacct").then_some(path)
    })
}

/// Processor time that all cores have spent at work since the machine began, seconds.
fn busy_s() -> Result<f64, BenchError> {
    let stat =
        std::fs::read_to_string("/proc/stat").map_err(BenchError::system("/proc/stat cannot be read"))?;
    busy_ticks(&stat)
        .map(|ticks| ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
        .ok_or_else(|| BenchError::Failed("/proc/stat has an unknown form".into()))
}

/// User, nice, system, irq and softirq of the first line (proc(5)).
fn busy_ticks(stat: &str) -> Option<u64> {
    let fields = stat.lines().next()?.strip_prefix("cpu ")?;
    let fields: Vec<u64> = fields.split_whitespace().map_while(|field| field.parse().ok()).collect();
    let [user, nice, system, _, _, irq, soft_irq, ..] = fields[..] else { return None };
    Some(user + nice + system + irq + soft_irq)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_group_is_found() {
        assert_eq!(own_group("5:cpu,cpuacct:/a\n4:memory:/b\n"), Some("/a"));
        assert_eq!(own_group("0::/d\n"), None);
    }

    #[test]
    fn idle_time_is_no_work() {
        assert_eq!(busy_ticks("cpu  10 1 5 800 50 2 3 9 0 0\ncpu0 1\n"), Some(21));
        assert_eq!(busy_ticks("cpu0 1 2"), None);
    }
}
