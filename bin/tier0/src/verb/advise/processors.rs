//! The processors of this host, as the kernel counts them.

use tier0_advisor::samples::HostCounters;

/// Their times since boot; none where the kernel does not say.
pub(super) fn processors() -> Option<HostCounters> {
    parse(&std::fs::read_to_string("/proc/stat").ok()?)
}

/// `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal, guest, guest_nice; user has guest in it (proc(5)).
fn parse(text: &str) -> Option<HostCounters> {
    let mut lines = text.lines();
    let all = lines.next()?.strip_prefix("cpu ")?;
    let times: Vec<f64> =
        all.split_whitespace().take(8).map(|word| word.parse().ok()).collect::<Option<_>>()?;
    let (idle, io_wait) = (*times.get(3)?, *times.get(4)?);
    let sum: f64 = times.iter().sum();
    let cores = lines.filter(|line| line.starts_with("cpu")).count();
    Some(HostCounters { cores: cores as f64, busy: sum - idle - io_wait, io_wait, all: sum })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_the_kernel_are_read() {
        let host = parse(
            "cpu  10 1 5 70 12 1 1 0 3 0\ncpu0 5 0 2 35 6 0 0 0 0 0\ncpu1 5 1 3 35 6 1 1 0 0 0\nintr 1\n",
        );
        let host = host.expect("times");
        assert_eq!((host.cores, host.busy, host.io_wait, host.all), (2.0, 18.0, 12.0, 100.0));
        assert!(parse("cpu x\n").is_none() && parse("").is_none());
        assert!(processors().is_some_and(|host| host.cores >= 1.0 && host.all > 0.0));
    }
}
