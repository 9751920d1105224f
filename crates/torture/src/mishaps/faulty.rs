//! A drive that can be made to fail from outside while it is in use: nbdkit with its filters, mounted as a file by
//! nbdfuse.
//!
//! Fault model: while the trigger file exists every command fails with EIO; while it hangs no command ends; when it is
//! pulled, commands that are under way and all later ones fail, and the path is gone; what was written before stays.
//! A bad sector fails when it is read until it is written, as on a drive that remaps it.

use std::path::{Path, PathBuf};

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use rustix::process::Signal;

use crate::TortureError;
use crate::clock::wait_until;
use crate::process::Running;
use crate::tools::{command, run};

/// How long mounting may take, and how long letting go.
const SECONDS_MAX: u32 = 20;

/// What else is wrong with a drive, from its first moment on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Manners {
    /// Every read and write takes so many seconds.
    pub(crate) delay_s: u32,
    /// So many sectors cannot be read from this one on.
    pub(crate) bad_sectors: Option<(u64, u64)>,
}

/// A running faulty drive.
pub(crate) struct Faulty {
    /// What serves it, and what mounts it; nothing while it is pulled.
    processes: Option<(Running, Running)>,
    /// The file that holds its data.
    image: PathBuf,
    /// The file as which it is mounted.
    path: PathBuf,
    manners: Manners,
}

impl Faulty {
    /// Serves the file `image` at `path`.
    pub(crate) fn start(image: &Path, path: &Path, manners: Manners) -> Result<Faulty, TortureError> {
        let mut faulty = Faulty { processes: None, image: image.to_owned(), path: path.to_owned(), manners };
        faulty.put_back()?;
        Ok(faulty)
    }

    /// Every command fails with EIO from now on, or none.
    pub(crate) fn fail(&self, fails: bool) -> Result<(), TortureError> {
        let trigger = self.beside("fails");
        let done = if fails { std::fs::write(&trigger, "") } else { std::fs::remove_file(&trigger) };
        done.map_err(TortureError::system(format!("{} cannot be changed", trigger.display())))
    }

    /// No command ends from now on, or all do again.
    pub(crate) fn hang(&self, hangs: bool) -> Result<(), TortureError> {
        let fail = || TortureError::system(format!("{} cannot be paused", self.path.display()));
        let mut control = UnixStream::connect(self.beside("pause")).map_err(fail())?;
        control.write_all(if hangs { b"p" } else { b"r" }).map_err(fail())?;
        control.read_exact(&mut [0]).map_err(fail())
    }

    /// It is gone, with its path.
    pub(crate) fn pull(&mut self) {
        let Some((server, mut fuse)) = self.processes.take() else { return };
        drop(server);
        // Lazily: a process that has it open keeps what is left of it.
        let _ = run("umount", &["--lazy", &self.path.display().to_string()]);
        fuse.signal(Signal::TERM);
        let _ = fuse.kill();
        let _ = std::fs::remove_file(&self.path);
    }

    /// It is there, with what it held.
    pub(crate) fn put_back(&mut self) -> Result<(), TortureError> {
        let (socket, log) = (self.beside("sock"), self.beside("log"));
        for old in [&socket, &self.beside("pause")] {
            let _ = std::fs::remove_file(old);
        }
        let mut serve = command("nbdkit");
        serve.args(["--foreground", "--unix"]).arg(&socket);
        serve.args(["--filter=pause", "--filter=error"]);
        if self.manners.delay_s > 0 {
            serve.args(["--filter=delay"]);
        }
        if self.manners.bad_sectors.is_some() {
            serve.args(["--filter=cow", "--filter=ddrescue"]);
        }
        serve.arg("file").arg(&self.image);
        serve.arg(format!("pause-control={}", self.beside("pause").display()));
        serve.args(["error=EIO", "error-rate=100%"]);
        serve.arg(format!("error-file={}", self.beside("fails").display()));
        if self.manners.delay_s > 0 {
            serve.args([
                format!("rdelay={}", self.manners.delay_s),
                format!("wdelay={}", self.manners.delay_s),
            ]);
        }
        if let Some((first, count)) = self.manners.bad_sectors {
            serve.arg(format!("ddrescue-mapfile={}", self.map(first, count)?.display()));
        }
        let server = Running::start("nbdkit", &mut serve, &log)?;
        wait_until("nbdkit listening", SECONDS_MAX, || Ok(socket.exists()))?;
        let failed = TortureError::system(format!("{} cannot be made", self.path.display()));
        std::fs::write(&self.path, "").map_err(failed)?;
        let mut mount = command("nbdfuse");
        mount.arg(&self.path).arg(format!("nbd+unix:///?socket={}", socket.display()));
        let fuse = Running::start("nbdfuse", &mut mount, &log)?;
        let path = self.path.clone();
        self.processes = Some((server, fuse));
        wait_until("nbdfuse mounting", SECONDS_MAX, || {
            Ok(std::fs::metadata(&path).is_ok_and(|about| about.len() > 0))
        })
    }

    /// A map of bad sectors as ddrescue writes it.
    fn map(&self, first: u64, count: u64) -> Result<PathBuf, TortureError> {
        let path = self.beside("map");
        let fail = || TortureError::system(format!("{} cannot be made", path.display()));
        let bytes = std::fs::metadata(&self.image).map_err(fail())?.len();
        let (from, to) = (first * 512, (first + count) * 512);
        let text =
            format!("0x0 + 1\n0x0 {from:#x} +\n{from:#x} {:#x} -\n{to:#x} {:#x} +\n", to - from, bytes - to);
        std::fs::write(&path, text).map_err(fail())?;
        Ok(path)
    }

    fn beside(&self, what: &str) -> PathBuf {
        self.image.with_extension(what)
    }
}

impl Drop for Faulty {
    fn drop(&mut self) {
        // A process that waits for a hanging command would keep its descriptors.
        if self.processes.is_some() {
            let _ = self.hang(false);
        }
        self.pull();
    }
}
