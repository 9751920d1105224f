//! Files and devices that the system uses.

use super::super::scene::Scene;
use crate::TortureError;
use crate::tools;

const MIRROR: &str = "raid = \"raid1\"\nset_size = 2";
/// Sectors of the partition.
const PARTITION: u64 = 65_536;

/// `drive add --force` took the file under a loop device on which a file system was mounted, and overwrote it.
pub(super) fn mounted_is_not_overwritten(scene: &mut Scene) -> Result<(), TortureError> {
    scene.serving(2, MIRROR)?;
    let image = scene.at.join("mounted.img");
    let made = std::fs::File::create(&image).and_then(|file| file.set_len(64 << 20));
    made.map_err(TortureError::system("a file cannot be made"))?;
    let image = image.display().to_string();
    let device = tools::run("losetup", &["--partscan", "--find", "--show", &image])?.trim().to_owned();
    let told = on_device(scene, &image, &device);
    tools::run("losetup", &["--detach", &device])?;
    told?;
    // No loop device is on it any more.
    scene.done(&["drive", "add", "@", "--name", "n1", "--path", &image, "--force", "--yes"])?;
    scene.whole(3)
}

fn on_device(scene: &Scene, image: &str, device: &str) -> Result<(), TortureError> {
    while_mounted(scene, device, |at| is_refused(scene, image, &[device, at], device))?;
    tools::run("addpart", &[device, "1", "0", &PARTITION.to_string()])?;
    let partition = format!("{device}p1");
    let told = while_mounted(scene, &partition, |at| is_refused(scene, image, &[&partition, at], device));
    tools::run("delpart", &[device, "1"])?;
    told
}

fn while_mounted(
    scene: &Scene,
    device: &str,
    story: impl FnOnce(&str) -> Result<(), TortureError>,
) -> Result<(), TortureError> {
    let at = scene.at.join("mounted here");
    std::fs::create_dir_all(&at).map_err(TortureError::system("a directory cannot be made"))?;
    let at = at.display().to_string();
    tools::run("mkfs.ext4", &["-q", device])?;
    tools::run("mount", &[device, &at])?;
    let told = story(&at);
    tools::run("umount", &[&at])?;
    told
}

/// Neither verb takes the file or the device on it, and both name what uses it.
fn is_refused(scene: &Scene, image: &str, named: &[&str], device: &str) -> Result<(), TortureError> {
    for path in [image, device] {
        let named = [named, &[path, "mounted at"]].concat();
        scene.refused(&["drive", "add", "@", "--name", "n1", "--path", path, "--force"], 2, &named)?;
        let file = scene.at.join("other.toml");
        let text = format!(
            "[array]\nname = \"other\"\n\n[[drive]]\nname = \"n1\"\npath = \"{path}\"\n\n[[pool]]\nname = \"p\"\nraid = \"raid0\"\n"
        );
        std::fs::write(&file, text).map_err(TortureError::system("a file cannot be written"))?;
        let file = file.display().to_string();
        scene.refused(&["create", &file, "--force", "--yes"], 2, &named)?;
        scene.refused(&["create", &file], 2, &named)?;
    }
    Ok(())
}
