//! A volume as a mounted file system: ext4 on a loop device on nbdfuse on the NBD export. nbdfuse has a process group of its own:
//! the Ctrl-C of a terminal ends the caller, which then unmounts in order.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use rustix::process::Signal;

use crate::ProgramError;
use crate::clock::wait_until;
use crate::process::Running;
use crate::tools::{command, run};

/// The programs that this takes, with the packages that bring them.
pub const TOOLS: [(&str, &str); 5] = [
    ("nbdfuse", "libnbd-bin"),
    ("losetup", "mount"),
    ("mkfs.ext4", "e2fsprogs"),
    ("mount", "mount"),
    ("umount", "mount"),
];

/// The longest that mounting and unmounting may take.
const SECONDS_MAX: u32 = 120;

/// A mounted volume. Dropping it unmounts it, whatever state it is in.
pub struct Mounted {
    fuse: Running,
    fuse_directory: PathBuf,
    device: Option<String>,
    point: PathBuf,
}

impl Mounted {
    /// Mounts the NBD export `uri` below `directory`; with `fresh` it gets a new file system first.
    pub fn new(directory: &Path, uri: &str, fresh: bool) -> Result<Mounted, ProgramError> {
        Mounted::with_loop(directory, uri, fresh, "--direct-io=off")
    }

    /// The same past the page cache of the file that nbdfuse shows: only the file system's own pages stay in memory.
    pub fn past_the_page_cache(directory: &Path, uri: &str, fresh: bool) -> Result<Mounted, ProgramError> {
        Mounted::with_loop(directory, uri, fresh, "--direct-io=on")
    }

    fn with_loop(directory: &Path, uri: &str, fresh: bool, direct_io: &str) -> Result<Mounted, ProgramError> {
        let (fuse_directory, point) = (directory.join("fuse"), directory.join("mnt"));
        for directory in [&fuse_directory, &point] {
            std::fs::create_dir_all(directory)
                .map_err(ProgramError::system(format!("{} cannot be made", directory.display())))?;
        }
        let file = fuse_directory.join("volume");
        let log = directory.join("nbdfuse.log");
        let fuse = Running::start("nbdfuse", command("nbdfuse").process_group(0).arg(&file).arg(uri), &log)?;
        // From here on a failure unmounts what has been mounted.
        let mut mounted = Mounted { fuse, fuse_directory, device: None, point };
        wait_until("nbdfuse mounting", SECONDS_MAX, || match mounted.fuse.status()? {
            Some(status) => Err(ProgramError::Failed(format!("nbdfuse ended: {status}"))),
            None => Ok(file.is_file()),
        })?;
        let device =
            run("losetup", &["--find", "--show", direct_io, &file.display().to_string()])?.trim().to_owned();
        mounted.device = Some(device.clone());
        if fresh {
            run("mkfs.ext4", &["-q", &device])?;
        }
        run("mount", &[&device, &mounted.point.display().to_string()])?;
        Ok(mounted)
    }

    /// Where it is mounted.
    pub fn point(&self) -> &PathBuf {
        &self.point
    }

    /// Unmounts it in good order; everything written is on the volume afterwards.
    pub fn unmount(self) -> Result<(), ProgramError> {
        run("umount", &[&self.point.display().to_string()])?;
        self.abandon()
    }

    /// Lets go of a volume whose server is dead: nothing that is still in the kernel's caches can be written any more.
    pub fn abandon(mut self) -> Result<(), ProgramError> {
        self.let_go();
        let Some(device) = self.device.take() else { return Ok(()) };
        let name = device.trim_start_matches("/dev/").to_owned();
        let backing = PathBuf::from(format!("/sys/block/{name}/loop/backing_file"));
        wait_until(&format!("{device} being free"), SECONDS_MAX, || Ok(!backing.exists()))
    }

    /// Each of these may have been done already, and then fails.
    fn let_go(&mut self) {
        let _ = run("umount", &["--lazy", &self.point.display().to_string()]);
        if let Some(device) = &self.device {
            let _ = run("losetup", &["--detach", device]);
        }
        let _ = run("umount", &["--lazy", &self.fuse_directory.display().to_string()]);
        self.fuse.signal(Signal::TERM);
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if self.device.is_some() {
            self.let_go();
        }
    }
}
