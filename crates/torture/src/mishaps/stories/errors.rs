//! Errors that pass, and errors that do not.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;

use super::super::faulty::Manners;
use super::super::scene::{Scene, drive_state, ensure};
use crate::TortureError;
use crate::clock::{pause, wait_until, wall_s};
use crate::tools;

const MIRROR: &str = "raid = \"raid1\"\nset_size = 2";

const ALONE: &str = "raid = \"raid0\"\nset_size = 1";
/// Sectors of a device that shrinks.
const WHOLE: u64 = 131_072;

/// A mirror of two drives that can be made to fail, served under load.
fn mirror(scene: &mut Scene) -> Result<(), TortureError> {
    scene.faulty_drive("d0", Manners::default())?;
    scene.faulty_drive("d1", Manners::default())?;
    scene.create_and_serve(MIRROR, "")?;
    scene.host.begin(false);
    scene.host.goes_on(100, 30)
}

fn fail_both(scene: &mut Scene, fails: bool) -> Result<(), TortureError> {
    scene.faulty("d0").fail(fails)?;
    scene.faulty("d1").fail(fails)
}

/// EIO for one second on both legs of a mirror made the pool unopenable although nothing was lost.
pub(super) fn both_legs_for_a_second(scene: &mut Scene) -> Result<(), TortureError> {
    mirror(scene)?;
    fail_both(scene, true)?;
    pause(Duration::from_secs(1));
    fail_both(scene, false)?;
    scene.host.goes_on(200, 20)?;
    let seen = scene.host.end()?;
    ensure(seen.longest_s < 10.0, || format!("a host waited {:.1} s", seen.longest_s))?;
    scene.whole(2)?;
    scene.nothing_lost()
}

/// A drive that fails for longer than patience lasts is lost, and a spare takes its place.
pub(super) fn one_leg_for_ten_seconds(scene: &mut Scene) -> Result<(), TortureError> {
    scene.drive("d0")?;
    scene.faulty_drive("d1", Manners::default())?;
    scene.drive("d2")?;
    scene.create_and_serve(&format!("{MIRROR}\nspare_drives = 1"), "")?;
    scene.host.begin(false);
    scene.host.goes_on(100, 30)?;
    scene.faulty("d1").fail(true)?;
    pause(Duration::from_secs(10));
    scene.faulty("d1").fail(false)?;
    scene.host.goes_on(200, 20)?;
    scene.pool("d1 lost and its sets rebuilt", 60, |pool| {
        drive_state(pool, "d1") == "lost" && pool["sets"]["degraded"] == 0 && pool["rebuild"].is_null()
    })?;
    let seen = scene.host.end()?;
    ensure(seen.longest_s < 12.0, || format!("a host waited {:.1} s", seen.longest_s))?;
    scene.nothing_lost()
}

/// A controller with both legs behind it goes away and comes back: the pool waits, and goes on.
pub(super) fn both_legs_away(scene: &mut Scene) -> Result<(), TortureError> {
    mirror(scene)?;
    fail_both(scene, true)?;
    let status = scene.pool("a pause", 15, |pool| !pool["paused"].is_null())?;
    ensure(status["summary"].as_str().is_some_and(|told| told.contains("paused")), || {
        format!("status does not tell the pause: {}", status["summary"])
    })?;
    pause(Duration::from_secs(20));
    fail_both(scene, false)?;
    scene.pool("the end of the pause", 20, |pool| pool["paused"].is_null())?;
    scene.host.goes_on(200, 20)?;
    scene.host.end()?;
    scene.whole(2)?;
    scene.nothing_lost()
}

/// A controller that comes back brings its drives one after the other: the second was lost in the moment in which the first
/// answered.
pub(super) fn back_one_after_the_other(scene: &mut Scene) -> Result<(), TortureError> {
    mirror(scene)?;
    fail_both(scene, true)?;
    scene.pool("a pause", 15, |pool| !pool["paused"].is_null())?;
    pause(Duration::from_secs(5));
    scene.faulty("d0").fail(false)?;
    pause(Duration::from_secs(4));
    scene.faulty("d1").fail(false)?;
    scene.pool("the end of the pause", 20, |pool| pool["paused"].is_null())?;
    scene.host.goes_on(200, 20)?;
    scene.host.end()?;
    scene.whole(2)?;
    // One that does not come back in time is done without.
    scene.host.begin(false);
    fail_both(scene, true)?;
    scene.pool("a pause", 15, |pool| !pool["paused"].is_null())?;
    scene.faulty("d1").fail(false)?;
    scene.pool("the loss of d0", 40, |pool| drive_state(pool, "d0") == "lost")?;
    scene.host.goes_on(200, 20)?;
    scene.host.end()?;
    scene.faulty("d0").fail(false)?;
    scene.nothing_lost()
}

