//! The second opinion: fio writes with checksums until the server is killed, and later verifies by its own state file
//! that everything it was told was written is there.

use std::path::PathBuf;
use std::process::Command;

use crate::TortureError;
use crate::clock::wait_until;
use crate::process::Running;
use crate::shape::Site;
use crate::tools;

/// The name of fio's jobs, and how many run, each in a part of the volume of its own.
const JOB: &str = "tier0";
const JOBS: u32 = 4;
/// Requests per second of a job at most, so that a pass over its 8 MiB, 1,024 requests, outlasts most kills: 0.7 s.
const RATE_IOPS: u32 = 1500;
/// The longest that its start may take.
const START_SECONDS_MAX: u32 = 60;

/// fio on a volume.
pub(crate) struct Fio {
    directory: PathBuf,
    uri: String,
    seed: u64,
}

impl Fio {
    /// Whether it is installed.
    pub(crate) fn is_there() -> bool {
        tools::find("fio").is_some()
    }

    /// A job on `volume` of `site`; every seed writes in another order and other data.
    pub(crate) fn new(site: &Site, volume: &str, seed: u64) -> Fio {
        Fio { directory: site.directory.clone(), uri: site.uri(volume), seed }
    }

    fn command(&self, more: &[String]) -> Command {
        let mut command = tools::command("fio");
        let name = format!("--name={JOB}");
        // One request at a time and job: the state names the last requests that were answered, as many as the depth,
        // and takes all earlier ones for answered, which holds only where answers come in order.
        command.args([&name, "--ioengine=nbd", "--rw=randwrite", "--bs=8k", "--iodepth=1", "--thread"]);
        command.args(["--verify=crc32c", "--output-format=terse"]);
        command.args([format!("--numjobs={JOBS}"), format!("--size={}%", 100 / JOBS)]);
        command.arg(format!("--offset_increment={}%", 100 / JOBS));
        command.args([format!("--uri={}", self.uri), format!("--randseed={}", self.seed)]);
        command.args(more).current_dir(&self.directory);
        command
    }

    fn states(&self) -> impl Iterator<Item = PathBuf> {
        (0..JOBS).map(|job| self.directory.join(format!("local-{JOB}-{job}-verify.state")))
    }

    fn log(&self) -> PathBuf {
        self.directory.join("fio.log")
    }

    /// Starts writing the whole volume once, in random order; all jobs are connected when this returns.
    pub(crate) fn start(&self) -> Result<Running, TortureError> {
        // What it said last time says nothing now; there may be nothing.
        let _ = std::fs::remove_file(self.log());
        self.states().for_each(|state| {
            let _ = std::fs::remove_file(state);
        });
        let rate = format!("--rate_iops={RATE_IOPS}");
        let more = ["--do_verify=0", "--verify_state_save=1", &rate].map(String::from);
        let mut fio = Running::start("fio", &mut self.command(&more), &self.log())?;
        wait_until("fio connecting", START_SECONDS_MAX, || {
            let words = std::fs::read_to_string(self.log()).unwrap_or_default();
            let connected = words.lines().filter(|line| line.contains("connected to NBD server")).count();
            Ok(connected >= JOBS as usize || fio.status()?.is_some())
        })?;
        Ok(fio)
    }

    /// Verifies what it had written, by its own account. Nothing is done where a job was killed before it wrote
    /// anything: then there is no account.
    pub(crate) fn verify(&self) -> Result<bool, TortureError> {
        if !self.states().all(|state| state.exists()) {
            return Ok(false);
        }
        let more = ["--verify_state_load=1", "--verify_only", "--verify_fatal=1"];
        let verified = tools::output("fio's verification", &mut self.command(&more.map(String::from)));
        verified.map_err(|error| TortureError::Failed(first_line(&error.to_string())))?;
        Ok(true)
    }
}

/// What says most in fio's words: the first complaint of its verification.
fn first_line(words: &str) -> String {
    let complaint = words.lines().find(|line| line.contains("verify"));
    format!("fio's verification failed: {}", complaint.unwrap_or(words))
}
