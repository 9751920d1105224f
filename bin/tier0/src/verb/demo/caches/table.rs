//! What people see of the phases: the introduction, a row a second, the summary.

use std::path::Path;

use tier0_units::{ByteCount, Nanos, counted};

use super::modelled::{DATA, DISK, DISKS, FLASH, PAGE, VOLUME_SIZE};
use super::phases::{Figures, Phase, PhaseReport};
use super::{Caches, QUEUE_DEPTH, READ_PERCENT, ZIPF};
use crate::output::{align_right, print, rendered, table, thousands};

/// What is made, and what is done with it.
pub(super) fn introduction(directory: &Path) -> String {
    format!(
        "\nWhat caches are worth, on an array of {DISKS} x {DISK} as raid10 and one {FLASH}: each request takes\n\
         as long as the modelled drive would take, by the clock on the wall. The data lie in sparse files.\n\
         The load: {PAGE} pages, zipf({ZIPF}) over {DATA} in a volume of {VOLUME_SIZE}, {READ_PERCENT:.0} % reads, {QUEUE_DEPTH} outstanding,\n\
         every page checked. It goes on while the caches are added. The write log lies on two of the disks, so\n\
         writes wait for disks in all phases; a log on flash would make them fast. To look yourself meanwhile:\n\
         \x20 tier0 iostat {} 1\n\n",
        super::modelled::file(directory).display()
    )
}

/// One row per second while the phases go on.
pub(super) struct LiveTable {
    shown: bool,
    /// Of the seconds.
    decimals: usize,
    rows: u32,
    elapsed_s: f64,
}

impl LiveTable {
    /// Prints only if `shown`. Its seconds have a decimal where phases do not last whole ones.
    pub(super) fn new(shown: bool, phases: &[Nanos]) -> LiveTable {
        let is_whole = phases.iter().all(|time| time.0.is_multiple_of(Nanos::from_secs(1).0));
        LiveTable { shown, decimals: usize::from(!is_whole), rows: 0, elapsed_s: 0.0 }
    }

    /// Says which command does what is done now.
    pub(super) fn command(&self, command: &str) {
        self.print(&format!("  $ {command}\n"));
    }

    /// Adds a row.
    pub(super) fn push(&mut self, phase: Phase, figures: &Figures) {
        self.elapsed_s += figures.seconds;
        if self.rows == 0 {
            self.print(&header());
        }
        self.rows += 1;
        let [memory, flash, disks] = figures.shares().map(percent);
        self.print(&line([
            &format!("{:.*}", self.decimals, self.elapsed_s),
            phase.name(),
            &thousands(figures.iops),
            &latency(figures.read_ns_mean),
            &latency(figures.read_ns_p99),
            &latency(figures.write_ns_mean),
            &memory,
            &flash,
            &disks,
        ]));
    }

    fn print(&self, text: &str) {
        if self.shown {
            // Where stdout is closed, the tables that follow say so.
            let _ = print(text);
        }
    }
}

fn header() -> String {
    let over = format!("{:>68}\n", "reads answered by");
    over + &line(["second", "", "IOPS", "read", "p99", "write", "memory", "flash", "disks"])
}

fn line(cells: [&str; 9]) -> String {
    let [second, phase, iops, read, p99, write, memory, flash, disks] = cells;
    format!(
        " {second:>6}  {phase:<11}  {iops:>7}  {read:>7}  {p99:>7}  {write:>7}  {memory:>7}  {flash:>7}  {disks:>7}\n"
    )
}

/// The end of each phase, beside each other.
pub(super) fn summary(caches: &Caches) -> String {
    let mut table = table(&["", "IOPS", "read", "p99", "write", "memory", "flash", "disks", "reads faster"]);
    let first = caches.phases.first().and_then(|phase| phase.at_end.read_ns_mean);
    for (number, PhaseReport { phase, at_end, .. }) in caches.phases.iter().enumerate() {
        let [memory, flash, disks] = at_end.shares().map(percent);
        table.add_row([
            phase.name().to_owned(),
            thousands(at_end.iops),
            latency(at_end.read_ns_mean),
            latency(at_end.read_ns_p99),
            latency(at_end.write_ns_mean),
            memory,
            flash,
            disks,
            if number == 0 { String::new() } else { faster(first, at_end.read_ns_mean) },
        ]);
    }
    align_right(&mut table, 1..9);
    format!(
        "\n{}\n\nMeasured, at the end of each phase: memory had room for {}, flash for all {}.\n\
         Alone, these disks may do more than those predicted above: what is hot is in their own buffers, and\n\
         what they hold lies close together.\n{}",
        rendered(&table),
        mib(caches.memory_bytes),
        mib(caches.data_bytes),
        slow_flash(caches.phases.iter().map(PhaseReport::flash_slow_reads).sum())
    )
}

/// Why flash answers less than it could, where it was slow.
fn slow_flash(reads: u64) -> String {
    if reads == 0 {
        return String::new();
    }
    format!(
        "\nFlash did not answer {} in time, so disks did. After several in a row the array leaves the drive alone\n\
         for some seconds. A modelled SSD is that slow where this machine is busy with other work.\n",
        counted(reads, "read")
    )
}

/// By which factor a latency is less than the first.
fn faster(first: Option<u64>, now: Option<u64>) -> String {
    match first.zip(now) {
        Some((first, now)) if now > 0 => format!("{:.1} x", first as f64 / now as f64),
        _ => String::new(),
    }
}

fn mib(bytes: u64) -> String {
    ByteCount::mib((bytes + (1 << 19)) >> 20).to_string()
}

fn latency(nanos: Option<u64>) -> String {
    nanos.map_or_else(String::new, |nanos| Nanos(nanos).to_string())
}

fn percent(share: f64) -> String {
    format!("{share:.1} %")
}