/// A crash in a pause is a crash: what was acknowledged is there when the drives are.
pub(super) fn killed_in_a_pause(scene: &mut Scene) -> Result<(), TortureError> {
    mirror(scene)?;
    fail_both(scene, true)?;
    pause(Duration::from_secs(8));
    scene.kill()?;
    fail_both(scene, false)?;
    scene.serve(&[])?;
    scene.whole(2)?;
    scene.nothing_lost()
}

/// A server that was stopped in a pause said nothing while it waited, and was killed by an administrator who thought
/// that it hung.
pub(super) fn stopped_in_a_pause(scene: &mut Scene) -> Result<(), TortureError> {
    mirror(scene)?;
    fail_both(scene, true)?;
    scene.pool("a pause", 15, |pool| !pool["paused"].is_null())?;
    scene.host.server_ends();
    scene.signal(Signal::TERM);
    let words = ["paused and waits for drives d0, d1", "s more before", "send SIGTERM"];
    let is_told =
        |scene: &Scene| scene.log().lines().any(|line| words.iter().all(|word| line.contains(word)));
    wait_until("what the end waits for in the log", 10, || Ok(is_told(scene)))?;
    scene.signal(Signal::TERM);
    ensure(scene.ends().is_err(), || "a second SIGTERM ended the server as if in order".to_owned())?;
    fail_both(scene, false)?;
    scene.serve(&[])?;
    scene.whole(2)?;
    scene.nothing_lost()
}

/// A drive is pulled and put back while the array serves; it is lost, or taken back, and nothing else happens.
pub(super) fn pulled_and_put_back(scene: &mut Scene) -> Result<(), TortureError> {
    mirror(scene)?;
    scene.pull("d1");
    scene.pool("the loss of d1", 60, |pool| drive_state(pool, "d1") == "lost")?;
    scene.host.goes_on(200, 20)?;
    scene.put_back("d1")?;
    scene.done(&["drive", "rejoin", "@", "d1"])?;
    scene.host.goes_on(200, 20)?;
    scene.host.end()?;
    scene.whole(2)?;
    scene.nothing_lost()
}

/// Both legs of a mirror were pulled and put back: each had a new descriptor then, and the server read through the dead
/// ones until it was started anew.
pub(super) fn both_pulled_and_put_back(scene: &mut Scene) -> Result<(), TortureError> {
    mirror(scene)?;
    scene.pull("d0");
    scene.pull("d1");
    scene.pool("a pause", 60, |pool| !pool["paused"].is_null())?;
    scene.put_back("d0")?;
    scene.put_back("d1")?;
    scene.host.goes_on(200, 30)?;
    scene.host.end()?;
    scene.pool("the end of the pause", 20, |pool| pool["paused"].is_null())?;
    scene.nothing_lost()
}

/// One unreadable 4 KiB of one superblock copy lost the drive.
pub(super) fn bad_sector_in_a_superblock(scene: &mut Scene) -> Result<(), TortureError> {
    scene.drives(2)?;
    scene.create_and_serve(MIRROR, "")?;
    scene.host.writes(200)?;
    scene.stop()?;
    scene.misbehave("d1", Manners { bad_sectors: Some((0, 8)), ..Manners::default() })?;
    scene.serve(&[])?;
    scene.whole(2)?;
    scene.host.writes(100)?;
    scene.nothing_lost()
}

/// Sparse drive files on a full file system: both drives were lost. The array waits for space and says so.
pub(super) fn backing_file_system_full(scene: &mut Scene) -> Result<(), TortureError> {
    in_small_file_system(scene, on_full_file_system)
}

/// A start that writes to its places what the log has waited for space on a full file system and said nothing.
pub(super) fn start_on_a_full_file_system(scene: &mut Scene) -> Result<(), TortureError> {
    in_small_file_system(scene, started_on_full_file_system)
}

