//! Halves that could have run alone: consent, splits, the last resort.

use super::super::scene::{Scene, drive_state, ensure, uri};
use crate::TortureError;
use crate::tools;

const MIRROR: &str = "raid = \"raid1\"\nset_size = 2";

/// The half that missed the last writes was served alone, with its old data.
pub(super) fn stale_half_alone(scene: &mut Scene) -> Result<(), TortureError> {
    scene.serving(2, MIRROR)?;
    scene.host.writes(200)?;
    scene.done(&["drive", "fail", "@", "d1", "--yes"])?;
    scene.host.writes(200)?;
    scene.stop()?;
    scene.away("d0")?;
    scene.refused_start(&[], &["d0", "--without"])?;
    scene.back("d0")?;
    scene.serve(&[])?;
    let status = scene.status()?;
    ensure(drive_state(&status["pools"][0], "d0") == "active", || {
        format!("d0 is not active: {}", status["summary"])
    })?;
    scene.nothing_lost()
}

/// A missing half that could have gone on is done without only where the operator says so.
pub(super) fn half_with_consent(scene: &mut Scene) -> Result<(), TortureError> {
    scene.serving(2, MIRROR)?;
    scene.host.writes(200)?;
    scene.stop()?;
    scene.away("d1")?;
    scene.refused_start(&[], &["d1", "--without"])?;
    scene.serve(&["--without", "d1"])?;
    scene.host.check()?;
    scene.host.writes(200)?;
    scene.stop()?;
    // From here on the drives know that d0 went on: no consent is asked for again.
    scene.serve(&[])?;
    scene.nothing_lost()?;
    scene.stop()?;
    scene.back("d1")?;
    scene.serve(&[])?;
    scene.nothing_lost()
}

/// Both halves ran alone; with both present the first silently won.
pub(super) fn split(scene: &mut Scene) -> Result<(), TortureError> {
    scene.serving(2, MIRROR)?;
    scene.host.writes(200)?;
    scene.stop()?;
    scene.away("d0")?;
    scene.serve(&["--without", "d0"])?;
    scene.host.check()?;
    scene.stop()?;
    scene.back("d0")?;
    scene.away("d1")?;
    scene.serve(&["--without", "d1"])?;
    scene.host.writes(200)?;
    scene.stop()?;
    scene.back("d1")?;
    scene.refused_start(&[], &["d0", "d1", "--without"])?;
    scene.serve(&["--without", "d1"])?;
    scene.nothing_lost()
}

/// The half that was given up had been served more often, and came back: its log held records that the next start took for
/// ones that the array had lost. So did one that came back while the array was served, without a question.
pub(super) fn rejoin_after_a_split(scene: &mut Scene) -> Result<(), TortureError> {
    scene.serving(2, MIRROR)?;
    scene.host.writes(100)?;
    scene.stop()?;
    scene.away("d1")?;
    let volume = uri(&scene.at, "lun0");
    let load = ["load", &volume, "--read", "0", "--rate", "40", "--time", "1s", "--overwrite"];
    scene.serve(&["--without", "d1"])?;
    for _ in 0..5 {
        scene.done(&load)?;
        scene.stop()?;
        scene.serve(&[])?;
    }
    scene.stop()?;
    scene.away("d0")?;
    scene.back("d1")?;
    scene.serve(&["--without", "d0"])?;
    scene.host.writes(12)?;
    scene.back("d0")?;
    scene.refused(&["drive", "rejoin", "@", "d0"], 2, &["served elsewhere", "--force"])?;
    scene.stop()?;
    scene.refused_start(&[], &["d0", "d1", "--without"])?;
    scene.serve(&["--without", "d0"])?;
    scene.done(&["drive", "rejoin", "@", "d0"])?;
    scene.whole(2)?;
    scene.host.writes(40)?;
    scene.stop()?;
    scene.serve(&[])?;
    scene.nothing_lost()?;
    scene.stop()?;
    // All of it is on the drive that came back.
    scene.away("d1")?;
    scene.serve(&["--without", "d1"])?;
    scene.nothing_lost()
}

/// The half that alone had the last writes went on in the run, and was not served again before it was taken back: nobody
/// asked.
pub(super) fn rejoin_of_the_newer_half(scene: &mut Scene) -> Result<(), TortureError> {
    scene.serving(2, MIRROR)?;
    scene.host.writes(100)?;
    scene.done(&["drive", "fail", "@", "d1", "--yes"])?;
    scene.host.writes(100)?;
    scene.stop()?;
    scene.away("d0")?;
    scene.serve(&["--without", "d0"])?;
    scene.back("d0")?;
    scene.refused(&["drive", "rejoin", "@", "d0"], 2, &["served elsewhere", "--force"])?;
    scene.stop()?;
    scene.refused_start(&[], &["d0", "d1", "--without"])?;
    scene.serve(&["--without", "d1"])?;
    scene.nothing_lost()
}

