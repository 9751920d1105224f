//! Processor time of this machine and of this process (proc(5): `/proc/stat`, `/proc/self/stat`).

use serde::{Deserialize, Serialize};

/// Fields of the first line of `/proc/stat` that are counted, in its order: user, nice, system, idle, iowait, irq, softirq,
/// steal. Guests' time, which follows, is part of user.
const FIELDS: usize = 8;

/// The counters at a moment; nothing where there is no `/proc`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProcessorSample {
    host: Option<[u64; FIELDS]>,
    own: Option<u64>,
    cores: u32,
}

/// How busy processors were, as shares of the time of all cores, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProcessorUse {
    /// Cores of the machine.
    pub cores: u32,
    /// Busy in all, other programs included.
    pub busy: f64,
    /// In programs.
    pub user: f64,
    /// In the kernel, interrupts included.
    pub system: f64,
    /// Idle while I/O was under way.
    pub io_wait: f64,
    /// Taken by other machines of the same host.
    pub steal: f64,
    /// What of `busy` was this load generator; none where that is not known.
    pub load_generator: Option<f64>,
}

impl ProcessorSample {
    /// Reads them now.
    pub(crate) fn read() -> ProcessorSample {
        let host = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        let own = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
        ProcessorSample::parse(&host, &own)
    }

    fn parse(host: &str, own: &str) -> ProcessorSample {
        let first = host.lines().next().and_then(|line| line.strip_prefix("cpu "));
        let fields: Option<Vec<u64>> = first
            .and_then(|line| line.split_whitespace().take(FIELDS).map(|field| field.parse().ok()).collect());
        let is_core = |line: &&str| line.starts_with("cpu") && !line.starts_with("cpu ");
        // Fields 14 and 15: user and system time. The name before them may have blanks.
        let own = own.rsplit_once(')').and_then(|(_, rest)| {
            let mut times = rest.split_whitespace().skip(11).map(|field| field.parse::<u64>().ok());
            Some(times.next()?? + times.next()??)
        });
        ProcessorSample {
            host: fields.and_then(|fields| fields.try_into().ok()),
            own,
            cores: host.lines().filter(is_core).count() as u32,
        }
    }

    /// What was used until `later`.
    pub(crate) fn since(&self, later: &ProcessorSample) -> Option<ProcessorUse> {
        let (before, after) = (self.host?, later.host?);
        let mut spent = [0; FIELDS];
        for (index, spent) in spent.iter_mut().enumerate() {
            // The kernel sometimes counts iowait backwards (proc(5)).
            *spent = after[index].saturating_sub(before[index]);
        }
        let all: u64 = spent.iter().sum();
        let share = |ticks: u64| ticks as f64 / all as f64;
        let [user, nice, system, _, io_wait, irq, soft_irq, steal] = spent;
        let own = self.own.zip(later.own).map(|(before, after)| share(after.saturating_sub(before)));
        (all > 0).then(|| ProcessorUse {
            cores: later.cores,
            busy: share(user + nice + system + irq + soft_irq),
            user: share(user + nice),
            system: share(system + irq + soft_irq),
            io_wait: share(io_wait),
            steal: share(steal),
            load_generator: own,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "42 (a b) c) S 1 2 3 4 5 6 7 8 9 10 100 50 0 0 20 0";

    #[test]
    fn shares_are_differences() {
        let before = ProcessorSample::parse("cpu  100 0 50 800 50 0 0 0 0 0\ncpu0 1\ncpu1 2\nintr 5\n", OWN);
        let own = OWN.replace(" 100 50 ", " 150 100 ");
        let after = ProcessorSample::parse("cpu  400 0 150 1200 150 50 50 0 9 9\ncpu0 1\ncpu1 2\n", &own);
        let used = before.since(&after).expect("it was measured");
        assert_eq!((used.cores, used.busy, used.user, used.system), (2, 0.5, 0.3, 0.2));
        assert_eq!((used.io_wait, used.steal, used.load_generator), (0.1, 0.0, Some(0.1)));
    }

    #[test]
    fn what_cannot_be_read_is_not_zero() {
        let nothing = ProcessorSample::parse("", "");
        assert_eq!(nothing, ProcessorSample::default());
        assert_eq!(nothing.since(&nothing), None);
        let odd = ProcessorSample::parse("cpu  1 2 x\n", "42 (a");
        assert_eq!(odd.since(&odd), None);
        let still = ProcessorSample::parse("cpu  1 2 3 4 5 6 7 8\n", OWN);
        assert_eq!(still.since(&still), None, "no time has passed");
    }
}