fn in_small_file_system(
    scene: &mut Scene,
    story: impl Fn(&mut Scene, &Path) -> Result<(), TortureError>,
) -> Result<(), TortureError> {
    let (disk, point) = (scene.at.join("backing"), scene.at.join("full"));
    let disk = sparse(&disk, 80)?;
    std::fs::create_dir(&point).map_err(TortureError::system("no directory can be made"))?;
    let mounted = point.display().to_string();
    tools::run("mkfs.ext4", &["-q", "-m", "0", &disk])?;
    tools::run("mount", &["-o", "loop", &disk, &mounted])?;
    let told = story(scene, &point);
    scene.host.server_ends();
    let _ = scene.kill();
    tools::run("umount", &["--lazy", &mounted])?;
    told
}

/// Serves sparse drives in a file system that is full then; what fills it.
fn fill(scene: &mut Scene, point: &Path) -> Result<PathBuf, TortureError> {
    array_at(scene, MIRROR, &[sparse(&point.join("d0"), 64)?, sparse(&point.join("d1"), 64)?])?;
    ballast(point)
}

fn started_on_full_file_system(scene: &mut Scene, point: &Path) -> Result<(), TortureError> {
    let ballast = fill(scene, point)?;
    scene.host.begin(true);
    scene.pool("a pool that tells the full file system", 60, |pool| {
        pool.to_string().contains("\"no_space\":true")
    })?;
    scene.host.server_ends();
    scene.kill()?;
    let mut command = scene.serve_command(&[]);
    scene.launch(&mut command)?;
    let until = wall_s() + 30.0;
    while !scene.log().contains("the file system under it is full") {
        let log = scene.log();
        ensure(wall_s() < until && scene.runs()?, || {
            format!("the start does not tell what it waits for: {log}")
        })?;
        pause(Duration::from_millis(100));
    }
    std::fs::remove_file(&ballast).map_err(TortureError::system("the ballast cannot be removed"))?;
    scene.listens()?;
    scene.whole(2)?;
    scene.nothing_lost()
}

fn on_full_file_system(scene: &mut Scene, point: &Path) -> Result<(), TortureError> {
    let ballast = fill(scene, point)?;
    scene.host.begin(true);
    let status = scene.pool("a pool that tells the full file system", 60, |pool| {
        pool.to_string().contains("no space") || pool.to_string().contains("\"no_space\":true")
    })?;
    let drives = ["d0", "d1"].map(|drive| drive_state(&status["pools"][0], drive).to_owned());
    ensure(drives.iter().all(|state| state == "active"), || format!("the drives are {drives:?}"))?;
    std::fs::remove_file(&ballast).map_err(TortureError::system("the ballast cannot be removed"))?;
    scene.host.goes_on(500, 30)?;
    scene.host.end()?;
    scene.whole(2)?;
    scene.nothing_lost()
}

/// What had waited for space on a drive that was taken out waited on, and so did all hosts.
pub(super) fn full_drive_is_taken_out(scene: &mut Scene) -> Result<(), TortureError> {
    in_small_file_system(scene, |scene, point| {
        scene.drive("d0")?;
        let sparse = sparse(&point.join("d1"), 64)?;
        array_at(scene, MIRROR, &[scene.path("d0").display().to_string(), sparse])?;
        ballast(point)?;
        scene.host.begin(true);
        scene.pool("a pool that tells the full file system", 60, |pool| {
            pool["problems"].to_string().contains("the file system under it is full")
        })?;
        scene.done(&["drive", "fail", "@", "d1", "--yes"])?;
        scene.host.goes_on(500, 30)?;
        scene.host.end()?;
        scene.nothing_lost()
    })
}

/// A file that takes no space, as an administrator makes them who trusts in thin files.
fn sparse(path: &Path, mib: u64) -> Result<String, TortureError> {
    let made = std::fs::File::create(path).and_then(|file| file.set_len(mib << 20));
    made.map_err(TortureError::system("no sparse file can be made"))?;
    Ok(path.display().to_string())
}

/// Fills a file system; with what.
fn ballast(point: &Path) -> Result<PathBuf, TortureError> {
    let ballast = point.join("ballast");
    let mut file =
        std::fs::File::create(&ballast).map_err(TortureError::system("the file system cannot be filled"))?;
    while std::io::Write::write_all(&mut file, &[1; 1 << 16]).is_ok() {}
    Ok(ballast)
}

