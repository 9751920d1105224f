//! Runs of fio, read from its JSON.

use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::error::BenchError;

/// What a run brought; latencies are those of the whole request, reads and writes together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    pub(crate) ios: f64,
    pub(crate) iops: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) p99_9_us: f64,
}

/// Runs one job with `arguments` besides the output format.
pub(crate) fn run(arguments: &[String]) -> Result<Outcome, BenchError> {
    outcome(arguments, start(arguments)?)
}

/// Runs several at once, each in a process of its own.
pub(crate) fn run_together(jobs: &[Vec<String>]) -> Result<Vec<Outcome>, BenchError> {
    let children = jobs.iter().map(|arguments| start(arguments)).collect::<Result<Vec<_>, _>>()?;
    jobs.iter().zip(children).map(|(arguments, child)| outcome(arguments, child)).collect()
}

fn start(arguments: &[String]) -> Result<Child, BenchError> {
    Command::new("fio")
        .args(["--name=job", "--output-format=json", "--unified_rw_reporting=mixed"])
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(BenchError::system("fio cannot be started"))
}

fn outcome(arguments: &[String], child: Child) -> Result<Outcome, BenchError> {
    let command = child.wait_with_output().map_err(BenchError::system("fio cannot be waited for"))?;
    let failed = |fact: String| {
        let words = String::from_utf8_lossy(&command.stderr);
        BenchError::Failed(format!("fio {}: {fact} {}", arguments.join(" "), words.trim()))
    };
    if !command.status.success() {
        return Err(failed(command.status.to_string()));
    }
    let text = String::from_utf8_lossy(&command.stdout);
    // Some engines write notes before the JSON.
    let start = text.find('{').ok_or_else(|| failed("no JSON".into()))?;
    let json: Value = serde_json::from_str(&text[start..]).map_err(|error| failed(error.to_string()))?;
    read(&json["jobs"][0]["mixed"]).ok_or_else(|| failed("unexpected JSON".into()))
}

fn read(mixed: &Value) -> Option<Outcome> {
    let percentile = |name: &str| Some(mixed["clat_ns"]["percentile"][name].as_f64()? / 1e3);
    Some(Outcome {
        ios: mixed["total_ios"].as_f64()?,
        iops: mixed["iops"].as_f64()?,
        p50_us: percentile("50.000000")?,
        p99_us: percentile("99.000000")?,
        p99_9_us: percentile("99.900000")?,
    })
}

/// fio's arguments for random 8 KiB requests at queue depth 32 for `seconds`.
pub(crate) fn random_8k(read_percent: u32, seconds: u32) -> Vec<String> {
    random_8k_shared(1, read_percent, seconds)
}

/// The same by so many clients, which share the queue depth.
pub(crate) fn random_8k_shared(clients: u32, read_percent: u32, seconds: u32) -> Vec<String> {
    let kind = if read_percent == 100 { "randread" } else { "randrw" };
    let mut arguments: Vec<String> = [
        format!("--rw={kind}"),
        "--bs=8k".into(),
        format!("--iodepth={}", 32 / clients),
        format!("--numjobs={clients}"),
        "--group_reporting".into(),
        "--time_based".into(),
    ]
    .into();
    arguments.push(format!("--runtime={seconds}"));
    arguments.push("--norandommap".into());
    if read_percent < 100 {
        arguments.push(format!("--rwmixread={read_percent}"));
    }
    arguments
}

/// fio's arguments for writing all of its target once, in order, with data that does not repeat. It ends when that is
/// stable: a drive that still writes it would disturb what is measured next.
pub(crate) fn fill() -> Vec<String> {
    ["--rw=write", "--bs=1m", "--iodepth=4", "--refill_buffers", "--end_fsync=1"].map(Into::into).into()
}

/// fio's arguments for random 8 KiB writes, other ones in every run; how many is left to the caller.
pub(crate) fn random_writes_8k(queue_depth: u32) -> Vec<String> {
    let mut arguments: Vec<String> =
        ["--rw=randwrite", "--bs=8k", "--norandommap", "--randrepeat=0"].map(Into::into).into();
    arguments.push(format!("--iodepth={queue_depth}"));
    arguments
}
