//! What people see of the phases: the introduction, a row a second, the summary.

use std::path::Path;

use tier0_units::{ByteCount, Nanos, counted};

use super::super::{COLUMNS, paragraph};
use super::modelled::{DATA, DISK, DISKS, FLASH, PAGE, VOLUME_SIZE};
use super::phases::{Figures, Phase, PhaseReport};
use super::{Caches, QUEUE_DEPTH, READ_PERCENT, ZIPF};
use crate::mounting::command;
use crate::output::{print, thousands};

/// What is made, and what is done with it.
pub(super) fn introduction(directory: &Path) -> String {
    let text = format!(
        "What caches are worth, on an array of {DISKS} x {DISK} as raid10 and one {FLASH}: each request takes as long as the \
         modelled drive would take, by the clock on the wall. The data lie in sparse files. The load: {PAGE} pages, \
         zipf({ZIPF}) over {DATA} in a volume of {VOLUME_SIZE}, {READ_PERCENT:.0} % reads, {QUEUE_DEPTH} outstanding, every \
         page checked. It goes on while the caches are added. The write log lies on two of the disks, so writes wait for \
         disks in all phases; a log on flash would make them fast. To look yourself meanwhile:"
    );
    let file = super::modelled::file(directory).display().to_string();
    let look = command(&["tier0 iostat".to_owned(), file, "1".to_owned()]);
    format!("\n{}\n{look}\n\n", paragraph(&text))
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
    let over = format!("{:>77}\n", "reads answered by");
    over + &line(["second", "", "IOPS", "read", "p99", "write", "memory", "flash", "disks"])
}

fn line(cells: [&str; 9]) -> String {
    let [second, phase, iops, read, p99, write, memory, flash, disks] = cells;
    format!(
        " {second:>5}  {phase:<11}  {iops:>7}  {read:>7}  {p99:>7}  {write:>7}  {memory:>6}  {flash:>6}  {disks:>6}\n"
    )
}

/// The end of each phase, beside each other; before that, what speaks against it.
pub(super) fn summary(caches: &Caches) -> String {
    let mut text = busy(caches).map_or_else(String::new, |busy| format!("\n{}\n", paragraph(&busy)));
    text += &format!("\n{}", row(["", "IOPS", "read", "p99", "write", "memory", "flash", "disks", "faster"]));
    text += &format!("{}\n", "─".repeat(COLUMNS - 1));
    let first = caches.phases.first().and_then(|phase| phase.at_end.read_ns_mean);
    for (number, PhaseReport { phase, at_end, .. }) in caches.phases.iter().enumerate() {
        let [memory, flash, disks] = at_end.shares().map(percent);
        let faster = if number == 0 { None } else { faster(first, at_end.read_ns_mean) };
        text += &row([
            phase.name(),
            &thousands(at_end.iops),
            &latency(at_end.read_ns_mean),
            &latency(at_end.read_ns_p99),
            &latency(at_end.write_ns_mean),
            &memory,
            &flash,
            &disks,
            &faster.map_or_else(String::new, factor),
        ]);
    }
    let told = format!(
        "Measured, at the end of each phase: memory had room for {}, flash for all {}. Faster: how many times less a read \
         takes than from disks alone. Alone, these disks may do more than those predicted above: what is hot is in their \
         own buffers, and what they hold lies close together.",
        mib(caches.memory_bytes),
        mib(caches.data_bytes),
    );
    text += &format!("\n{}\n", paragraph(&told));
    let slow = slow_flash(caches.phases.iter().map(PhaseReport::flash_slow_reads).sum());
    text + &slow.map_or_else(String::new, |slow| format!("\n{}\n", paragraph(&slow)))
}

fn row(cells: [&str; 9]) -> String {
    let [phase, iops, read, p99, write, memory, flash, disks, faster] = cells;
    let row = format!(
        " {phase:<11}  {iops:>7}  {read:>7}  {p99:>7}  {write:>7}  {memory:>6}  {flash:>6}  {disks:>6}  {faster:>6}"
    );
    format!("{}\n", row.trim_end())
}

