//! Drives that are added, replaced, removed and taken back while the array serves.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::super::faulty::Manners;
use super::super::scene::{Scene, drive_state, ensure};
use crate::TortureError;
use crate::clock::{pause, wait_until};

const MIRROR: &str = "raid = \"raid1\"\nset_size = 2";

/// After `drive replace` a restart with the unedited file disowned the new, healthy drive.
pub(super) fn replace_then_old_file(scene: &mut Scene) -> Result<(), TortureError> {
    scene.serving(4, "raid = \"raid10\"\nset_size = 4")?;
    let file = std::fs::read_to_string(scene.file()).map_err(TortureError::system("no file"))?;
    scene.host.writes(300)?;
    scene.drive("n1")?;
    let path = scene.path("n1").display().to_string();
    scene.done(&["drive", "replace", "@", "d1", "--name", "n1", "--path", &path])?;
    scene.pool("the end of the replacement", 60, |pool| {
        drive_state(pool, "d1") == "gone"
            && drive_state(pool, "n1") == "active"
            && pool["sets"]["degraded"] == 0
    })?;
    scene.host.writes(200)?;
    scene.stop()?;
    scene.away("d1")?;
    scene.write_file(&file)?;
    scene.serve(&[])?;
    scene.whole(4)?;
    let status = scene.status()?;
    ensure(drive_state(&status["pools"][0], "n1") == "active", || "n1 is not in service".to_owned())?;
    scene.nothing_lost()
}

/// Two drives failed, each after the other, and one was added each time: the second one was known only to the first, and a
/// restart with the unedited file did not look where that said.
pub(super) fn one_drive_after_the_other(scene: &mut Scene) -> Result<(), TortureError> {
    scene.serving(3, "raid = \"raid5\"\nset_size = 3")?;
    scene.host.writes(300)?;
    for (failed, new) in [("d0", "n0"), ("d1", "n1"), ("d2", "n2")] {
        scene.drive(new)?;
        let path = scene.path(new).display().to_string();
        scene.done(&["drive", "fail", "@", failed, "--yes"])?;
        scene.done(&["drive", "add", "@", "--name", new, "--path", &path])?;
        scene.pool("the end of the rebuild", 60, |pool| {
            drive_state(pool, new) == "active" && pool["sets"]["degraded"] == 0
        })?;
        scene.host.writes(100)?;
    }
    scene.stop()?;
    scene.serve(&[])?;
    let status = scene.status()?;
    for new in ["n0", "n1", "n2"] {
        ensure(drive_state(&status["pools"][0], new) == "active", || format!("{new} is not in service"))?;
    }
    ensure(status["pools"][0]["sets"]["degraded"] == 0, || "sets are degraded".to_owned())?;
    scene.nothing_lost()
}

/// After `drive add` and `pool grow` a restart with the unedited file, or with the drives written into it, was refused.
pub(super) fn grow_then_old_file(scene: &mut Scene) -> Result<(), TortureError> {
    scene.serving(2, MIRROR)?;
    let old = std::fs::read_to_string(scene.file()).map_err(TortureError::system("no file"))?;
    scene.host.writes(300)?;
    let mut written = old.clone();
    for drive in ["d2", "d3"] {
        scene.drive(drive)?;
        let path = scene.path(drive).display().to_string();
        scene.done(&["drive", "add", "@", "--name", drive, "--path", &path])?;
        let table = format!("[[drive]]\nname = \"{drive}\"\npath = \"{path}\"\n\n[[pool]]");
        written = written.replacen("[[pool]]", &table, 1);
    }
    scene.done(&["pool", "grow", "@"])?;
    scene.pool("two sets", 60, |pool| {
        pool["restripe"].is_null() && pool["drives"][3]["chunklets_used"] != 0
    })?;
    scene.host.writes(200)?;
    scene.stop()?;
    scene.write_file(&old)?;
    scene.serve(&[])?;
    scene.whole(4)?;
    scene.nothing_lost()?;
    scene.stop()?;
    scene.write_file(&written)?;
    scene.serve(&[])?;
    scene.whole(4)?;
    let config = scene.done(&["config", "@"])?;
    ensure(config.contains("d3"), || format!("config does not name d3: {config}"))?;
    scene.nothing_lost()
}