/// One half was renewed drive by drive, and a new drive has the name of the other half: by its name both were given up, and
/// a choice was asked for again at each start, because the other half knows no new drive.
pub(super) fn split_of_a_renewed_half(scene: &mut Scene) -> Result<(), TortureError> {
    scene.serving(2, MIRROR)?;
    scene.host.writes(200)?;
    scene.stop()?;
    scene.away("d1")?;
    scene.serve(&["--without", "d1"])?;
    scene.done(&["drive", "remove", "@", "d1", "--yes"])?;
    for (file, name) in [("n0", "n0"), ("n1", "d1")] {
        scene.drive(file)?;
        let path = scene.path(file).display().to_string();
        scene.done(&["drive", "add", "@", "--name", name, "--path", &path])?;
        let is_whole =
            |pool: &serde_json::Value| drive_state(pool, name) == "active" && pool["sets"]["degraded"] == 0;
        scene.pool("the end of the rebuild", 60, is_whole)?;
    }
    scene.done(&["drive", "remove", "@", "d0", "--yes"])?;
    scene.pool("the end of the removal", 60, |pool| drive_state(pool, "d0") == "gone")?;
    scene.host.check()?;
    scene.stop()?;
    for gone in ["d0", "n0", "n1"] {
        scene.away(gone)?;
    }
    scene.back("d1")?;
    scene.serve(&["--without", "d0"])?;
    scene.host.writes(200)?;
    scene.stop()?;
    scene.back("n0")?;
    scene.back("n1")?;
    scene.edit_file("name = \"d0\"", "name = \"n0\"")?;
    scene.edit_file("d0.", "n0.")?;
    let text = std::fs::read_to_string(scene.file()).map_err(TortureError::system("no file"))?;
    let new = scene.path("n1").display().to_string();
    scene.write_file(&format!("{text}\n[[drive]]\nname = \"n1\"\npath = \"{new}\"\n"))?;
    let paths = ["n0", "n1"].map(|name| scene.path(name).display().to_string());
    scene.refused_start(&[], &["groups", &paths[0], &paths[1], "--without"])?;
    scene.refused_start(&["--without", "/nowhere"], &["no drive of this array is there"])?;
    scene.serve(&["--without", &paths[0], "--without", &paths[1]])?;
    scene.nothing_lost()?;
    scene.stop()?;
    scene.serve(&[])?;
    scene.nothing_lost()
}

/// A drive of a copy of the array, which had been served elsewhere, was taken as the array's own: its generations were as
/// many, and what it held was read.
pub(super) fn drive_of_a_copy(scene: &mut Scene) -> Result<(), TortureError> {
    scene.serving(2, MIRROR)?;
    scene.host.writes(200)?;
    scene.stop()?;
    for name in ["d0", "d1"] {
        scene.keep(name, &format!("{name}.before"))?;
    }
    scene.serve(&[])?;
    let volume = uri(&scene.at, "lun0");
    let load = ["load", &volume, "--read", "0", "--queue-depth", "8", "--time", "2s", "--overwrite"];
    scene.done(&load)?;
    scene.stop()?;
    scene.keep("d1", "d1.elsewhere")?;
    for name in ["d0", "d1"] {
        scene.put(name, &format!("{name}.before"))?;
    }
    scene.serve(&[])?;
    scene.host.writes(200)?;
    scene.stop()?;
    scene.keep("d1", "d1.own")?;
    scene.put("d1", "d1.elsewhere")?;
    scene.refused_start(&[], &["d0", "d1", "copy", "--without"])?;
    scene.put("d1", "d1.own")?;
    scene.serve(&[])?;
    scene.nothing_lost()?;
    // Nor while it serves: it joins as any other drive, and all of it is made anew.
    scene.done(&["drive", "fail", "@", "d1", "--yes"])?;
    scene.put("d1", "d1.elsewhere")?;
    scene.refused(&["drive", "rejoin", "@", "d1"], 2, &["served elsewhere", "--force"])?;
    let said = scene.done(&["drive", "rejoin", "@", "d1", "--force", "--yes"])?;
    ensure(said.contains("all that it lacks"), || format!("it is taken as it is: {said}"))?;
    scene.whole(2)?;
    scene.host.writes(200)?;
    scene.done(&["drive", "fail", "@", "d0", "--yes"])?;
    scene.nothing_lost()
}

