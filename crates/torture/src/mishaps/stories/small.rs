//! Small things that cost an operator his evening.

use std::os::unix::fs::FileExt;
use std::time::Duration;

use rustix::process::Signal;

use super::super::scene::{Scene, drive_state, ensure, uri};
use crate::TortureError;
use crate::client::fill;
use crate::clock::pause;

const MIRROR: &str = "raid = \"raid1\"\nset_size = 2";
/// Sectors of the volume of a story.
const VOLUME_SECTORS: u64 = 16 << 11;

/// `scrub --rate 0` hung, and `--stop` did not stop a scrub.
pub(super) fn scrub_rate_and_stop(scene: &mut Scene) -> Result<(), TortureError> {
    scene.serving(2, MIRROR)?;
    scene.host.writes(600)?;
    let said = scene.tier0(&["scrub", "@", "--rate", "0"])?;
    ensure(said.code == Some(2) && said.err.contains("rate"), || {
        format!("scrub --rate 0 is not refused: {}", said.told())
    })?;
    // So slow that it is surely under way when it is stopped.
    scene.done(&["scrub", "@", "--rate", "4KiB"])?;
    scene.pool("a scrub", 10, |pool| pool["scrub"]["running"] == true)?;
    scene.done(&["scrub", "@", "--stop"])?;
    scene.pool("the end of the scrub", 10, |pool| pool["scrub"]["running"] != true)?;
    scene.done(&["scrub", "@"])?;
    scene.pool("a whole scrub", 60, |pool| {
        pool["scrub"]["running"] == false && pool["scrub"]["progress"] == 1.0
    })?;
    scene.nothing_lost()
}

/// What a scrub found named no drive, left no event, and the advice stayed after a clean one.
pub(super) fn scrub_finds(scene: &mut Scene) -> Result<(), TortureError> {
    scene.serving(2, MIRROR)?;
    scene.host.writes(1500)?;
    scene.pool("an empty log", 30, |pool| pool["log"]["dirty_bytes"] == 0)?;
    scene.stop()?;
    damage(scene, "d1")?;
    scene.serve(&[])?;
    scene.done(&["scrub", "@"])?;
    let found = scene.pool("a scrub that repairs", 60, |pool| {
        pool["scrub"]["running"] == false && pool["scrub"]["repaired"].as_u64() > Some(0)
    })?;
    let told = found["events"].as_array().into_iter().flatten().any(|event| {
        let text = event.to_string();
        text.contains("d1") && text.contains("repaired")
    });
    ensure(told, || format!("no event names d1: {}", found["events"]))?;
    // One event a page drove all others out of what status shows.
    let of_pages = |event: &&serde_json::Value| event["what"].to_string().contains("the page at byte");
    let pages: Vec<_> = found["events"].as_array().into_iter().flatten().filter(of_pages).collect();
    let counts = pages.iter().any(|event| event["what"].to_string().contains("more since, at byte"));
    // What is told late may be an event of its own.
    ensure(counts && pages.len() <= 2, || format!("pages are not told in one event: {pages:?}"))?;
    scene.done(&["scrub", "@"])?;
    scene.pool("a clean scrub", 60, |pool| {
        pool["scrub"]["running"] == false && pool["scrub"]["repaired"] == 0 && pool["health"] == "healthy"
    })?;
    scene.nothing_lost()
}

/// What a scrub had found lost stood in the summary until a restart although the host had written it anew; and the log called
/// the volume by a number.
pub(super) fn lost_and_written_anew(scene: &mut Scene) -> Result<(), TortureError> {
    scene.serving(2, MIRROR)?;
    scene.host.writes(1500)?;
    scene.pool("an empty log", 30, |pool| pool["log"]["dirty_bytes"] == 0)?;
    scene.stop()?;
    damage(scene, "d0")?;
    damage(scene, "d1")?;
    scene.serve(&[])?;
    scene.done(&["scrub", "@"])?;
    let found = scene.pool("a scrub that finds what is lost", 60, |pool| {
        pool["scrub"]["running"] == false && pool["integrity"]["lost"][0]["volume"] == "lun0"
    })?;
    let summary = found["summary"].as_str().unwrap_or_default();
    ensure(summary.contains("no copy passes"), || format!("status does not tell the loss: {summary}"))?;
    let log = scene.log();
    ensure(log.contains("volume lun0 sectors"), || format!("the log does not name the volume: {log}"))?;
    fill(&uri(&scene.at, "lun0"), VOLUME_SECTORS)?;
    scene.pool("nothing that is lost", 60, |pool| {
        !pool["problems"].to_string().contains("no copy passes") && pool["integrity"]["lost"][0].is_null()
    })?;
    Ok(())
}