/// Creates an array of drives at places of their own, and serves it.
fn array_at(scene: &mut Scene, pool: &str, places: &[String]) -> Result<(), TortureError> {
    let mut text = String::from("[array]\nname = \"mishaps\"\n\n");
    for (number, path) in places.iter().enumerate() {
        text += &format!("[[drive]]\nname = \"d{number}\"\npath = \"{path}\"\n\n");
    }
    text += &format!(
        "[[pool]]\nname = \"pool0\"\n{pool}\n\n[[volume]]\nname = \"lun0\"\nsize = \"16MiB\"\n\n\
         [nbd]\nlisten = [\"unix:{}/nbd.sock\"]\n",
        scene.at.display()
    );
    scene.write_file(&text)?;
    scene.done(&["create", "@"])?;
    scene.serve(&[])
}

/// A device that ended too early, as one does that Linux has taken away, was taken for one without space, and was not looked
/// for again. An array that needs it waits, says what it is, and goes on by itself when the device is whole.
pub(super) fn device_shrinks(scene: &mut Scene) -> Result<(), TortureError> {
    on_partition(scene, |scene, device| {
        array_at(scene, ALONE, std::slice::from_ref(&device.path))?;
        for sectors in [24576, 1] {
            device.resize(sectors)?;
            scene.host.begin(true);
            scene.pool("a pool that waits for the device", 60, |pool| {
                pool["paused"].to_string().contains("d0")
                    && pool["drives"].to_string().contains("ends too early")
            })?;
            device.resize(WHOLE)?;
            scene.host.goes_on(500, 30)?;
            scene.host.end()?;
        }
        scene.nothing_lost()
    })
}

/// The same of a mirror, which does without the device and takes it back.
pub(super) fn device_shrinks_and_is_done_without(scene: &mut Scene) -> Result<(), TortureError> {
    on_partition(scene, |scene, device| {
        scene.drive("d0")?;
        array_at(scene, MIRROR, &[scene.path("d0").display().to_string(), device.path.clone()])?;
        scene.host.begin(false);
        device.resize(1)?;
        scene.event("drive d1", "failed (a", 60)?;
        scene.host.goes_on(500, 30)?;
        device.resize(WHOLE)?;
        scene.done(&["drive", "rejoin", "@", "d1"])?;
        scene.host.goes_on(500, 30)?;
        scene.host.end()?;
        scene.whole(2)?;
        scene.nothing_lost()
    })
}

/// The fronts of both legs were overwritten while they served: status said that all was well, and the next start knew none.
pub(super) fn fronts_overwritten(scene: &mut Scene) -> Result<(), TortureError> {
    scene.serving(2, MIRROR)?;
    scene.host.writes(300)?;
    scene.overwrite_serving_front("d0", 1024)?;
    scene.overwrite_serving_front("d1", 1024)?;
    // The array may look at the fronts between the two: it then tells of each drive by itself.
    scene.event("drive d0", "overwritten from outside", 30)?;
    scene.event("drive d1", "overwritten from outside", 30)?;
    scene.event("pool pool0", "the scrub has verified", 30)?;
    scene.kill()?;
    scene.serve(&[])?;
    scene.whole(2)?;
    scene.host.writes(100)?;
    scene.nothing_lost()
}

/// A drive was overwritten behind a scrub that had been stopped: the scrub that was to repair it went on from there, said that
/// nothing was wrong, and the other leg was let go.
pub(super) fn overwritten_behind_a_scrub(scene: &mut Scene) -> Result<(), TortureError> {
    scene.serving(2, MIRROR)?;
    scene.host.writes(600)?;
    scene.done(&["scrub", "@", "--rate", "512KiB"])?;
    scene.pool("a scrub that has come some way", 60, |pool| {
        pool["scrub"]["progress"].as_f64().is_some_and(|progress| progress > 0.3)
    })?;
    scene.done(&["scrub", "@", "--stop"])?;
    scene.pool("the end of the scrub", 20, |pool| pool["scrub"]["running"] == false)?;
    // All of the drive but its end.
    scene.overwrite_serving_front("d0", 48 << 10)?;
    scene.event("drive d0", "overwritten from outside", 30)?;
    scene.event("pool pool0", "repaired, 0 lost", 60)?;
    scene.pool("a drive that is verified", 30, |pool| {
        !pool["problems"].to_string().contains("not verified")
    })?;
    scene.done(&["drive", "fail", "@", "d1", "--yes"])?;
    scene.nothing_lost()
}

