//! The array's file, the places of drives, and hosts that change.

use std::fs::File;

use serde_json::Value;

use super::super::scene::{Scene, drive_state, ensure, uri};
use crate::TortureError;
use crate::client::first_sectors;
use crate::tools;

const MIRROR: &str = "raid = \"raid1\"\nset_size = 2";

/// An array of the program at commit e2bacaf: RAID 5 over three drives of 64 MiB, 16 MiB `lun0` of which the first
/// 4 MiB hold what `yes tier0` prints. A sparse tar, packed with gzip.
const OLD_ARRAY: &[u8] = include_bytes!("array-e2bacaf.tar.gz");
/// Sectors of it that are known.
const OLD_SECTORS: u32 = 8192;

/// A busy file in a shared search directory stopped an unrelated array.
pub(super) fn busy_file_in_search(scene: &mut Scene) -> Result<(), TortureError> {
    let shared = scene.at.join("shared");
    std::fs::create_dir(&shared).map_err(TortureError::system("no directory can be made"))?;
    scene.serving(2, MIRROR)?;
    scene.host.writes(100)?;
    scene.stop()?;
    scene.edit_file("cores = 2", &format!("cores = 2\nsearch = [{:?}]", shared.display().to_string()))?;
    let busy = File::create(shared.join("busy.img")).and_then(|file| file.set_len(8 << 20).map(|()| file));
    let busy = busy.map_err(TortureError::system("no file can be made"))?;
    rustix::fs::flock(&busy, rustix::fs::FlockOperation::NonBlockingLockExclusive)
        .map_err(TortureError::system("a file cannot be locked"))?;
    scene.serve(&[])?;
    scene.whole(2)?;
    scene.nothing_lost()
}

/// A drive that another process had open for a moment refused the start with the wrong code; without its line in the
/// array file it counted as missing, and was lost.
pub(super) fn busy_drive_is_not_gone(scene: &mut Scene) -> Result<(), TortureError> {
    scene.serving(3, MIRROR)?;
    scene.host.writes(100)?;
    scene.stop()?;
    let busy = File::open(scene.path("d2")).map_err(TortureError::system("a drive cannot be opened"))?;
    // The kernel may still be winding up what the server had.
    rustix::fs::flock(&busy, rustix::fs::FlockOperation::LockExclusive)
        .map_err(TortureError::system("a drive cannot be locked"))?;
    scene.refused_start(&[], &["d2", "in use by another process", "--without d2"])?;
    let path = scene.path("d2").display().to_string();
    scene.edit_file(&format!("[[drive]]\nname = \"d2\"\npath = \"{path}\"\n"), "")?;
    scene.refused_start(&[], &["d2", "in use by another process", "--without d2"])?;
    drop(busy);
    scene.serve(&[])?;
    scene.whole(3)?;
    scene.nothing_lost()
}

/// A drive that had moved into a directory to search, and that another process had open for a moment, counted as
/// missing and was lost.
pub(super) fn busy_drive_in_search(scene: &mut Scene) -> Result<(), TortureError> {
    scene.serving(3, MIRROR)?;
    scene.host.writes(100)?;
    scene.stop()?;
    let there = scene.at.join("there");
    std::fs::create_dir(&there).map_err(TortureError::system("no directory can be made"))?;
    scene.away("d2")?;
    let moved = there.join("other-name");
    std::fs::rename(scene.image("d2").with_extension("away"), &moved)
        .map_err(TortureError::system("a drive cannot move"))?;
    scene.edit_file("cores = 2", &format!("cores = 2\nsearch = [{:?}]", there.display().to_string()))?;
    let busy = File::open(&moved).map_err(TortureError::system("a drive cannot be opened"))?;
    rustix::fs::flock(&busy, rustix::fs::FlockOperation::LockExclusive)
        .map_err(TortureError::system("a drive cannot be locked"))?;
    scene.refused_start(&[], &["d2", "other-name", "in use by another process", "--without d2"])?;
    drop(busy);
    scene.serve(&[])?;
    scene.whole(3)?;
    scene.nothing_lost()
}

