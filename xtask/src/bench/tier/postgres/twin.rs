//! What virtual time predicts of the same array file under the I/O that the array measured.

use std::fmt;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::super::super::{served, write};
use super::array::{self, HOT_ACCOUNTS, Site, Sizes, Use};
use super::database::Transactions;
use super::{CLIENTS, Extent, Io};
use crate::error::BenchError;

/// What is simulated, and how much of its end counts: a tier is warm by then.
const SIMULATED_S: u32 = 240;
const COUNTED_S: f64 = 120.0;

/// The I/O of disks only.
#[derive(Clone, Debug)]
pub(super) struct Profile {
    /// What a read has, a multiple of a page.
    block_bytes: u64,
    /// Accesses that go to so much of the data, percent.
    access_percent: f64,
    space_percent: f64,
    /// How long a client does something else between two requests than wait for the array.
    think_ms: f64,
    /// Of reads and of the writes that reach the sets together: reads, percent.
    read_percent: f64,
    /// Reads of a transaction.
    reads_per_transaction: f64,
    /// What volumes can use of the flash group.
    flash_usable: u64,
}

impl Profile {
    /// Asks the array, after its measurement.
    pub(super) fn of(
        site: &Site,
        sizes: &Sizes,
        transactions: &Transactions,
        io: &Io,
    ) -> Result<Profile, BenchError> {
        let plan = site.plan()?;
        let status = site.status()?;
        let hot_bytes = f64::from(sizes.database_mib() * HOT_ACCOUNTS / 100) * f64::from(1 << 20);
        let (flash_bytes, share) = nearest(&plan["curve"], hot_bytes)
            .ok_or_else(|| BenchError::Failed(format!("tier0 tier plan has no curve: {plan}")))?;
        let database_bytes = f64::from(sizes.database_mib()) * f64::from(1 << 20);
        // The curve is of accesses that memory did not answer; what it did is hot.
        let access = io.memory_share + (1.0 - io.memory_share) * share;
        let writes_per_s = io.destaged_bytes_per_s / io.read_bytes_mean.max(4096.0);
        let requests_per_s = (io.reads_per_s + writes_per_s).max(1e-9);
        // A client reads, and waits for the write of its commit and for the flush after it, once a transaction.
        let cycle_ms = f64::from(CLIENTS) * 1e3 / io.reads_per_s.max(1e-9);
        let commit_ms =
            (io.write_ms_mean + io.flush_ms_mean) * transactions.per_s() / io.reads_per_s.max(1e-9);
        Ok(Profile {
            block_bytes: ((io.read_bytes_mean / 4096.0).round() as u64).max(1) * 4096,
            access_percent: access * 100.0,
            space_percent: flash_bytes / database_bytes * 100.0,
            think_ms: (cycle_ms - io.read_ms_mean - commit_ms).max(0.0) * io.reads_per_s / requests_per_s,
            read_percent: io.reads_per_s / requests_per_s * 100.0,
            reads_per_transaction: io.reads_per_s / transactions.per_s().max(1e-9),
            flash_usable: served::flash_usable(&status)?,
        })
    }

    fn load_file(&self, sizes: &Sizes) -> String {
        format!(
            "seed = 1\ninterval = \"10s\"\nlimits = {{ time = \"{SIMULATED_S}s\" }}\n\
             [[stream]]\nname = \"load\"\nread_percent = {:.1}\npattern = \"hot-cold:{:.1}/{:.1}\"\nblock = \"{}B\"\n\
             length = \"{}MiB\"\narrival = {{ closed_loop = {{ users = {CLIENTS}, think_time = \"exponential:{:.0}us\" }} }}\n",
            self.read_percent,
            self.access_percent,
            self.space_percent,
            self.block_bytes,
            sizes.database_mib(),
            (self.think_ms * 1e3).max(1.0)
        )
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{CLIENTS} clients, {:.2} ms between two requests of {} KiB, {:.0} % reads and the rest writes that reach the sets, {:.0} % \
             of them in {:.0} % of the data; {:.1} reads per transaction",
            self.think_ms,
            self.block_bytes >> 10,
            self.read_percent,
            self.access_percent,
            self.space_percent,
            self.reads_per_transaction
        )
    }
}

