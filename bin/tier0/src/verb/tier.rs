//! `tier0 tier`: why an extent lies where it lies, and what the tier of a pool does next.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use tier0_api::{AdminReply, AdminRequest, TierCurvePoint, TierExplanation, TierHold, TierMove, TierPlan};
use tier0_units::ByteCount;

use super::status::duration;
use crate::control::{Addressee, misunderstood};
use crate::failure::Failure;
use crate::output::{align_right, json, print, rendered, table, wrapped};

const EXAMPLES: &str = "\
Examples:
  tier0 tier explain array.toml lun0 4MiB
      where this part of the volume lies, how hot it is, what would move it
  tier0 tier plan array.toml
      the next moves, and how much flash would serve how much of the I/O
  tier0 volume set array.toml lun0 place=auto
      let the tier decide which parts of the volume lie on flash";

/// Shares of the I/O for which a plan names the size of flash.
const SHARES: [f64; 6] = [0.5, 0.7, 0.8, 0.9, 0.95, 0.99];
/// A curve from fewer seconds says little.
const COUNTED_MIN_S: u64 = 600;

/// The performance tier of a running array.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Tier {
    /// Show where a part of a volume lies, why, and what would move it
    #[command(after_help = EXAMPLES)]
    Explain(Explain),
    /// Show the next moves, and what share of the I/O each size of flash would serve
    #[command(after_help = EXAMPLES)]
    Plan(Plan),
}

/// A part of a volume.
#[derive(Args, Debug)]
pub(crate) struct Explain {
    /// The array file
    #[arg(value_name = "ARRAY.TOML")]
    array: PathBuf,
    /// The volume
    volume: String,
    /// An offset in it, as in 40GiB
    offset: ByteCount,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A pool's tier.
#[derive(Args, Debug)]
pub(crate) struct Plan {
    /// The array file
    #[arg(value_name = "ARRAY.TOML")]
    array: PathBuf,
    /// Pool (required if the array has several)
    #[arg(long)]
    pool: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Asks and prints.
pub(crate) fn run(verb: &Tier) -> Result<(), Failure> {
    match verb {
        Tier::Explain(Explain { array, volume, offset, json: as_json }) => {
            let request = AdminRequest::TierExplain { volume: volume.clone(), offset: *offset };
            let AdminReply::TierExplained(told) = Addressee::of(array)?.ask(&request)? else {
                return Err(misunderstood());
            };
            print(&if *as_json { json(&told) } else { explained(&told) })
        }
        Tier::Plan(Plan { array, pool, json: as_json }) => {
            let request = AdminRequest::TierPlan { pool: pool.clone() };
            let AdminReply::TierPlanned(told) = Addressee::of(array)?.ask(&request)? else {
                return Err(misunderstood());
            };
            print(&if *as_json { json(&told) } else { planned(&told) })
        }
    }
}

fn explained(told: &TierExplanation) -> String {
    let end = told.offset_bytes + told.extent_bytes;
    let mut lines =
        vec![format!("volume {}, {} to {}", told.volume, ByteCount(told.offset_bytes), ByteCount(end))];
    let group = told.group.as_deref().unwrap_or("none: nothing was written here yet");
    let since = told.since_s.map_or_else(String::new, |ago| format!(", since {} ago", duration(ago)));
    lines.push(format!("  group: {group}{since}"));
    lines.push(format!("  place: {}{}", told.place.text(), pin(told)));
    lines.push(format!(
        "  heat: {:.0} reads and {:.0} writes lately (half after 10 minutes), worth {:.0} drive I/Os; cutoff {}",
        told.reads,
        told.writes,
        told.value,
        told.cutoff.map_or_else(|| "unknown".to_owned(), |cutoff| format!("{cutoff:.0}"))
    ));
    lines.push(format!("  next: {}", told.verdict()));
    let moved = |one: &TierMove| {
        format!(
            "  moved: {} ago to the {} group ({}), worth {:.0}",
            duration(one.ago_s.unwrap_or_default()),
            if one.to_fast { "fast" } else { "slow" },
            one.reason.text(),
            one.value
        )
    };
    lines.extend(told.moves.iter().map(moved));
    let lines: Vec<String> = lines.iter().map(|line| wrapped(line, "    ")).collect();
    format!("{}\n", lines.join("\n"))
}

fn pin(told: &TierExplanation) -> String {
    match (told.is_pinned, told.pinned_until_unix_s) {
        (false, _) => String::new(),
        (true, None) => ", pinned".to_owned(),
        (true, Some(until)) => {
            let time = i64::try_from(until).ok().and_then(|until| Timestamp::from_second(until).ok());
            time.map_or_else(|| ", pinned".to_owned(), |time| format!(", pinned until {time}"))
        }
    }
}

fn planned(told: &TierPlan) -> String {
    let mut lines = Vec::new();
    let counted = duration(told.counted_s);
    match &told.fast_group {
        Some(group) => lines.push(format!(
            "pool {}: fast group {group} of {}; accesses counted for {counted}",
            told.pool,
            ByteCount(told.fast_bytes)
        )),
        None => lines.push(format!(
            "pool {}: no fast group; accesses counted for {counted}. Extents move once the pool has a group of flash drives beside \
             one of disks (docs/tiering.md)",
            told.pool
        )),
    }
    lines.extend(
        told.share_on_fast.map(|share| format!("  now on flash: {} of the drive I/O", percent(share))),
    );
    lines.extend(told.hold.map(|hold: TierHold| format!("  waits: {}", hold.text())));
    if told.counted_s < COUNTED_MIN_S {
        lines.push("  the curve is reliable after ten minutes of the usual load".to_owned());
    }
    let mut text = lines.iter().map(|line| wrapped(line, "    ")).collect::<Vec<_>>().join("\n");
    text.push_str(&format!("\n\n{}\n", curve(&told.curve)));
    if !told.next.is_empty() {
        text.push_str(&format!("\n{}\n", moves(&told.next)));
    }
    text
}

/// How much flash is enough, for some shares.
fn curve(points: &[TierCurvePoint]) -> String {
    if points.is_empty() {
        return "no accesses counted yet: run the load, and ask again".to_owned();
    }
    let mut rows = table(&["flash", "share of drive I/O"]);
    align_right(&mut rows, [0, 1]);
    let mut last = None;
    for share in SHARES {
        let enough = points.iter().find(|point| point.share >= share);
        let Some(point) = enough.filter(|point| last != Some(point.flash_bytes)) else { continue };
        last = Some(point.flash_bytes);
        rows.add_row(vec![ByteCount(point.flash_bytes).to_string(), percent(point.share)]);
    }
    rendered(&rows)
}

fn moves(next: &[TierMove]) -> String {
    let mut rows = table(&["next: volume", "offset", "to", "why", "worth"]);
    align_right(&mut rows, [1, 4]);
    for one in next {
        rows.add_row(vec![
            one.volume.clone(),
            ByteCount(one.offset_bytes).to_string(),
            if one.to_fast { "fast" } else { "slow" }.to_owned(),
            one.reason.text().to_owned(),
            format!("{:.0}", one.value),
        ]);
    }
    rendered(&rows)
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}