/// What lay in a directory to search and was of no array was locked for as long as the server ran.
pub(super) fn search_holds_its_own_alone(scene: &mut Scene) -> Result<(), TortureError> {
    let shared = scene.at.join("shared");
    std::fs::create_dir(&shared).map_err(TortureError::system("no directory can be made"))?;
    let other = shared.join("other");
    std::fs::write(&other, [7; 1 << 20]).map_err(TortureError::system("no file can be made"))?;
    scene.drives(2)?;
    scene.describe(MIRROR, "")?;
    scene.edit_file("cores = 2", &format!("cores = 2\nsearch = [{:?}]", shared.display().to_string()))?;
    scene.done(&["create", "@"])?;
    scene.serve(&[])?;
    let other = File::open(&other).map_err(TortureError::system("a file cannot be opened"))?;
    rustix::fs::flock(&other, rustix::fs::FlockOperation::NonBlockingLockExclusive)
        .map_err(TortureError::system("the server holds what is not its own"))?;
    ensure(!scene.log().contains("shared"), || format!("what is not tier0's is told: {}", scene.log()))
}

/// A copy of an array whose original lacked the drive that was copied opened the original's others by the paths that it
/// remembered, and overwrote them.
pub(super) fn copy_of_a_drive_that_is_gone(scene: &mut Scene) -> Result<(), TortureError> {
    scene.serving(2, MIRROR)?;
    scene.host.writes(100)?;
    scene.stop()?;
    let copy = scene.at.join("copy.img");
    std::fs::copy(scene.image("d0"), &copy).map_err(TortureError::system("a drive cannot be copied"))?;
    scene.away("d0")?;
    let (there, here) = (scene.path("d0").display().to_string(), copy.display().to_string());
    let other = scene.path("d1").display().to_string();
    scene.edit_file(&format!("\"{there}\""), &format!("\"{here}\""))?;
    scene.edit_file(&format!("\"{other}\""), &format!("\"{other}.nowhere\""))?;
    scene.refused_start(&[], &["d1", &other, "may be copies", "--without d1"])
}

/// A drive that was overwritten, or cut short, and that the array file names was silently done without for good.
pub(super) fn unrecognised_drive_is_not_gone(scene: &mut Scene) -> Result<(), TortureError> {
    scene.serving(3, MIRROR)?;
    scene.host.writes(100)?;
    scene.stop()?;
    let image = scene.path("d2");
    let whole = std::fs::read(&image).map_err(TortureError::system("a drive cannot be read"))?;
    let overwrite = |bytes: &[u8]| {
        use std::os::unix::fs::FileExt;
        let file = File::options().write(true).open(&image);
        file.and_then(|file| file.write_all_at(bytes, 0).and_then(|()| file.sync_all()))
            .map_err(TortureError::system("a drive cannot be overwritten"))
    };
    overwrite(&vec![b'x'; 32 << 20])?;
    scene.refused_start(&[], &["d2", "overwritten", "--without d2"])?;
    overwrite(&whole)?;
    if image == scene.image("d2") {
        let cut = |bytes| File::options().write(true).open(&image).and_then(|file| file.set_len(bytes));
        for bytes in [0, 48 << 20] {
            cut(bytes).map_err(TortureError::system("a drive cannot be cut"))?;
            scene.refused_start(&[], &["d2", "has shrunk", "--without d2"])?;
        }
        overwrite(&whole)?;
    }
    scene.serve(&[])?;
    scene.whole(3)?;
    scene.nothing_lost()
}

/// One file through a link was taken as two drives.
pub(super) fn one_file_twice(scene: &mut Scene) -> Result<(), TortureError> {
    scene.drives(1)?;
    std::os::unix::fs::symlink(scene.path("d0"), scene.image("d1"))
        .map_err(TortureError::system("no link can be made"))?;
    twice(scene, &scene.image("d1"))
}

