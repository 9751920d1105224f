//! Starts that are refused, and drives that are there and cannot be opened: nothing is written before everything is
//! proved.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::time::Duration;

use rustix::process::Signal;

use super::super::faulty::Manners;
use super::super::scene::{Scene, drive_state, ensure};
use crate::TortureError;
use crate::clock::{pause, wall_s};
use crate::tools;

/// One start with both log SSDs absent was refused, but had written "lost" into the superblocks first.
pub(super) fn log_drives_away(scene: &mut Scene) -> Result<(), TortureError> {
    scene.drives(4)?;
    scene.drive("ssd0")?;
    scene.drive("ssd1")?;
    scene.create_and_serve(
        "raid = \"raid10\"\nset_size = 4\ndrives = [\"d*\", \"ssd*\"]\nlog_drives = [\"ssd0\", \"ssd1\"]",
        "",
    )?;
    scene.host.writes(400)?;
    scene.stop()?;
    scene.away("ssd0")?;
    scene.away("ssd1")?;
    scene.refused_start(&[], &["ssd0", "ssd1"])?;
    scene.back("ssd0")?;
    scene.back("ssd1")?;
    scene.serve(&[])?;
    scene.whole(6)?;
    scene.nothing_lost()
}

/// A start with a file that names three of four drives ended with 2 and left the fourth lost for good.
pub(super) fn fewer_drives_in_the_file(scene: &mut Scene) -> Result<(), TortureError> {
    scene.serving(4, "raid = \"raid10\"\nset_size = 4")?;
    scene.host.writes(400)?;
    scene.stop()?;
    let three: Vec<String> = (0..3).map(|index| format!("d{index}")).collect();
    scene.describe_with(&three, "raid = \"raid10\"\nset_size = 4", "")?;
    // The drive may be found where it was; then nothing is missing, and the array is served with all four.
    if scene.serve(&[]).is_ok() {
        scene.whole(4)?;
        scene.stop()?;
    }
    let four: Vec<String> = (0..4).map(|index| format!("d{index}")).collect();
    scene.describe_with(&four, "raid = \"raid10\"\nset_size = 4", "")?;
    scene.serve(&[])?;
    scene.whole(4)?;
    scene.nothing_lost()
}

/// A start with a file that contradicts the pool, while a drive was away, ended with 2 and left that drive lost for good.
pub(super) fn wrong_file_while_a_drive_is_away(scene: &mut Scene) -> Result<(), TortureError> {
    scene.serving(4, "raid = \"raid10\"\nset_size = 4")?;
    scene.host.writes(400)?;
    scene.stop()?;
    scene.away("d3")?;
    scene.edit_file("\"raid10\"", "\"raid5\"")?;
    scene.refused_start(&[], &["pool0", "raid10", "raid5"])?;
    scene.edit_file("\"raid5\"", "\"raid10\"")?;
    scene.back("d3")?;
    scene.serve(&[])?;
    scene.whole(4)?;
    scene.nothing_lost()
}

/// A volume that was deleted and created at another size than the file says refused the next start.
pub(super) fn other_volume_size_is_told(scene: &mut Scene) -> Result<(), TortureError> {
    scene.serving(2, "raid = \"raid1\"\nset_size = 2")?;
    scene.host.writes(100)?;
    scene.stop()?;
    scene.edit_file("size = \"16MiB\"", "size = \"17MiB\"")?;
    scene.serve(&[])?;
    ensure(scene.log().contains("the array file has 17MiB"), || format!("nothing is told: {}", scene.log()))?;
    scene.whole(2)?;
    scene.nothing_lost()
}

/// An administrator partitioned or formatted a drive of the array; nothing told any more whose it was. Where that
/// befell all of them, no verb could bring the array back, although the data was there.
pub(super) fn front_overwritten(scene: &mut Scene) -> Result<(), TortureError> {
    scene.serving(2, "raid = \"raid1\"\nset_size = 2")?;
    scene.host.writes(300)?;
    scene.stop()?;
    scene.overwrite_front("d1", 2048)?;
    scene.refused_start(&[], &["d1", "overwritten", "--without d1"])?;
    scene.serve(&["--without", "d1"])?;
    let status = scene.status()?;
    ensure(drive_state(&status["pools"][0], "d1") == "lost", || format!("d1 is believed: {status}"))?;
    scene.host.writes(300)?;
    scene.done(&["drive", "rejoin", "@", "d1"])?;
    scene.whole(2)?;
    scene.nothing_lost()?;
    scene.stop()?;
    scene.overwrite_front("d0", 192)?;
    scene.overwrite_front("d1", 192)?;
    scene.refused_start(&[], &["d0", "d1"])?;
    scene.done(&["pool", "recover", "@", "--accept-loss", "--yes"])?;
    scene.serve(&[])?;
    scene.nothing_lost()
}

/// A copy of an array that lacked a drive took that drive from the original, which did not open any more.
pub(super) fn copy_leaves_the_original_alone(scene: &mut Scene) -> Result<(), TortureError> {
    scene.serving(4, "raid = \"raid10\"\nset_size = 4")?;
    scene.host.writes(200)?;
    scene.stop()?;
    let (original, copy) = (scene.at.clone(), scene.at.join("copy"));
    std::fs::create_dir(&copy).map_err(TortureError::system("no directory can be made"))?;
    for drive in ["d1", "d2", "d3"] {
        let from = scene.image(drive);
        let to = copy.join(from.file_name().expect("a drive is a file"));
        std::fs::copy(&from, to).map_err(TortureError::system("a drive cannot be copied"))?;
    }
    let file = std::fs::read_to_string(scene.file()).map_err(TortureError::system("no file"))?;
    let (there, here) = (original.display().to_string(), copy.display().to_string());
    let of_copy = file.replace(&there, &here).replace(".dev\"", ".img\"");
    let path = copy.join("array.toml");
    std::fs::write(&path, of_copy).map_err(TortureError::system("no file can be written"))?;
    let checked = scene.tier0(&["check", &path.display().to_string()])?;
    ensure(checked.out.contains("a copy must not touch the original"), || {
        format!("the check does not say it: {}", checked.told())
    })?;
    scene.serve(&[])?;
    scene.whole(4)?;
    scene.nothing_lost()
}

