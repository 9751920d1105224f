//! The file of a case, as `tier0 lab whatif` reads it: the array as it is first, then the plan, then both with other numbers of
//! users.

use std::fmt::Write as _;

use super::load::Load;

/// How the file of a case begins.
pub const CASE_BEGINS: &str = "# The load of the samples of a plan of \"tier0 advise\"";
/// The part of an object set that the modelled buffer may hold: what the database's memory served is not in the samples.
const BUFFER_SHARE: f64 = 0.01;
const BUFFER_MIB: [f64; 2] = [1.0, 64.0];
/// The most I/Os that a case simulates, counted at the measured rate.
const IOS_MAX: f64 = 100_000.0;
/// A case is at least so long, in seconds.
const SECONDS_MIN: f64 = 2.0;

/// The array of a case.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseArray {
    /// The text of the array file as it is.
    pub now: String,
    /// That with flash.
    pub next: String,
    /// Volumes that hold the data now.
    pub data: Vec<String>,
    /// The volume that holds the log, before and after.
    pub log: String,
    /// The volume on flash.
    pub flash: String,
}

/// A run of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaseRun {
    /// Users.
    pub users: u32,
    /// Whether the plan is carried out.
    pub is_next: bool,
}

/// The text of the file, and its runs in their order. `seconds` are simulated after a third as long to warm up.
pub fn case(load: &Load, array: &CaseArray, seconds: f64) -> (String, Vec<CaseRun>) {
    let seconds = seconds.min((IOS_MAX / load.ios_s()).max(SECONDS_MIN));
    let mut text = format!("{CASE_BEGINS}. Repeat its runs with: tier0 lab whatif THIS-FILE\n");
    let band = load.users.band();
    text.push_str(&database(load, array, band[0]));
    let _ = writeln!(
        text,
        "\n[host]\ncores = {:.0}\ntransaction_ms = {:.4}\nio_us = 0.0\n\n[run]\nwarm_up = \"{}ms\"\nmeasured = \"{}ms\"\n",
        load.cores.clamp(1.0, 4096.0),
        load.processor_ms.clamp(1e-3, 1e6),
        (seconds / 3.0 * 1e3).ceil(),
        (seconds * 1e3).ceil(),
    );
    text.push_str(&nested(&array.now, "system"));
    let mut runs = vec![CaseRun { users: band[0], is_next: false }];
    for users in band {
        for is_next in [false, true] {
            let run = CaseRun { users, is_next };
            if run == runs[0] {
                continue;
            }
            runs.push(run);
            let what = if is_next { "with the plan" } else { "as it is" };
            let _ = writeln!(
                text,
                "\n[[alternative]]\nname = \"{what}, {users} users\"\n\n[alternative.database]\nusers = {users}"
            );
            if is_next {
                let moved = load.objects.iter().filter(|object| object.moves);
                let places =
                    moved.map(|object| format!("{} = {}", quoted(&object.name), quoted(&array.flash)));
                let _ = writeln!(text, "place = {{ {} }}\n", places.collect::<Vec<_>>().join(", "));
                text.push_str(&nested(&array.next, "alternative.system"));
            }
        }
    }
    (text, runs)
}

fn database(load: &Load, array: &CaseArray, users: u32) -> String {
    let buffer = (load.bytes() * BUFFER_SHARE / f64::from(1 << 20)).clamp(BUFFER_MIB[0], BUFFER_MIB[1]);
    let data: Vec<String> = array.data.iter().map(|volume| quoted(volume)).collect();
    let mut text = format!(
        "[database]\nengine = \"{}\"\nusers = {users}\nthink = \"{}us\"\nbuffer = \"{buffer:.0}MiB\"\nmeasured_tps = {:.4}\n",
        load.engine,
        (load.other_ms * 1e3).round(),
        load.units_s,
    );
    if let Some(bytes) = load.log_bytes {
        let _ = writeln!(text, "log_per_transaction = \"{bytes:.0}B\"");
    }
    let _ = writeln!(text, "place = {{ \"*\" = [{}], log = {} }}", data.join(", "), quoted(&array.log));
    text.push_str("object = [\n");
    for object in &load.objects {
        let read = object.read_bytes.map_or(String::new(), |bytes| format!(", read_size = \"{bytes:.0}B\""));
        let _ = writeln!(
            text,
            "  {{ name = {}, size = \"{:.0}B\", reads = {:.6}{read}, writes = {:.6} }},",
            quoted(&object.name),
            object.bytes,
            object.reads,
            object.writes
        );
    }
    text.push_str("]\n");
    text
}

/// An array file below a table of another file. Its headers stand at the beginnings of lines, and nothing else there has brackets.
fn nested(array: &str, below: &str) -> String {
    let line = |line: &str| match (line.strip_prefix("[["), line.strip_prefix('[')) {
        (Some(rest), _) => format!("[[{below}.{rest}\n"),
        (None, Some(rest)) => format!("[{below}.{rest}\n"),
        (None, None) => format!("{line}\n"),
    };
    array.lines().map(line).collect()
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