/// One file through a loop device was taken as two drives.
pub(super) fn one_device_twice(scene: &mut Scene) -> Result<(), TortureError> {
    scene.drives(1)?;
    let image = scene.image("d0").display().to_string();
    let device = tools::run("losetup", &["--find", "--show", &image])?.trim().to_owned();
    let told = twice(scene, device.as_ref());
    tools::run("losetup", &["--detach", &device])?;
    told
}

/// A server that had the drives' files and one that had loop devices on them did not see each other, and both wrote.
pub(super) fn two_servers_by_two_names(scene: &mut Scene) -> Result<(), TortureError> {
    scene.serving(2, MIRROR)?;
    scene.host.writes(100)?;
    let images = ["d0", "d1"].map(|name| scene.image(name).display().to_string());
    let attach = |image: &String| Ok(tools::run("losetup", &["--find", "--show", image])?.trim().to_owned());
    let devices = images.iter().map(attach).collect::<Result<Vec<String>, TortureError>>()?;
    let told = by_two_names(scene, &images, &devices);
    for device in &devices {
        tools::run("losetup", &["--detach", device])?;
    }
    told
}

/// A loop device on a file that no path leads to, as one that was made by a link that is gone or in another mount namespace,
/// was only warned of: a server on it and one on the file both started.
pub(super) fn two_servers_by_a_lost_name(scene: &mut Scene) -> Result<(), TortureError> {
    scene.serving(2, MIRROR)?;
    scene.host.writes(100)?;
    let images = ["d0", "d1"].map(|name| scene.image(name).display().to_string());
    let attach = |image: &String| {
        let link = format!("{image}.link");
        std::fs::hard_link(image, &link).map_err(TortureError::system("no link can be made"))?;
        let device = tools::run("losetup", &["--find", "--show", &link])?.trim().to_owned();
        std::fs::remove_file(&link).map_err(TortureError::system("the link cannot be removed"))?;
        Ok(device)
    };
    let devices = images.iter().map(attach).collect::<Result<Vec<String>, TortureError>>()?;
    let other = second_file(scene, &devices)?;
    let told = scene
        .refused(&["serve", &other], 2, &["in use by another process", "d0.img", "backing file"])
        .and_then(|_| scene.whole(2));
    for device in &devices {
        tools::run("losetup", &["--detach", device])?;
    }
    told?;
    scene.nothing_lost()
}

fn by_two_names(scene: &mut Scene, images: &[String], devices: &[String]) -> Result<(), TortureError> {
    let other = second_file(scene, devices)?;
    scene.refused(&["serve", &other], 2, &["in use by another process", "array.toml"])?;
    if scene.path("d0") != scene.image("d0") {
        let other = second_file(scene, images)?;
        scene.refused(&["serve", &other], 2, &["in use by another process", "array.toml"])?;
    }
    scene.whole(2)?;
    scene.nothing_lost()
}

/// The array's file for a second server that has its two drives by other paths.
fn second_file(scene: &Scene, paths: &[String]) -> Result<String, TortureError> {
    let own = std::fs::read_to_string(scene.file())
        .map_err(TortureError::system("the array's file cannot be read"))?;
    let mut text = own.replace("/nbd.sock", "/second.sock");
    for (name, path) in ["d0", "d1"].iter().zip(paths) {
        text = text.replace(&format!("\"{}\"", scene.path(name).display()), &format!("{path:?}"));
    }
    let file = scene.at.join("second.toml");
    std::fs::write(&file, text).map_err(TortureError::system("a second file cannot be written"))?;
    Ok(file.display().to_string())
}

fn twice(scene: &Scene, other: &std::path::Path) -> Result<(), TortureError> {
    scene.describe(MIRROR, "")?;
    let second = format!("[[drive]]\nname = \"d1\"\npath = \"{}\"\n\n[[pool]]", other.display());
    scene.edit_file("[[pool]]", &second)?;
    let said = scene.tier0(&["create", "@"])?;
    let named = said.err.contains("d0") && said.err.contains("d1");
    ensure(said.code == Some(2) && named, || format!("create does not refuse: {}", said.told()))
}