/// A drive that answered EIO at a start was called gone.
pub(super) fn drive_with_errors_is_not_gone(scene: &mut Scene) -> Result<(), TortureError> {
    scene.drives(3)?;
    scene.faulty_drive("d3", Manners::default())?;
    scene.create_and_serve("raid = \"raid10\"\nset_size = 4", "")?;
    scene.host.writes(400)?;
    scene.stop()?;
    scene.faulty("d3").fail(true)?;
    scene.refused_start(&[], &["d3"])?;
    scene.faulty("d3").fail(false)?;
    scene.serve(&[])?;
    scene.whole(4)?;
    scene.host.writes(100)?;
    scene.stop()?;
    scene.faulty("d3").fail(true)?;
    scene.serve(&["--without", "d3"])?;
    scene.nothing_lost()
}

/// A drive whose permissions were wrong for one start was lost.
pub(super) fn permission_is_not_gone(scene: &mut Scene) -> Result<(), TortureError> {
    let nobody = 65534;
    let chown = |path: &std::path::Path, owner: u32| {
        std::os::unix::fs::chown(path, Some(owner), Some(owner))
            .map_err(TortureError::system("an owner cannot be changed"))
    };
    scene.serving(2, "raid = \"raid1\"\nset_size = 2")?;
    scene.host.writes(400)?;
    scene.stop()?;
    // The directory above is private: the user comes in by its descriptor's mode.
    let mode = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(&scene.at, mode).map_err(TortureError::system("no mode can be set"))?;
    for drive in ["d0", "d1"] {
        let device =
            std::fs::canonicalize(scene.path(drive)).map_err(TortureError::system("a drive has no path"))?;
        chown(&device, if drive == "d0" { nobody } else { 0 })?;
        std::fs::set_permissions(&device, std::fs::Permissions::from_mode(0o600))
            .map_err(TortureError::system("no mode can be set"))?;
    }
    let mut command = scene.serve_command(&[]);
    command.uid(nobody).gid(nobody);
    let served = scene.serve_by(command);
    ensure(served.is_err(), || "the array is served without a drive that it may not open".to_owned())?;
    let log = scene.log();
    ensure(log.contains("d1") && log.to_lowercase().contains("permi"), || {
        format!("the refusal does not say that d1 must not be opened: {}", log.trim())
    })?;
    scene.serve(&[])?;
    scene.whole(2)?;
    scene.nothing_lost()
}

/// A start that ran out of descriptors took the drives that it could not open for gone.
pub(super) fn too_many_files(scene: &mut Scene) -> Result<(), TortureError> {
    scene.serving(4, "raid = \"raid10\"\nset_size = 4")?;
    scene.host.writes(400)?;
    scene.stop()?;
    for most in (6..=40).step_by(2) {
        let mut command = tools::command("prlimit");
        command.arg(format!("--nofile={most}:{most}")).arg("--");
        let serve = scene.serve_command(&[]);
        command.arg(serve.get_program()).args(serve.get_args());
        let began = wall_s();
        if scene.serve_by(command).is_ok() {
            scene.stop()?;
        }
        let took_s = wall_s() - began;
        ensure(took_s < 20.0, || {
            format!("a start with {most} descriptors neither ends nor serves in {took_s:.0} s")
        })?;
    }
    scene.serve(&[])?;
    scene.whole(4)?;
    scene.nothing_lost()
}

/// A drive that hung at a start hung the start, and SIGTERM was ignored.
pub(super) fn drive_hangs_and_sigterm(scene: &mut Scene) -> Result<(), TortureError> {
    scene.drives(1)?;
    scene.faulty_drive("d1", Manners::default())?;
    scene.create_and_serve("raid = \"raid1\"\nset_size = 2", "")?;
    scene.host.writes(400)?;
    scene.stop()?;
    scene.faulty("d1").hang(true)?;
    let mut command = scene.serve_command(&[]);
    scene.launch(&mut command)?;
    pause(Duration::from_secs(2));
    ensure(scene.runs()?, || format!("the start does not wait: {}", scene.log().trim()))?;
    scene.signal(Signal::TERM);
    let began = wall_s();
    while scene.runs()? && wall_s() - began < 10.0 {
        pause(Duration::from_millis(20));
    }
    let ended = !scene.runs()?;
    scene.faulty("d1").hang(false)?;
    ensure(ended, || "SIGTERM does not end a start that waits for a drive".to_owned())?;
    scene.serve(&[])?;
    scene.whole(2)?;
    scene.nothing_lost()
}

/// Three of twelve immediate restarts after a kill were refused: the kernel had not yet let go of the drives.
pub(super) fn twelve_kills(scene: &mut Scene) -> Result<(), TortureError> {
    scene.serving(4, "raid = \"raid5\"\nset_size = 4")?;
    for _ in 0..12 {
        scene.host.begin(false);
        scene.host.goes_on(100, 30)?;
        scene.kill()?;
        scene.serve(&[])?;
        scene.host.check()?;
    }
    scene.whole(4)
}