/// A full pool took nothing of a single new drive; and after a rebuild, a drive that joined stayed empty.
pub(super) fn one_drive_more(scene: &mut Scene) -> Result<(), TortureError> {
    scene.serving(4, "raid = \"raid5\"\nset_size = 3\nspare_drives = 1")?;
    scene.host.begin(false);
    scene.host.goes_on(300, 30)?;
    let before = scene.status()?["pools"][0]["sets"]["count"].as_u64();
    scene.drive("d4")?;
    let path = scene.path("d4").display().to_string();
    scene.done(&["drive", "add", "@", "--name", "d4", "--path", &path])?;
    scene.done(&["pool", "grow", "@"])?;
    scene.pool("more sets", 60, |pool| {
        pool["rebuild"].is_null() && pool["restripe"].is_null() && pool["sets"]["count"].as_u64() > before
    })?;
    let kept = least_free(&scene.status()?["pools"][0]);
    scene.done(&["drive", "fail", "@", "d1", "--yes"])?;
    scene.pool("the end of the rebuild", 60, |pool| {
        pool["rebuild"].is_null() && pool["sets"]["degraded"] == 0 && least_free(pool) < kept
    })?;
    scene.done(&["drive", "rejoin", "@", "d1"])?;
    scene.pool("the return of the spares", 60, |pool| {
        pool["rebuild"].is_null() && pool["sets"]["degraded"] == 0 && least_free(pool) >= kept
    })?;
    scene.host.end()?;
    scene.nothing_lost()
}

/// The free chunklets of the drive in service that has the fewest.
fn least_free(pool: &Value) -> u64 {
    let drives = pool["drives"].as_array().into_iter().flatten();
    let active = drives.filter(|drive| drive["state"] == "active");
    active.filter_map(|drive| drive["chunklets_free"].as_u64()).min().unwrap_or(0)
}

/// A failed drive could not be taken back while the array served: "in use by another process", which was the server.
pub(super) fn rejoin(scene: &mut Scene) -> Result<(), TortureError> {
    scene.serving(4, "raid = \"raid10\"\nset_size = 4")?;
    scene.host.writes(300)?;
    scene.done(&["drive", "fail", "@", "d2", "--yes"])?;
    scene.host.writes(300)?;
    scene.done(&["drive", "rejoin", "@", "d2"])?;
    scene.whole(4)?;
    scene.nothing_lost()?;
    // One that was moved meanwhile, here and while no server ran, is found, or is told of.
    scene.done(&["drive", "fail", "@", "d2", "--yes"])?;
    let (old, moved) = (scene.path("d2"), scene.at.join("moved.img"));
    rename(&old, &moved)?;
    match old == scene.image("d2") {
        true => scene.done(&["drive", "rejoin", "@", "d2"])?,
        // The kernel knows where a file went, and not by which link a device is found now.
        false => scene.done(&["drive", "rejoin", "@", "d2", "--path", &moved.display().to_string()])?,
    };
    scene.whole(4)?;
    scene.done(&["drive", "fail", "@", "d2", "--yes"])?;
    scene.stop()?;
    rename(&moved, &old.with_extension("elsewhere"))?;
    scene.serve(&[])?;
    scene.refused(&["drive", "rejoin", "@", "d2"], 2, &["moved.img", "--path"])?;
    let elsewhere = old.with_extension("elsewhere").display().to_string();
    scene.done(&["drive", "rejoin", "@", "d2", "--path", &elsewhere])?;
    scene.whole(4)?;
    scene.nothing_lost()?;
    // What it holds counts again: its partner may go.
    scene.done(&["drive", "fail", "@", "d3", "--yes"])?;
    scene.nothing_lost()
}