/// A link in a drive's place made that drive missing, or busy, at a start, and no message told the cause.
pub(super) fn link_in_a_drives_place(scene: &mut Scene) -> Result<(), TortureError> {
    scene.serving(3, "raid = \"raid5\"\nset_size = 3")?;
    scene.host.writes(100)?;
    scene.stop()?;
    let link = scene.image("d1");
    if scene.path("d1") != link {
        // No link is put into a loop device's place.
        return Ok(());
    }
    scene.away("d1")?;
    std::os::unix::fs::symlink(scene.path("d0"), &link)
        .map_err(TortureError::system("no link can be made"))?;
    scene.refused_start(&[], &["\"d0\"", "\"d1\"", "the same file or device", "name two"])?;
    std::fs::remove_file(&link).map_err(TortureError::system("the link cannot be removed"))?;
    scene.back("d1")?;
    scene.serve(&[])?;
    scene.whole(3)?;
    scene.nothing_lost()
}

/// Drive files were deleted under a server, and nothing told before its end, with which they were gone. What is told to be
/// done makes the array whole.
pub(super) fn deleted_under_the_server(scene: &mut Scene) -> Result<(), TortureError> {
    scene.serving(4, "raid = \"raid5\"\nset_size = 4")?;
    scene.host.writes(300)?;
    for drive in ["d2", "d3"] {
        std::fs::remove_file(scene.image(drive)).map_err(TortureError::system("a file cannot be deleted"))?;
    }
    if ["d2", "d3"].iter().any(|drive| scene.path(drive) != scene.image(drive)) {
        // A loop device keeps its file.
        return scene.whole(4);
    }
    let told = |pool: &Value, drive: &str| {
        pool["problems"].as_array().is_some_and(|problems| {
            let is_it = |text: &str| text.contains(drive) && text.contains("was deleted");
            problems.iter().filter_map(Value::as_str).any(is_it)
        })
    };
    let status = scene.pool("the deleted files", 20, |pool| told(pool, "d2") && told(pool, "d3"))?;
    ensure(status["health"] == "degraded", || format!("the health is {}", status["health"]))?;
    let code = scene.tier0(&["status", "@"])?.code;
    ensure(code == Some(5), || format!("status ends with {code:?}"))?;
    for drive in ["drive d2", "drive d3"] {
        scene.event(drive, "was deleted", 20)?;
    }
    scene.refused(&["check", "@"], 2, &["\"d2\", \"d3\"", "drive replace"])?;
    for (drive, new) in [("d2", "n2"), ("d3", "n3")] {
        scene.drive(new)?;
        let path = scene.path(new).display().to_string();
        scene.done(&["drive", "replace", "@", drive, "--name", new, "--path", &path])?;
        scene.pool("the end of the replacement", 60, |pool| {
            drive_state(pool, drive) == "gone"
                && drive_state(pool, new) == "active"
                && pool["rebuild"].is_null()
        })?;
    }
    scene.host.writes(100)?;
    scene.whole(4)?;
    scene.nothing_lost()
}

/// A log on one drive was taken for redundant.
pub(super) fn one_log_drive(scene: &mut Scene) -> Result<(), TortureError> {
    scene.drives(3)?;
    scene.describe(&format!("{MIRROR}\nlog_drives = [\"d2\"]"), "")?;
    let said = scene.tier0(&["create", "@"])?;
    if said.code == Some(2) {
        return ensure(said.err.contains("log_drives"), || format!("why is not told: {}", said.told()));
    }
    scene.serve(&[])?;
    let status = scene.status()?;
    ensure(status["health"] != "healthy", || "an array with one copy of its log is called healthy".to_owned())
}