/// With a witness no consent is asked for where it knows who was left behind, and no server goes on where it cannot be
/// told.
pub(super) fn witness(scene: &mut Scene) -> Result<(), TortureError> {
    let directory = scene.at.join("elsewhere");
    std::fs::create_dir(&directory).map_err(TortureError::system("no directory for the witness"))?;
    let file = directory.join("witness");
    scene.drives(2)?;
    scene.describe(MIRROR, "")?;
    scene.edit_file("[array]\n", &format!("[array]\nwitness = \"{}\"\n", file.display()))?;
    scene.done(&["create", "@"])?;
    scene.serve(&[])?;
    scene.host.writes(200)?;
    scene.stop()?;
    scene.away("d1")?;
    scene.serve(&[])?;
    scene.host.writes(200)?;
    scene.stop()?;
    scene.back("d1")?;
    scene.away("d0")?;
    scene.refused_start(&[], &["d0", "--without", "witness", "continued without \"d1\""])?;
    scene.back("d0")?;
    scene.serve(&[])?;
    scene.nothing_lost()?;
    scene.done(&["drive", "rejoin", "@", "d1"])?;
    scene.whole(2)?;
    let hidden = scene.at.join("hidden");
    std::fs::rename(&directory, &hidden).map_err(TortureError::system("the witness cannot go"))?;
    scene.refused(&["drive", "fail", "@", "d0", "--yes"], 2, &["cannot be told"])?;
    std::fs::rename(&hidden, &directory).map_err(TortureError::system("the witness cannot return"))?;
    scene.done(&["drive", "fail", "@", "d0", "--yes"])?;
    scene.host.writes(200)?;
    scene.stop()?;
    scene.away("d1")?;
    scene.refused_start(&[], &["d1", "--without", "continued without \"d0\""])?;
    scene.back("d1")?;
    scene.away("d0")?;
    scene.serve(&[])?;
    scene.nothing_lost()
}

/// What the level cannot do without is gone: by default nothing is served, and the last resort lists what is lost.
pub(super) fn recover(scene: &mut Scene) -> Result<(), TortureError> {
    scene.serving(3, "raid = \"raid5\"\nset_size = 3")?;
    scene.host.writes(400)?;
    scene.stop()?;
    scene.away("d1")?;
    scene.away("d2")?;
    scene.refused_start(&[], &["d1", "d2"])?;
    let before = tools::run("md5sum", &[&scene.image("d0").display().to_string()])?;
    let said = scene.tier0(&["pool", "recover", "@"])?;
    ensure(format!("{}{}", said.out, said.err).contains("lun0"), || {
        format!("what may be lost is not listed: {}", said.told())
    })?;
    let after = tools::run("md5sum", &[&scene.image("d0").display().to_string()])?;
    ensure(before == after, || "a look at what may be lost has written".to_owned())?;
    scene.back("d1")?;
    scene.back("d2")?;
    scene.serve(&[])?;
    scene.whole(3)?;
    scene.nothing_lost()
}

/// A drive is lost, the others go on, and another one dies: the first is there and stale, and no start believes it.
pub(super) fn recover_stale(scene: &mut Scene) -> Result<(), TortureError> {
    scene.serving(3, "raid = \"raid5\"\nset_size = 3")?;
    scene.host.writes(400)?;
    scene.refused(&["pool", "recover", "@"], 2, &["is running"])?;
    scene.stop()?;
    scene.away("d0")?;
    scene.serve(&[])?;
    scene.host.writes(200)?;
    scene.stop()?;
    scene.back("d0")?;
    scene.away("d1")?;
    scene.refused_start(&[], &["d1", "pool recover"])?;
    let images = [scene.image("d0"), scene.image("d2")].map(|image| image.display().to_string());
    let sums = || tools::run("md5sum", &[&images[0], &images[1]]);
    let before = sums()?;
    let said = scene.done(&["pool", "recover", "@"])?;
    ensure(said.contains("used again") && said.contains("volume lun0") && said.contains("bytes "), || {
        format!("what may be lost is not listed: {said}")
    })?;
    scene.refused(&["pool", "recover", "@", "--accept-loss"], 2, &["--yes"])?;
    ensure(before == sums()?, || "what nobody agreed to has been written".to_owned())?;
    scene.done(&["pool", "recover", "@", "--accept-loss", "--yes"])?;
    scene.serve(&[])?;
    let status = scene.status()?;
    let states = ["d0", "d1", "d2"].map(|drive| drive_state(&status["pools"][0], drive).to_owned());
    ensure(states == ["active", "lost", "active"], || format!("the drives are {states:?}"))?;
    scene.stop()
}