/// What makes the figures say little: a machine that is busy with other work is not as fast as the drives that it plays.
fn busy(caches: &Caches) -> Option<String> {
    let is_off = caches.flash_devices_off > 0;
    let means: Vec<Option<u64>> = caches.phases.iter().map(|phase| phase.at_end.read_ns_mean).collect();
    let (first, others) = means.split_first()?;
    let is_slower = others.iter().filter_map(|mean| faster(*first, *mean)).any(|faster| faster < 1.0);
    if !is_off && !is_slower {
        return None;
    }
    let mut told = String::from("These figures do not show what the caches are worth: ");
    told += match (is_slower, is_off) {
        (true, true) => {
            "reads became slower when a cache was added, and the modelled SSD was so late that the array switched the flash \
             cache off."
        }
        (true, false) => "reads became slower when a cache was added.",
        (false, _) => "the modelled SSD was so late that the array switched the flash cache off.",
    };
    told += " Modelled drives are that slow only where this machine is busy with other work";
    if let Some((load, cores)) = caches.load_average.zip(std::thread::available_parallelism().ok()) {
        told += &format!(" (its load average is {load:.1} on {})", counted(cores.get() as u64, "core"));
    }
    Some(told + ". Run the demo again when it has less to do.")
}

/// Why flash answers less than it could, where it was slow.
fn slow_flash(reads: u64) -> Option<String> {
    (reads > 0).then(|| {
        format!(
            "Flash did not answer {} in time, so disks did. After several in a row the array leaves the drive alone for some \
             seconds. A modelled SSD is that slow where this machine is busy with other work.",
            counted(reads, "read")
        )
    })
}

fn factor(factor: f64) -> String {
    if factor < 9.95 { format!("{factor:.1} x") } else { format!("{factor:.0} x") }
}

/// By which factor a latency is less than the first.
fn faster(first: Option<u64>, now: Option<u64>) -> Option<f64> {
    first.zip(now).filter(|(_, now)| *now > 0).map(|(first, now)| first as f64 / now as f64)
}

fn mib(bytes: u64) -> String {
    ByteCount::mib((bytes + (1 << 19)) >> 20).to_string()
}

fn latency(nanos: Option<u64>) -> String {
    nanos.map_or_else(String::new, |nanos| Nanos(nanos).to_string())
}

fn percent(share: f64) -> String {
    if share < 9.95 { format!("{share:.1} %") } else { format!("{share:.0} %") }
}

#[cfg(test)]
mod tests {
    use super::super::phases::figures;
    use super::*;

    fn caches(read_ns: [u64; 3], flash_devices_off: u64) -> Caches {
        let report = |(phase, mean)| PhaseReport::new(phase, figures(123_456.0, mean));
        Caches {
            disks: DISK,
            disks_count: DISKS,
            flash: FLASH,
            data_bytes: DATA.0,
            memory_bytes: 12 << 20,
            flash_bytes: 1 << 30,
            flash_devices_off,
            load_average: Some(13.3),
            phases: Phase::ALL.into_iter().zip(read_ns).map(report).collect(),
        }
    }

    fn assert_fits(text: &str) {
        assert!(text.lines().all(|line| line.chars().count() <= COLUMNS), "{text}");
    }

    /// Rows were 82 columns wide, and a terminal of 80 cut them.
    #[test]
    fn what_is_shown_fits_a_terminal() {
        assert_fits(&introduction(Path::new("/tmp/tier0-demo-1234567-abcdef/caches")));
        assert_fits(&header());
        let widest =
            ["100.5", "disks alone", "123,456", "99.9 ms", "99.9 ms", "99.9 ms", "100 %", "100 %", "100 %"];
        assert_fits(&line(widest));
        assert_fits(&summary(&caches([10_000_000, 11_000_000, 10_000], 1)));
    }

    /// A busy machine had the demo show reads that were "0.9 x" as fast, and nothing said why.
    #[test]
    fn a_busy_machine_is_told_before_the_figures() {
        let quiet = summary(&caches([10_000_000, 5_000_000, 1_000_000], 0));
        assert!(quiet.contains("10 x") && !quiet.contains("busy with other work"), "{quiet}");
        for (read_ns, devices_off, told) in [
            ([10_000_000, 11_000_000, 1_000_000], 0, "reads became slower when a cache was added."),
            ([10_000_000, 5_000_000, 1_000_000], 1, "switched the flash cache off."),
        ] {
            let busy = summary(&caches(read_ns, devices_off)).replace('\n', " ");
            let (told, table) = (busy.find(told), busy.find("memory  "));
            assert!(told.is_some() && told < table, "{busy}");
            assert!(busy.contains("load average is 13.3 on"), "{busy}");
        }
    }
}
