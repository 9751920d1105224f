//! What is measured of the host without the run: processor time, and the memory that is left for the page cache.

use std::fmt;

use crate::error::BenchError;

/// Figures for the `[host]` of a prediction.
#[derive(Clone, Debug)]
pub(super) struct Host {
    /// Cores of the machine.
    pub(super) cores: usize,
    /// Processor time of an I/O through file system, nbdfuse and array, the load generator's own included.
    pub(super) io_us: f64,
    /// Memory of PostgreSQL's processes and of the kernel for them, bytes: at most, while users are connected.
    pub(super) process_bytes: u64,
    /// What the control group has left for pages of files.
    pub(super) page_cache_bytes: u64,
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.0} µs of processor time for an I/O; {} MiB of memory for PostgreSQL's processes, so that {} MiB are left for the \
             page cache",
            self.io_us,
            self.process_bytes >> 20,
            self.page_cache_bytes >> 20
        )
    }
}

/// Processor time that all cores have spent at work since the machine began, seconds.
pub(super) fn busy_s() -> Result<f64, BenchError> {
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
    fn idle_time_is_no_work() {
        assert_eq!(busy_ticks("cpu  10 1 5 800 50 2 3 9 0 0\ncpu0 1\n"), Some(21));
        assert_eq!(busy_ticks("cpu0 1 2"), None);
    }
}