/// The point of a curve of `tier0 tier plan` whose size is nearest to `bytes`: its size, and its share.
fn nearest(curve: &Value, bytes: f64) -> Option<(f64, f64)> {
    let points = curve.as_array()?.iter();
    let points = points.filter_map(|point| Some((point["flash_bytes"].as_f64()?, point["share"].as_f64()?)));
    points.min_by(|one, other| (one.0 - bytes).abs().total_cmp(&(other.0 - bytes).abs()))
}

/// What the twin brings.
#[derive(Clone, Debug)]
pub(super) struct Prediction {
    pub(super) reads_per_s: f64,
    pub(super) read_ms_mean: f64,
}

impl Prediction {
    /// Transactions that take as many reads as on disks only.
    pub(super) fn tps(&self, profile: &Profile) -> f64 {
        self.reads_per_s / profile.reads_per_transaction
    }

    /// The end of a run.
    fn of(told: &Value) -> Option<Prediction> {
        let rows = told["intervals"].as_array()?;
        let end = rows.last()?["start_s"].as_f64()? + rows.last()?["length_s"].as_f64()?;
        let (mut seconds, mut ios, mut time_ms) = (0.0, 0.0, 0.0);
        for row in
            rows.iter().filter(|row| row["start_s"].as_f64().is_some_and(|start| start >= end - COUNTED_S))
        {
            let count = row["read"]["ios"].as_f64()?;
            seconds += row["length_s"].as_f64()?;
            ios += count;
            time_ms += count * row["read"]["latency_ns_mean"].as_f64()? / 1e6;
        }
        Some(Prediction { reads_per_s: ios / seconds, read_ms_mean: time_ms / ios })
    }
}

/// Runs the twin.
pub(super) fn predict(
    program: &Path,
    directory: &Path,
    kind: Use,
    extent: &Extent,
    profile: &Profile,
) -> Result<Prediction, BenchError> {
    let sizes = &extent.sizes;
    let (array, load) = (directory.join("twin.toml"), directory.join("load.toml"));
    let other = (kind == Use::Tier).then(|| array::other_bytes(profile.flash_usable, sizes));
    write(&array, &array::twin(kind, sizes, other))?;
    write(&load, &profile.load_file(sizes))?;
    let output =
        Command::new(program).arg("load").arg(&array).arg("--load").arg(&load).arg("--json").output();
    let output = output.map_err(BenchError::system("tier0 cannot be started"))?;
    let words = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(BenchError::Failed(format!(
            "the twin: tier0 load ends with {}: {}",
            output.status,
            words.trim()
        )));
    }
    let told: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| BenchError::Failed(format!("the twin: tier0 load: {error}")))?;
    Prediction::of(&told).ok_or_else(|| BenchError::Failed("the twin's report has no reads".into()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_end_of_a_run_is_the_prediction() {
        let row = |start: f64, ios: u64, ms: f64| json!({ "start_s": start, "length_s": 60.0, "read": { "ios": ios, "latency_ns_mean": ms * 1e6 } });
        let told = json!({ "intervals": [row(0.0, 1, 100.0), row(60.0, 600, 2.0), row(120.0, 1800, 4.0)] });
        let prediction = Prediction::of(&told).expect("there are rows");
        assert_eq!((prediction.reads_per_s, prediction.read_ms_mean), (20.0, 3.5));
        assert!(Prediction::of(&json!({})).is_none());
    }

    #[test]
    fn the_curve_is_read_where_the_hot_accounts_end() {
        let point = |bytes: u64, share: f64| json!({ "flash_bytes": bytes, "share": share });
        let curve = json!([point(100, 0.3), point(300, 0.9), point(900, 1.0)]);
        assert_eq!(nearest(&curve, 350.0), Some((300.0, 0.9)));
    }
}