/// `checksums = false` did nothing.
pub(super) fn without_checksums(scene: &mut Scene) -> Result<(), TortureError> {
    scene.drives(2)?;
    scene.describe(&format!("{MIRROR}\nchecksums = false"), "")?;
    let said = scene.tier0(&["create", "@"])?;
    if said.code == Some(2) {
        return ensure(said.err.contains("checksums"), || format!("why is not told: {}", said.told()));
    }
    scene.serve(&[])?;
    scene.host.writes(200)?;
    let status = scene.status()?;
    ensure(status["pools"][0]["integrity"]["checksums"] == false, || {
        "pages carry checksums although the file says no".to_owned()
    })?;
    scene.nothing_lost()
}

/// The drives move to another machine, where they have other paths and names.
pub(super) fn host_moved(scene: &mut Scene) -> Result<(), TortureError> {
    scene.serving(4, "raid = \"raid5\"\nset_size = 4")?;
    scene.host.writes(300)?;
    scene.stop()?;
    let there = scene.at.join("there");
    std::fs::create_dir(&there).map_err(TortureError::system("no directory can be made"))?;
    for (drive, place) in [("d0", "sdx"), ("d1", "sdb"), ("d2", "sda"), ("d3", "sdq")] {
        scene.away(drive)?;
        let away = scene.image(drive).with_extension("away");
        std::fs::rename(away, there.join(place)).map_err(TortureError::system("a drive cannot move"))?;
    }
    scene.edit_file("cores = 2", &format!("cores = 2\nsearch = [{:?}]", there.display().to_string()))?;
    scene.serve(&[])?;
    scene.whole(4)?;
    scene.nothing_lost()
}

/// A machine has other cores: the write log, full at a kill, is destaged and cut anew. Where it is too small for so many
/// parts, the array runs as before and says so.
pub(super) fn other_cores(scene: &mut Scene) -> Result<(), TortureError> {
    scene.serving(4, "raid = \"raid5\"\nset_size = 4")?;
    let mut cores = 2;
    for next in [1, 4, 128, 2] {
        scene.host.writes(300)?;
        scene.kill()?;
        scene.edit_file(&format!("cores = {cores}"), &format!("cores = {next}"))?;
        cores = next;
        scene.serve(&[])?;
        let wanted = if next == 128 { 4 } else { next };
        let config = scene.done(&["config", "@"])?;
        ensure(config.contains(&format!("cores = {wanted}")), || {
            format!("the array does not run on {wanted} shards: {config}")
        })?;
        scene.whole(4)?;
        scene.nothing_lost()?;
    }
    Ok(())
}

/// An array of an older program is upgraded where it lies.
pub(super) fn upgrade(scene: &mut Scene) -> Result<(), TortureError> {
    let tar = scene.at.join("old.tar.gz");
    std::fs::write(&tar, OLD_ARRAY).map_err(TortureError::system("the old array cannot be unpacked"))?;
    let (tar, at) = (tar.display().to_string(), scene.at.display().to_string());
    tools::run("tar", &["--extract", "--sparse", "--gzip", "--file", &tar, "--directory", &at])?;
    let mut text = String::from("[array]\nname = \"old\"\ncores = 2\n\n");
    for drive in ["d0", "d1", "d2"] {
        text += &format!("[[drive]]\nname = \"{drive}\"\npath = \"{at}/{drive}.img\"\n\n");
    }
    text += &format!(
        "[[pool]]\nname = \"pool0\"\nraid = \"raid5\"\nset_size = 3\n\n[[volume]]\nname = \"lun0\"\n\
         size = \"16MiB\"\n\n[nbd]\nlisten = [\"unix:{at}/nbd.sock\"]\n"
    );
    scene.write_file(&text)?;
    // Twice: what the first start has written is read by the second.
    for _ in 0..2 {
        scene.serve(&[])?;
        scene.whole(3)?;
        let found = first_sectors(&uri(&scene.at, "lun0"), OLD_SECTORS)?;
        let wanted = b"tier0\n".iter().copied().cycle();
        ensure(found.iter().copied().eq(wanted.take(found.len())), || {
            "the upgraded array holds something else".to_owned()
        })?;
        scene.kill()?;
    }
    Ok(())
}