/// Flips a byte in each sixteenth stamped page of the middle of the image: data, and neither log nor metadata. They are
/// many and far apart, because some of them hold what the host has discarded since, which no reader checks.
fn damage(scene: &Scene, drive: &str) -> Result<(), TortureError> {
    let fail = || TortureError::system("a drive cannot be damaged");
    let path = scene.image(drive);
    let file = std::fs::File::options().read(true).write(true).open(path).map_err(fail())?;
    let bytes = file.metadata().map_err(fail())?.len();
    let mut page = [0; 4096];
    let mut stamped = 0;
    for at in (bytes / 4..bytes * 3 / 4).step_by(4096) {
        file.read_exact_at(&mut page, at).map_err(fail())?;
        let sector = u64::from_le_bytes(page[..8].try_into().expect("eight bytes"));
        if page[512..].iter().any(|byte| *byte != 0) && sector > 0 && sector < 32768 {
            stamped += 1;
            if stamped % 16 == 0 {
                page[100] ^= 1;
                file.write_all_at(&page, at).map_err(fail())?;
            }
        }
    }
    file.sync_all().map_err(fail())?;
    ensure(stamped >= 256, || format!("only {stamped} pages of the volume are found on the drive"))
}

/// SIGHUP, which a terminal sends when it closes, killed the server.
pub(super) fn hangup(scene: &mut Scene) -> Result<(), TortureError> {
    scene.serving(2, MIRROR)?;
    scene.host.begin(false);
    scene.host.goes_on(100, 30)?;
    scene.signal(Signal::HUP);
    pause(Duration::from_millis(500));
    ensure(scene.runs()?, || "SIGHUP ends the server".to_owned())?;
    scene.host.goes_on(100, 30)?;
    scene.host.end()?;
    scene.nothing_lost()
}

/// Sockets stayed behind, of servers that ended and of servers that were killed.
pub(super) fn stale_sockets(scene: &mut Scene) -> Result<(), TortureError> {
    scene.serving(2, MIRROR)?;
    scene.kill()?;
    scene.serve(&[])?;
    scene.status()?;
    scene.stop()?;
    let left: Vec<String> = std::fs::read_dir(&scene.at)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| {
            use std::os::unix::fs::FileTypeExt;
            entry.file_type().is_ok_and(|kind| kind.is_socket())
        })
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    ensure(left.is_empty(), || format!("sockets stay behind: {left:?}"))
}

/// A thin pool that filled was not told of before writes failed.
pub(super) fn thin_pool_fills(scene: &mut Scene) -> Result<(), TortureError> {
    let thin = "[[volume]]\nname = \"thin\"\nsize = \"512MiB\"\nthin = true";
    scene.drives(2)?;
    scene.create_and_serve(MIRROR, thin)?;
    let promised = scene.status()?;
    let warned = promised["pools"][0].to_string().contains("promised") || promised["health"] != "healthy";
    ensure(warned, || {
        format!("512 MiB are promised on drives of 64 MiB, and status says: {}", promised["summary"])
    })?;
    ensure(drive_state(&promised["pools"][0], "d0") == "active", || "d0 is not active".to_owned())?;
    let uri = super::super::scene::uri(&scene.at, "thin");
    let filled = fill(&uri, 256 << 11)?;
    ensure(filled < 256 << 11, || "more fits than there is".to_owned())?;
    let full = scene.status()?;
    ensure(full["health"] != "healthy", || format!("a full pool is healthy: {}", full["summary"]))?;
    scene.host.writes(100)?;
    scene.nothing_lost()
}
