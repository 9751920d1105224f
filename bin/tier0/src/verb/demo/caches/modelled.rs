//! The array of modelled drives: its file, its directory, and the same without the models.

use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use tier0_array::open::{CreateOptions, create};
use tier0_catalog::Catalog;
use tier0_description::Description;
use tier0_units::ByteCount;

use super::super::files::{MARK, SOCKET_PATH_MAX};
use crate::failure::Failure;

/// The disks, in the catalogue.
pub(super) const DISK: &str = "nl-7k2";
/// How many.
pub(super) const DISKS: usize = 4;
/// What their names begin with.
const DISK_NAME: &str = "disk";
/// The flash drive, in the catalogue.
pub(super) const FLASH: &str = "ssd-sata";
/// Its name in the array.
pub(super) const FLASH_DRIVE: &str = "ssd0";
/// The volume.
pub(super) const VOLUME: &str = "lun0";
/// What is read and written: pages of this size, as InnoDB has them,
pub(super) const PAGE: ByteCount = ByteCount::kib(16);
/// of which there is one in each stretch of this length, as the busy pages of a large database lie. Close together, they
/// would fit into the disks' own buffers. An odd number of stripe units has both mirrors hold as many.
pub(super) const STRETCH: ByteCount = ByteCount::kib(17 * 64);
/// Several times what memory keeps, and so few that flash has most of them within seconds.
pub(super) const PAGES: u64 = 4096;
/// All of them.
pub(super) const DATA: ByteCount = ByteCount(PAGES * PAGE.0);
/// Over which they are spread.
pub(super) const VOLUME_SIZE: ByteCount = ByteCount(PAGES * STRETCH.0);
/// The flash cache, of which the pages fill a part.
pub(super) const FLASH_CACHE: ByteCount = ByteCount::gib(1);
/// What the sparse files may take: the pages twice and once more on flash, two copies of the write log, a chunklet of 64 MiB
/// each, and as much again for metadata.
const ROOM: ByteCount = ByteCount::mib(3 * (DATA.0 >> 20) + 2 * 2 * 64);
/// Less than a file may say, because the data are little, too.
const MEMORY: ByteCount = ByteCount::mib(24);

/// The array file in `directory`.
pub(super) fn file(directory: &Path) -> PathBuf {
    directory.join("array.toml")
}

/// Makes the array in `directory` anew. What an earlier demo left there goes.
///
/// # Errors
/// Something else lies there, an array there is in use, or there is no room.
pub(super) fn make(directory: &Path) -> Result<Description, Failure> {
    check(directory)?;
    if directory.exists() {
        std::fs::remove_dir_all(directory).map_err(|error| uncleared(directory, &error))?;
    }
    let path = file(directory);
    let failed = |error| {
        Failure::Run(format!("cannot write {}: {error}; name another directory with --dir", path.display()))
    };
    std::fs::create_dir_all(directory).map_err(failed)?;
    std::fs::write(&path, text(directory)?).map_err(failed)?;
    let mut description = Description::read(&path).map_err(Failure::input)?;
    description.memory = Some(MEMORY);
    // The file is that of the array as the demo leaves it.
    description.pools[0].flash_cache.bytes = Some(ByteCount(0));
    create(&description, CreateOptions::default())?;
    Ok(description)
}

/// The same drives as the files that they are, to be written as fast as those are.
pub(super) fn without_models(description: &Description) -> Description {
    let mut plain = description.clone();
    plain.drives.iter_mut().for_each(|drive| drive.model = None);
    plain
}

/// Whether the array can be made in `directory`; where it is missing, in the one that it will be made in.
///
/// # Errors
/// What speaks against it, and the remedy.
pub(in super::super) fn check(directory: &Path) -> Result<(), Failure> {
    check_is_ours(directory)?;
    check_control(directory)?;
    check_room(directory)
}

/// The control socket has a path as others have.
fn check_control(directory: &Path) -> Result<(), Failure> {
    let path = file(directory).with_extension("control");
    if path.as_os_str().len() <= SOCKET_PATH_MAX {
        return Ok(());
    }
    Err(Failure::Input(format!(
        "the path {} is too long for a socket ({SOCKET_PATH_MAX} bytes); name a directory of a shorter one with --dir, or leave \
         the caches out with --no-caches",
        path.display()
    )))
}