/// Both legs of a mirror end too early: it waits, names both, and goes on when they are whole.
pub(super) fn both_devices_shrink(scene: &mut Scene) -> Result<(), TortureError> {
    on_partition(scene, |scene, one| {
        on_partition(scene, |scene, other| {
            array_at(scene, MIRROR, &[one.path.clone(), other.path.clone()])?;
            scene.host.begin(true);
            one.resize(1)?;
            other.resize(1)?;
            scene.pool("a pool that waits for both devices", 60, |pool| !pool["paused"].is_null())?;
            scene.event("pool pool0", "d0", 20)?;
            scene.event("pool pool0", "d1", 20)?;
            one.resize(WHOLE)?;
            other.resize(WHOLE)?;
            scene.host.goes_on(500, 30)?;
            scene.host.end()?;
            scene.pool("the end of the pause", 20, |pool| pool["paused"].is_null())?;
            scene.nothing_lost()
        })
    })
}

/// A drive file that was cut short and given its size back served on, and what it had held behind its end was missing
/// when the other leg failed; one that was cut while no host read it was told nowhere.
pub(super) fn file_cut_short(scene: &mut Scene) -> Result<(), TortureError> {
    if !serves_cut(scene, 32)? {
        return Ok(());
    }
    let status = scene.status()?;
    ensure(status["health"] == "degraded", || format!("the array is {}", status["health"]))?;
    let image = scene.image("d1").display().to_string();
    scene.refused(&["check", "@"], 2, &["d1", "has shrunk"])?;
    scene.host.begin(false);
    cut(scene, 4)?;
    scene.host.goes_on(200, 30)?;
    cut(scene, 64)?;
    scene.pool("the loss of d1", 30, |pool| drive_state(pool, "d1") == "lost")?;
    scene.done(&["drive", "rejoin", "@", "d1", "--path", &image])?;
    scene.host.goes_on(200, 30)?;
    scene.host.end()?;
    scene.whole(2)?;
    scene.done(&["drive", "fail", "@", "d0", "--yes"])?;
    scene.nothing_lost()
}

/// A drive file that had been cut short was well again as soon as it had its size back, with holes behind the cut, and the
/// other leg was let go.
pub(super) fn file_cut_and_grown(scene: &mut Scene) -> Result<(), TortureError> {
    if !serves_cut(scene, 20)? {
        return Ok(());
    }
    cut(scene, 64)?;
    scene.event("drive d1", "has its size again", 30)?;
    scene.event("pool pool0", "repaired, 0 lost", 60)?;
    scene.pool("a drive that is verified", 30, |pool| {
        !pool["problems"].to_string().contains("not verified")
    })?;
    scene.done(&["drive", "fail", "@", "d0", "--yes"])?;
    scene.nothing_lost()
}

/// A mirror whose second drive file ends too early by now, which is told; false where the drive is no file: what lies under a
/// loop device is none, and devices are made smaller by other stories.
fn serves_cut(scene: &mut Scene, mib: u64) -> Result<bool, TortureError> {
    scene.serving(2, MIRROR)?;
    if scene.path("d1") != scene.image("d1") {
        return Ok(false);
    }
    scene.host.writes(600)?;
    cut(scene, mib)?;
    scene.event("drive d1", "is smaller than it was", 20)?;
    Ok(true)
}

fn cut(scene: &Scene, mib: u64) -> Result<(), TortureError> {
    let file = std::fs::File::options().write(true).open(scene.image("d1"));
    let done = file.and_then(|file| file.set_len(mib << 20));
    done.map_err(TortureError::system("a drive file does not get another size"))
}

/// A partition of a loop device: it can be made smaller while it is in use, and keeps what it holds.
struct Partition {
    disk: String,
    path: String,
}

impl Partition {
    fn resize(&self, sectors: u64) -> Result<(), TortureError> {
        tools::run("resizepart", &[&self.disk, "1", &sectors.to_string()]).map(|_| ())
    }
}

fn on_partition(
    scene: &mut Scene,
    story: impl FnOnce(&mut Scene, &Partition) -> Result<(), TortureError>,
) -> Result<(), TortureError> {
    let names = (0..).map(|number| scene.at.join(format!("disk{number}.backing")));
    let image = sparse(&names.into_iter().find(|image| !image.exists()).expect("one is free"), 80)?;
    let losetup = ["--partscan", "--find", "--show", &image];
    let disk = tools::run("losetup", &losetup)?.trim().to_owned();
    tools::run("addpart", &[&disk, "1", "0", &WHOLE.to_string()])?;
    let partition = Partition { path: format!("{disk}p1"), disk };
    let told = story(scene, &partition);
    scene.host.server_ends();
    let _ = scene.kill();
    tools::run("delpart", &[&partition.disk, "1"])?;
    tools::run("losetup", &["--detach", &partition.disk])?;
    told
}
