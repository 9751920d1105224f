//! The drives of a pool: a table, and a line for each of which there is something to tell.

use tier0_api::render::remove_command;
use tier0_api::{DriveHealth, DriveStanding, DriveState, DriveStatus};
use tier0_units::{ByteCount, counted};

use super::duration;
use crate::output::{align_right, rendered, table, wrapped};

/// The table, then what is behind it. While the pool `is_paused`, without advice, which it could not follow.
pub(super) fn text(drives: &[DriveStatus], is_paused: bool) -> String {
    let mut rows = table(&["drive", "state", "health", "size", "chunklets used", "free", "holds"]);
    let differ = drives.windows(2).any(|two| two[0].class != two[1].class);
    for drive in drives {
        let state = match drive.state {
            DriveState::Active => "online",
            DriveState::Lost => "FAILED",
            DriveState::Leaving => "removing",
        };
        let has_cache = drive.flash_cache_bytes > 0;
        let holds =
            [(drive.holds_log, "log"), (drive.holds_metadata, "metadata"), (has_cache, "flash cache")];
        let holds = holds.into_iter().filter(|(does, _)| *does).map(|(_, what)| what.to_owned());
        let group = drive.group.iter().map(|group| format!("data of {group}"));
        let class = drive.class.filter(|_| differ).map(|class| class.to_string());
        let holds: Vec<String> = class.into_iter().chain(group).chain(holds).collect();
        rows.add_row([
            drive.name.clone(),
            state.to_owned(),
            health(drive).to_owned(),
            ByteCount(drive.size_bytes).to_string(),
            drive.chunklets_used.to_string(),
            drive.chunklets_free.to_string(),
            holds.join(", "),
        ]);
    }
    align_right(&mut rows, [3, 4, 5]);
    let told = drives.iter().filter_map(|drive| told(drive, is_paused));
    let told: Vec<String> = told.map(|line| wrapped(&line, "    ")).collect();
    match told.is_empty() {
        true => rendered(&rows),
        false => format!("{}\n\n{}", rendered(&rows), told.join("\n")),
    }
}

/// In a word or two.
fn health(drive: &DriveStatus) -> &'static str {
    match (drive.state, drive.health.as_ref().map(|health| health.standing)) {
        (DriveState::Lost, _) | (_, Some(DriveStanding::Lost)) => "failed",
        (_, Some(DriveStanding::Healthy)) => "healthy",
        (_, Some(DriveStanding::Suspect)) => "suspect",
        (_, Some(DriveStanding::Awaited)) => "not responding",
        (_, None) => "unknown",
    }
}

/// Why a drive is not healthy, and what has happened to it since the start; none where that is nothing.
fn told(drive: &DriveStatus, is_paused: bool) -> Option<String> {
    let known = drive.health.as_ref();
    let happened = known.map(happened).unwrap_or_default();
    let word = health(drive);
    if ["healthy", "unknown"].contains(&word) {
        return (!happened.is_empty())
            .then(|| format!("  drive {}: {} since the server started", drive.name, happened.join(", ")));
    }
    let since = known.map_or_else(String::new, |health| format!(" for {}", duration(health.since_s)));
    let error = known.and_then(|health| health.last_error.clone());
    let why = drive.lost_because.clone().or(error).unwrap_or_else(|| "no answer".to_owned());
    let counts = if happened.is_empty() { String::new() } else { format!(" ({})", happened.join(", ")) };
    let replace = format!("\"tier0 drive replace ARRAY {} --name NEW --path PATH\" replaces it", drive.name);
    let remedy = match word {
        "failed" if drive.leaving => "; it is removed when its contents are on the other drives".to_owned(),
        "failed" if is_paused => String::new(),
        "failed" if drive.group_left => {
            format!("; its group has left the pool: {}", remove_command(&drive.name))
        }
        "failed" if !drive.can_return => format!("; {replace}"),
        "failed" => format!("; \"tier0 drive rejoin\" brings it back if it is online again, {replace}"),
        _ => String::new(),
    };
    Some(format!("  drive {}: {word}{since}: {why}{counts}{remedy}", drive.name))
}

