//! Counters of an object. What was not measured is absent, never 0.

use serde::Serialize;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(usize)]
pub enum Counter {
    /// Read I/Os that left the database for the operating system or the storage.
    Reads,
    /// Write I/Os.
    Writes,
    /// Bytes of them.
    ReadBytes,
    /// Bytes of them.
    WriteBytes,
    /// Milliseconds that reads took, summed.
    ReadMs,
    /// Milliseconds that writes took, summed.
    WriteMs,
    /// Milliseconds that I/Os of both kinds took, where they are not told apart.
    StallMs,
    /// Page requests that the database's memory served.
    Hits,
    /// Rows that sequential scans read.
    SequentialRows,
    /// Rows that were fetched by an index.
    IndexRows,
    /// Rows or index entries that were written, by which an instance's writes are shared out where objects have none.
    ChangedRows,
}

/// How many there are.
const COUNTERS: usize = Counter::ChangedRows as usize + 1;

/// Values of counters, since a start or over a period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Counts([Option<f64>; COUNTERS]);

impl Counts {
    /// The value of a counter, if it was measured.
    pub fn get(&self, counter: Counter) -> Option<f64> {
        self.0[counter as usize]
    }

    /// Sets the value of a counter; values that are negative or no numbers are not measured.
    pub fn set(&mut self, counter: Counter, value: Option<f64>) {
        self.0[counter as usize] = value.filter(|value| value.is_finite() && *value >= 0.0);
    }

    /// These counts with this one.
    #[must_use]
    pub fn with(mut self, counter: Counter, value: impl Into<Option<f64>>) -> Counts {
        self.set(counter, value.into());
        self
    }

    /// Whether a counter is below its earlier value: whatever counts it has started again.
    pub fn fell_below(&self, earlier: &Counts) -> bool {
        let pairs = self.0.iter().zip(&earlier.0);
        pairs.filter_map(|(now, then)| Some(((*now)?, (*then)?))).any(|(now, then)| now < then)
    }

    /// What was counted between an earlier value and this one. A counter that one of them lacks is not measured.
    #[must_use]
    pub fn since(&self, earlier: &Counts) -> Counts {
        let of = |(now, then): (&Option<f64>, &Option<f64>)| Some(((*now)? - (*then)?).max(0.0));
        Counts(std::array::from_fn(|at| of((&self.0[at], &earlier.0[at]))))
    }

    /// Adds those of a further period. What only one of the two has measured counts as it is.
    pub fn add(&mut self, other: &Counts) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine = match (*mine, *theirs) {
                (Some(mine), Some(theirs)) => Some(mine + theirs),
                (mine, theirs) => mine.or(theirs),
            };
        }
    }

    /// Reads and writes, if both were measured, or the one that was.
    pub fn ios(&self) -> Option<f64> {
        sum(self.get(Counter::Reads), self.get(Counter::Writes))
    }

    /// Bytes of both directions.
    pub fn bytes(&self) -> Option<f64> {
        sum(self.get(Counter::ReadBytes), self.get(Counter::WriteBytes))
    }

    /// Milliseconds that all I/Os took.
    pub fn wait_ms(&self) -> Option<f64> {
        self.get(Counter::StallMs).or_else(|| sum(self.get(Counter::ReadMs), self.get(Counter::WriteMs)))
    }

    /// Milliseconds that reads took; where reads and writes are not told apart, their share by number of I/Os.
    pub fn read_wait_ms(&self) -> Option<f64> {
        if let Some(measured) = self.get(Counter::ReadMs) {
            return Some(measured);
        }
        let stall = self.get(Counter::StallMs)?;
        Some(stall * self.get(Counter::Reads)? / self.ios()?.max(1.0))
    }

    /// Mean milliseconds of an I/O; of one direction, where only that is timed.
    pub fn ms_per_io(&self) -> Option<f64> {
        if let Some(stall) = self.get(Counter::StallMs) {
            return ratio(Some(stall), self.ios());
        }
        let timed = |ms: Counter, count: Counter| Some((self.get(ms)?, self.get(count)?));
        let directions = [timed(Counter::ReadMs, Counter::Reads), timed(Counter::WriteMs, Counter::Writes)];
        let sums = directions.into_iter().flatten().reduce(|one, other| (one.0 + other.0, one.1 + other.1));
        ratio(sums.map(|(ms, _)| ms), sums.map(|(_, count)| count))
    }

    /// Mean milliseconds of a read, where reads are measured on their own.
    pub fn ms_per_read(&self) -> Option<f64> {
        ratio(self.get(Counter::ReadMs), self.get(Counter::Reads))
    }

    /// Mean milliseconds of a write, where writes are measured on their own.
    pub fn ms_per_write(&self) -> Option<f64> {
        ratio(self.get(Counter::WriteMs), self.get(Counter::Writes))
    }

    /// Mean bytes of a read.
    pub fn bytes_per_read(&self) -> Option<f64> {
        ratio(self.get(Counter::ReadBytes), self.get(Counter::Reads))
    }

    /// The share of page requests that the database's memory served.
    pub fn hit_share(&self) -> Option<f64> {
        let (hits, reads) = (self.get(Counter::Hits)?, self.get(Counter::Reads)?);
        (hits + reads > 0.0).then(|| hits / (hits + reads))
    }

    /// The share of rows that sequential scans read.
    pub fn sequential_share(&self) -> Option<f64> {
        let scanned = self.get(Counter::SequentialRows)?;
        let all = scanned + self.get(Counter::IndexRows).unwrap_or(0.0);
        (all > 0.0).then(|| scanned / all)
    }
}

fn sum(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one + other),
        (one, other) => one.or(other),
    }
}

/// A quotient; none of nothing.
fn ratio(of: Option<f64>, over: Option<f64>) -> Option<f64> {
    let (of, over) = (of?, over?);
    (over > 0.0).then(|| of / over)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_measured_is_not_zero() {
        let counts = Counts::default().with(Counter::Reads, 10.0);
        assert_eq!(counts.get(Counter::Writes), None);
        assert_eq!(counts.wait_ms(), None);
        assert_eq!(counts.ms_per_io(), None);
        assert_eq!(counts.since(&Counts::default()).get(Counter::Reads), None);
        assert_eq!(Counts::default().with(Counter::Reads, f64::NAN).get(Counter::Reads), None);
        assert_eq!(Counts::default().with(Counter::Reads, -1.0).get(Counter::Reads), None);
    }

    #[test]
    fn a_combined_stall_is_shared_by_number() {
        let counts = Counts::default()
            .with(Counter::Reads, 300.0)
            .with(Counter::Writes, 100.0)
            .with(Counter::StallMs, 4000.0);
        assert_eq!(counts.read_wait_ms(), Some(3000.0));
        assert_eq!(counts.ms_per_io(), Some(10.0));
        assert_eq!(counts.ms_per_read(), None, "it was not measured");
    }

    #[test]
    fn writes_that_are_not_timed_are_not_fast() {
        let counts = Counts::default()
            .with(Counter::Reads, 100.0)
            .with(Counter::ReadMs, 800.0)
            .with(Counter::Writes, 900.0);
        assert_eq!(counts.ms_per_io(), Some(8.0));
        assert_eq!(counts.with(Counter::WriteMs, 200.0).ms_per_io(), Some(1.0));
    }
}