/// Drives that find no room for what they hold would have the array wait for them.
fn check_room(directory: &Path) -> Result<(), Failure> {
    let is_there = directory.exists();
    let place = if is_there { directory } else { directory.parent().unwrap_or(directory) };
    // Where the file system does not tell, writing will. What an earlier demo left makes room.
    let Ok(found) = rustix::fs::statvfs(place) else { return Ok(()) };
    if is_there && std::fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some()) {
        return Ok(());
    }
    let free = ByteCount(found.f_bavail.saturating_mul(found.f_frsize));
    if free >= ROOM {
        return Ok(());
    }
    Err(Failure::Run(format!(
        "the file system of {} has {free:#} free, and the modelled drives may take {ROOM:#}; free space there, name another \
         directory with --dir, or leave the caches out with --no-caches",
        place.display()
    )))
}

fn check_is_ours(directory: &Path) -> Result<(), Failure> {
    let mut entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(uncleared(directory, &error)),
    };
    let is_ours = std::fs::read_to_string(file(directory)).is_ok_and(|text| text.starts_with(MARK));
    if !is_ours && entries.next().is_some() {
        return Err(Failure::Input(format!(
            "the directory {} holds something else than a demo; move it away, or name another one with --dir",
            directory.display()
        )));
    }
    let is_in_use = File::open(directory.join(format!("{DISK_NAME}0.img")))
        .is_ok_and(|disk| matches!(disk.try_lock(), Err(TryLockError::WouldBlock)));
    if is_in_use {
        return Err(Failure::Input(format!(
            "the array of {} is in use; end its server, or name another directory with --dir",
            file(directory).display()
        )));
    }
    Ok(())
}

fn uncleared(directory: &Path, error: &std::io::Error) -> Failure {
    Failure::Run(format!(
        "cannot clear the directory {}: {error}; name another one with --dir",
        directory.display()
    ))
}

fn text(directory: &Path) -> Result<String, Failure> {
    let path = |name: &str| directory.join(name).to_string_lossy().into_owned();
    let socket = path("nbd.sock");
    let listen =
        if socket.len() <= SOCKET_PATH_MAX { format!("unix:{socket}") } else { "127.0.0.1:0".to_owned() };
    let catalog = Catalog::embedded();
    let capacity =
        |id: &str| catalog.drive(id).map(|drive| drive.capacity().bytes().0).map_err(Failure::input);
    let (disk_bytes, flash_bytes) = (capacity(DISK)?, capacity(FLASH)?);
    let (disk, flash) = (path(&format!("{DISK_NAME}{{n}}.img")), path(&format!("{FLASH_DRIVE}.img")));
    Ok(format!(
        "{MARK} Its drives behave like those of the catalogue that \"model\" names, against the wall\n\
         # clock. The files are sparse. In the demo its memory is {MEMORY}, less than a file may say.\n\
         [array]\nname = \"demo-caches\"\ncores = 1\nmemory = \"64MiB\"\n\n\
         [[drive]]\nname = \"{DISK_NAME}{{n}}\"\ncount = {DISKS}\nmodel = \"{DISK}\"\npath = {disk:?}\n\
         size = \"{disk_bytes}B\"\n\n\
         [[drive]]\nname = \"{FLASH_DRIVE}\"\nmodel = \"{FLASH}\"\npath = {flash:?}\nsize = \"{flash_bytes}B\"\n\n\
         [[pool]]\nname = \"pool0\"\ndrives = [\"{DISK_NAME}*\"]\nraid = \"raid10\"\nset_size = {DISKS}\n\
         stripe_unit = \"64KiB\"\nlog_drives = [\"{DISK_NAME}0\", \"{DISK_NAME}1\"]\nlog = \"64MiB\"\nchunklet = \"64MiB\"\n\
         flash_cache = \"{FLASH_CACHE}\"\nflash_cache_drives = [\"{FLASH_DRIVE}\"]\n\n\
         [[volume]]\nname = \"{VOLUME}\"\nsize = \"{}MiB\"\n\n\
         [nbd]\nlisten = [{listen:?}]\n",
        VOLUME_SIZE.0 >> 20
    ))
}