/// The counters that are not zero.
fn happened(health: &DriveHealth) -> Vec<String> {
    let counters = [
        (health.read_errors, "read error"),
        (health.write_errors, "write error"),
        (health.flush_errors, "flush error"),
        (health.slow, "slow command"),
        (health.outages, "outage"),
        (health.pages_repaired, "repaired page"),
        (health.pages_unrecoverable, "unrecoverable page"),
    ];
    let mut told: Vec<String> =
        counters.iter().filter(|(count, _)| *count > 0).map(|(count, what)| counted(*count, what)).collect();
    if health.retried > 0 {
        told.push(format!("{} retried successfully", counted(health.retried, "command")));
    }
    if health.no_space {
        let full = if health.on_device { "its device is out of space" } else { "its file system is full" };
        told.push(full.to_owned());
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drive(standing: DriveStanding, last_error: Option<&str>) -> DriveStatus {
        DriveStatus {
            name: "d1".into(),
            state: DriveState::Active,
            size_bytes: 64 << 20,
            chunklets_used: 3,
            chunklets_free: 1,
            for_data: true,
            misplaced_columns: 0,
            holds_log: true,
            flash_cache_bytes: 0,
            holds_metadata: true,
            leaving: false,
            class: None,
            group: None,
            can_return: false,
            group_left: false,
            lost_because: None,
            io: tier0_api::IoSummary::default(),
            health: Some(DriveHealth {
                standing,
                since_s: 61,
                last_error: last_error.map(str::to_owned),
                read_errors: 0,
                write_errors: 0,
                flush_errors: 0,
                slow: 0,
                retried: 0,
                outages: 0,
                no_space: false,
                on_device: false,
                pages_repaired: 0,
                pages_unrecoverable: 0,
                error_patience_s: 3,
                answer_patience_s: 30,
            }),
        }
    }

    /// The table showed nothing of what JSON told about a drive's health.
    #[test]
    fn a_drive_that_is_not_healthy_is_told_with_its_reason() {
        let healthy = drive(DriveStanding::Healthy, None);
        assert_eq!((health(&healthy), told(&healthy, false)), ("healthy", None));
        let mut suspect = drive(DriveStanding::Suspect, Some("the drive reports an error"));
        if let Some(health) = &mut suspect.health {
            (health.read_errors, health.slow) = (1, 2);
        }
        let line =
            "  drive d1: suspect for 1 min 1 s: the drive reports an error (1 read error, 2 slow commands)";
        assert_eq!(told(&suspect, false).as_deref(), Some(line));
        let awaited = drive(DriveStanding::Awaited, None);
        assert_eq!(
            told(&awaited, false).as_deref(),
            Some("  drive d1: not responding for 1 min 1 s: no answer")
        );
        let lost_because = Some("it was taken out".to_owned());
        let can_return = true;
        let lost = DriveStatus { state: DriveState::Lost, health: None, lost_because, can_return, ..awaited };
        assert_eq!(health(&lost), "failed");
        let told = text(std::slice::from_ref(&lost), false);
        assert!(
            told.contains("drive d1: failed: it was taken out;") && told.contains("drive replace"),
            "{told}"
        );
        let told = text(std::slice::from_ref(&lost), true);
        assert!(told.contains("failed: it was taken out") && !told.contains("tier0 drive"), "{told}");
        let told = text(&[DriveStatus { leaving: true, ..lost }], false);
        assert!(told.contains("it is removed when") && !told.contains("tier0 drive"), "{told}");
    }

    #[test]
    fn what_has_passed_is_told_of_a_healthy_drive_too() {
        let mut healthy = drive(DriveStanding::Healthy, None);
        if let Some(health) = &mut healthy.health {
            health.retried = 1;
        }
        let line = "  drive d1: 1 command retried successfully since the server started";
        assert_eq!(told(&healthy, false).as_deref(), Some(line));
    }
}
