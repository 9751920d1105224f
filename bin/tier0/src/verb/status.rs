//! `tier0 status`: how a running array does, as tables or JSON, with an exit code for monitoring.

use std::path::PathBuf;

use clap::Args;
use tier0_array::admin::{AdminReply, AdminRequest, DriveState, Health, PoolStatus, Status};
use tier0_units::{ByteCount, counted};

use crate::control::ask;
use crate::failure::Failure;
use crate::output::{align_right, json, print, rendered, table};

const EXAMPLES: &str = "\
Examples:
  tier0 status array.toml
  tier0 status array.toml --json | jq .summary
  tier0 status array.toml --quiet || page-somebody
      ends with 4, 5 or 6 unless the array is healthy";

/// How an array does.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StatusVerb {
    /// The array file
    #[arg(value_name = "ARRAY.TOML")]
    array: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Asks, prints, and ends as the array's health says.
pub(crate) fn run(verb: &StatusVerb) -> Result<(), Failure> {
    let AdminReply::Status(status) = ask(&verb.array, &AdminRequest::Status)? else {
        return Err(Failure::Run("the server answered something else; is it of this version?".into()));
    };
    print(&if verb.json { json(&status) } else { text(&status) })?;
    match status.health {
        Health::Healthy => Ok(()),
        unhealthy => Err(Failure::Unhealthy(unhealthy)),
    }
}

fn text(status: &Status) -> String {
    let mut text = format!("array {}: {}\n", status.array, status.summary);
    for pool in &status.pools {
        text.push_str(&pool_text(pool));
    }
    text
}

fn pool_text(pool: &PoolStatus) -> String {
    let space = &pool.space;
    let mut text = format!(
        "\npool {}: {}, {}, {} of {} used, {} promised to volumes\n",
        pool.name,
        pool.raid,
        counted(pool.sets.count, "set"),
        ByteCount(space.used_bytes),
        ByteCount(space.usable_bytes),
        ByteCount(space.provisioned_bytes),
    );
    for problem in pool.problems.iter().chain(&space.warnings) {
        text.push_str(&format!("  ! {problem}\n"));
    }
    if let Some(rebuild) = &pool.rebuild {
        let left =
            rebuild.left_s.map_or("time left unknown".to_owned(), |left| format!("about {left} s left"));
        text.push_str(&format!(
            "  rebuild: {} of {} slots, {}/s, {left}\n",
            rebuild.slots_done,
            rebuild.slots_total,
            ByteCount(rebuild.rate_bytes_per_s),
        ));
    }
    if let Some(restripe) = &pool.restripe {
        let left =
            restripe.left_s.map_or("time left unknown".to_owned(), |left| format!("about {left} s left"));
        text.push_str(&format!(
            "  restripe: {} of {} slots, {}/s, {left}\n",
            restripe.slots_done,
            restripe.slots_total,
            ByteCount(restripe.rate_bytes_per_s),
        ));
    }
    if let Some(scrub) = &pool.scrub {
        text.push_str(&format!(
            "  scrub: {}, {:.1} %, {} pages verified, {} repaired, {} unrecoverable\n",
            if scrub.running { "running" } else { "not running" },
            scrub.progress * 100.0,
            scrub.pages_verified,
            scrub.repaired,
            scrub.unrecoverable,
        ));
    }
    if let Some(log) = &pool.log {
        text.push_str(&format!(
            "  log: {} of {} used, {} of {} copies, {} not yet destaged\n",
            ByteCount(log.used_bytes),
            ByteCount(log.size_bytes),
            log.copies,
            log.copies_wanted,
            ByteCount(log.dirty_bytes),
        ));
    }
    let integrity = &pool.integrity;
    if integrity.checksums {
        text.push_str(&format!(
            "  checksums: {} pages repaired, {} unrecoverable since the start\n",
            integrity.repaired, integrity.unrecoverable
        ));
    }
    text.push('\n');
    text.push_str(&drives_table(pool));
    text.push_str("\n\n");
    text.push_str(&volumes_table(pool));
    text.push('\n');
    text
}

fn drives_table(pool: &PoolStatus) -> String {
    let mut drives = table(&["drive", "state", "size", "chunklets", "free", "holds"]);
    for drive in &pool.drives {
        let state = match drive.state {
            DriveState::Active => "active",
            DriveState::Lost => "LOST",
            DriveState::Leaving => "leaving",
        };
        let holds = [(drive.holds_log, "log"), (drive.holds_metadata, "metadata")];
        let holds: Vec<&str> = holds.into_iter().filter(|(does, _)| *does).map(|(_, what)| what).collect();
        drives.add_row([
            drive.name.clone(),
            state.to_owned(),
            ByteCount(drive.size_bytes).to_string(),
            drive.chunklets_used.to_string(),
            drive.chunklets_free.to_string(),
            holds.join(", "),
        ]);
    }
    align_right(&mut drives, [2, 3, 4]);
    rendered(&drives)
}

fn volumes_table(pool: &PoolStatus) -> String {
    let mut volumes = table(&["volume", "size", "mapped", "kind", "write cache"]);
    for volume in &pool.volumes {
        volumes.add_row([
            volume.name.clone(),
            ByteCount(volume.size_bytes).to_string(),
            ByteCount(volume.mapped_bytes).to_string(),
            if volume.thin { "thin" } else { "thick" }.to_owned(),
            volume.write_cache.map_or("none".to_owned(), |mode| mode.to_string()),
        ]);
    }
    align_right(&mut volumes, [1, 2]);
    rendered(&volumes)
}