/// A drive was put back to what it had been minutes before, with the same superblock, and taken back by what had changed
/// since; the scrub that finds such pages was forgotten over a restart.
pub(super) fn rejoin_is_verified(scene: &mut Scene) -> Result<(), TortureError> {
    scene.serving(2, MIRROR)?;
    scene.host.writes(500)?;
    // Long enough for all of this: the one that verifies comes after it.
    scene.done(&["scrub", "@", "--rate", "64KiB"])?;
    scene.keep("d1", "d1.older")?;
    scene.host.writes(500)?;
    scene.done(&["drive", "fail", "@", "d1", "--yes"])?;
    scene.put("d1", "d1.older")?;
    let said = scene.done(&["drive", "rejoin", "@", "d1"])?;
    ensure(said.contains("what has changed since"), || format!("it is not taken as it is: {said}"))?;
    scene.whole(2)?;
    let summary = scene.status()?["summary"].to_string();
    ensure(summary.contains("d1 was taken back, or overwritten, and not verified"), || {
        format!("status says {summary}")
    })?;
    scene.refused(&["drive", "fail", "@", "d0", "--yes"], 2, &["d1", "not verified", "--force"])?;
    scene.kill()?;
    scene.serve(&[])?;
    scene.event("pool pool0", "the scrub has verified", 60)?;
    let verified = |status: &Value| !status["summary"].to_string().contains("not verified");
    wait_until("a verified drive", 30, || Ok(verified(&scene.status()?)))?;
    scene.done(&["drive", "fail", "@", "d0", "--yes"])?;
    scene.nothing_lost()
}

/// A kill while a drive was taken back left its old place among the members for good: lost, with advice that acted on the drive
/// that served.
pub(super) fn killed_in_a_rejoin(scene: &mut Scene) -> Result<(), TortureError> {
    scene.serving(4, "raid = \"raid10\"\nset_size = 4")?;
    scene.host.writes(300)?;
    for wait_ms in [1, 3, 5, 8, 12, 20, 30] {
        scene.done(&["drive", "fail", "@", "d1", "--yes"])?;
        let rejoining = scene.command(&["drive", "rejoin", "@", "d1"]).spawn();
        let mut rejoining = rejoining.map_err(TortureError::system("no rejoin"))?;
        pause(Duration::from_millis(wait_ms));
        scene.kill()?;
        let _ = rejoining.wait();
        scene.serve(&[])?;
        if drive_state(&scene.status()?["pools"][0], "d1") == "lost" {
            scene.done(&["drive", "rejoin", "@", "d1"])?;
        }
        scene.whole(4)?;
        let is_forgotten = |status: &Value| {
            let summary = status["summary"].to_string();
            !summary.contains("lost") && !summary.contains("not verified")
        };
        wait_until("the end of the old place", 30, || Ok(is_forgotten(&scene.status()?)))?;
    }
    scene.nothing_lost()
}

fn rename(from: &Path, to: &Path) -> Result<(), TortureError> {
    std::fs::rename(from, to).map_err(TortureError::system("a drive cannot be moved"))
}

/// A removal lowered redundancy first and copied then: another drive that failed meanwhile took data with it.
pub(super) fn removal_copies_first(scene: &mut Scene) -> Result<(), TortureError> {
    scene.drives(3)?;
    scene.faulty_drive("d3", Manners::default())?;
    scene.create_and_serve(&format!("{MIRROR}\nspare_drives = 2"), "")?;
    scene.host.begin(false);
    scene.host.goes_on(500, 30)?;
    scene.done(&["drive", "remove", "@", "d0", "--yes"])?;
    scene.faulty("d3").fail(true)?;
    pause(Duration::from_secs(8));
    scene.host.goes_on(100, 30)?;
    scene.host.end()?;
    scene.pool("the end of the removal", 90, |pool| {
        drive_state(pool, "d0") == "gone"
            && drive_state(pool, "d3") == "lost"
            && pool["sets"]["degraded"] == 0
    })?;
    scene.faulty("d3").fail(false)?;
    scene.nothing_lost()
}

