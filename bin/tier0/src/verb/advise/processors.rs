//! The processors of this host, and the time that a database server takes of them, as the kernel counts both (proc(5)).

use tier0_advisor::samples::HostCounters;

/// Their times since boot; none where the kernel does not say.
pub(super) fn processors() -> Option<HostCounters> {
    parse(&std::fs::read_to_string("/proc/stat").ok()?)
}

/// `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal, guest, guest_nice; user has guest in it.
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

/// Milliseconds that the processes of a server have taken since it started: the parent of `session`, which is one of them, all that
/// it has now and all that have ended. None where `session` is no process of `program` here: the server may be in a container.
pub(super) fn server_ms(session: i32, program: &str) -> Option<f64> {
    let server = Process::of(session).filter(|process| process.program == program)?.parent;
    let own = Process::of(server).filter(|process| process.program == program)?;
    let others = std::fs::read_dir("/proc").ok()?.filter_map(|entry| {
        let number: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        Process::of(number).filter(|process| process.parent == server)
    });
    let ticks = own.ticks + others.map(|process| process.ticks).sum::<u64>();
    Some(ticks as f64 * 1e3 / rustix::param::clock_ticks_per_second() as f64)
}

/// Milliseconds that the one process of a server has taken since it started: that which the server names, or the only one of its
/// programs on this host. None where several may be meant.
pub(super) fn process_ms(named: Option<i32>, programs: &[&str]) -> Option<f64> {
    let is_one = |process: &Process| programs.contains(&process.program.as_str());
    let found = named.and_then(Process::of).filter(is_one).or_else(|| {
        let numbers = std::fs::read_dir("/proc")
            .ok()?
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        let mut processes = numbers.filter_map(Process::of).filter(is_one);
        let only = processes.next()?;
        processes.next().is_none().then_some(only)
    });
    found.map(|process| process.ticks as f64 * 1e3 / rustix::param::clock_ticks_per_second() as f64)
}

/// A process.
#[derive(Debug, PartialEq)]
struct Process {
    program: String,
    parent: i32,
    /// Its time and that of its children that have ended.
    ticks: u64,
}

impl Process {
    fn of(number: i32) -> Option<Process> {
        Process::parse(&std::fs::read_to_string(format!("/proc/{number}/stat")).ok()?)
    }

    /// `/proc/NUMBER/stat`: number, (name), state, parent, and from the fourteenth on utime, stime, cutime, cstime. The name may have
    /// blanks and parentheses.
    fn parse(text: &str) -> Option<Process> {
        let (before, after) = text.rsplit_once(')')?;
        let fields: Vec<&str> = after.split_whitespace().collect();
        let ticks = fields.get(11..15)?.iter().map(|field| field.parse::<u64>().ok());
        Some(Process {
            program: before.split_once('(')?.1.to_owned(),
            parent: fields.get(1)?.parse().ok()?,
            ticks: ticks.sum::<Option<u64>>()?,
        })
    }
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

    #[test]
    fn a_process_is_read_whatever_its_name_is() {
        let process = Process::parse("42 (a) (b) S 7 2 3 4 5 6 7 8 9 10 100 50 20 4 20 0 1 0\n");
        assert_eq!(process, Some(Process { program: "a) (b".into(), parent: 7, ticks: 174 }));
        assert!(Process::parse("42 (a) S 7 2").is_none() && Process::parse("").is_none());
    }

    #[test]
    fn a_process_of_another_program_is_no_server() {
        let own = std::process::id() as i32;
        assert!(Process::of(own).is_some());
        assert_eq!(server_ms(own, "postgres"), None);
        let program = Process::of(own).expect("it runs").program;
        assert!(process_ms(Some(own), &[&program]).is_some());
        assert_eq!(process_ms(Some(own), &["no program"]), None);
    }
}