/// The write log stayed for good where it had been made anew when a drive of `log_drives` was lost, and nothing said so.
pub(super) fn log_returns(scene: &mut Scene) -> Result<(), TortureError> {
    let log_on = |drives: [&str; 2]| {
        let drives = Value::from(drives.to_vec());
        move |pool: &Value| pool["log"]["drives"] == drives && pool["log"]["copies"] == 2
    };
    let pool =
        "drives = [\"d*\"]\nraid = \"raid10\"\nset_size = 4\nspare_drives = 1\nlog_drives = [\"d0\", \"d1\"]";
    scene.serving(5, pool)?;
    scene.pool("the log on d0 and d1", 20, log_on(["d0", "d1"]))?;
    scene.host.writes(300)?;
    scene.done(&["drive", "fail", "@", "d1", "--yes"])?;
    scene.pool("a log that is told to lie elsewhere", 30, |pool| {
        pool["log"]["copies"] == 2 && pool["problems"].to_string().contains("and log_drives says d0, d1")
    })?;
    scene.host.writes(300)?;
    scene.done(&["drive", "rejoin", "@", "d1"])?;
    scene.pool("the return of the log to d1", 60, log_on(["d0", "d1"]))?;
    scene.whole(5)?;
    let problems = scene.status()?["pools"][0]["problems"].clone();
    ensure(!problems.to_string().contains("log_drives"), || format!("there are problems: {problems}"))?;
    scene.nothing_lost()?;
    let path = scene.at.join("n1.img").display().to_string();
    let replace = ["drive", "replace", "@", "d1", "--name", "n1", "--path", &path, "--size", "64MiB"];
    scene.done(&replace)?;
    scene.pool("the log on the new drive", 60, |pool| {
        log_on(["d0", "n1"])(pool) && drive_state(pool, "d1") == "gone"
    })?;
    scene.nothing_lost()
}

/// A refused `drive add` left a file behind.
pub(super) fn refused_add_leaves_no_file(scene: &mut Scene) -> Result<(), TortureError> {
    scene.serving(2, MIRROR)?;
    let path = scene.at.join("new.img");
    let text = path.display().to_string();
    scene.refused(
        &["drive", "add", "@", "--name", "new", "--path", &text, "--size", "64KiB"],
        2,
        &["new"],
    )?;
    scene.refused(&["drive", "add", "@", "--name", "d1", "--path", &text, "--size", "64MiB"], 2, &["d1"])?;
    ensure(!path.exists(), || "a refused drive add leaves a file".to_owned())?;
    scene.whole(2)
}

/// A member that served, reached in another way than by its path, was added once more with --force, and destroyed.
pub(super) fn serving_drive_is_not_added(scene: &mut Scene) -> Result<(), TortureError> {
    scene.serving(2, MIRROR)?;
    scene.host.writes(100)?;
    let copy = scene.at.join("other.img");
    std::fs::copy(scene.image("d1"), &copy).map_err(TortureError::system("a drive cannot be copied"))?;
    let text = copy.display().to_string();
    let add = ["drive", "add", "@", "--name", "new", "--path", &text, "--force", "--yes"];
    scene.refused(&add, 2, &["new", "d1"])?;
    scene.whole(2)?;
    scene.nothing_lost()
}

/// A drive that was added while the pool was paused had its new file deleted when the server ended, whether or not the other
/// drives knew it as a member by then.
pub(super) fn add_in_a_pause(scene: &mut Scene) -> Result<(), TortureError> {
    for name in ["d0", "d1"] {
        scene.faulty_drive(name, Manners::default())?;
    }
    scene.drive("d2")?;
    scene.drive("d3")?;
    scene.describe("raid = \"raid10\"\nset_size = 4", "")?;
    scene.edit_file("cores = 2", "cores = 2\npause_timeout = 5")?;
    scene.done(&["create", "@"])?;
    scene.serve(&[])?;
    scene.host.writes(200)?;
    for name in ["d0", "d1"] {
        scene.faulty(name).fail(true)?;
    }
    let path = scene.at.join("n1.img");
    let text = path.display().to_string();
    let add = ["drive", "add", "@", "--name", "n1", "--path", &text, "--size", "64MiB"];
    scene.refused(&add, 1, &["not completed yet", "paused"])?;
    scene.stop()?;
    ensure(path.exists(), || "the file of a drive that joins was deleted".to_owned())?;
    for name in ["d0", "d1"] {
        scene.faulty(name).fail(false)?;
    }
    scene.serve(&[])?;
    if drive_state(&scene.status()?["pools"][0], "n1") == "gone" {
        scene.done(&["drive", "add", "@", "--name", "n1", "--path", &text, "--force", "--yes"])?;
    }
    scene.whole(5)?;
    scene.nothing_lost()
}
