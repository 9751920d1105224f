//! `tier0 serve` as a process: started and measured until it answers, killed at any moment.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;

use crate::TortureError;
use crate::clock::{pause, wait_until, wall_s};
use crate::process::Running;
use crate::shape::Site;
use crate::tools;

/// The longest that a start may take before it counts as hanging.
const START_SECONDS_MAX: u32 = 180;

/// The program under test.
#[derive(Clone, Debug)]
pub(crate) struct Program(pub(crate) PathBuf);

impl Program {
    /// The drive without which a start that was refused for what has become of it would go on.
    fn named_without(server: &Server) -> Option<String> {
        let words = server.last_words();
        let (_, drive) = words.rsplit_once("or start without it (--without ")?;
        drive.split([')', ' ']).next().map(str::to_owned)
    }

    fn command(&self, verb: &str, site: &Site) -> Command {
        let mut command = Command::new(&self.0);
        command.arg(verb).arg(site.array_file());
        command
    }

    /// Makes the array.
    pub(crate) fn create(&self, site: &Site) -> Result<(), TortureError> {
        tools::output("tier0 create", self.command("create", site).stdin(std::process::Stdio::null()))?;
        Ok(())
    }

    /// How many reads the flash cache of the running array has answered since its start; none where it has no such cache, or no drive
    /// of it.
    pub(crate) fn reads_from_flash(&self, site: &Site) -> Result<u64, TortureError> {
        if !site.shape.flash_cache {
            return Ok(0);
        }
        // It fails where something is amiss, and tells all the same.
        let output = self.command("status", site).arg("--json").output();
        let output = output.map_err(TortureError::system("tier0 status cannot be started"))?;
        let status: serde_json::Value = serde_json::from_slice(&output.stdout).map_err(|error| {
            let words = String::from_utf8_lossy(&output.stderr);
            TortureError::Failed(format!(
                "tier0 status ended with {}: {error}; {}",
                output.status,
                words.trim()
            ))
        })?;
        match &status["pools"][0]["flash_cache"] {
            // Its drive is lost.
            serde_json::Value::Null => Ok(0),
            cache => cache["hits"].as_u64().ok_or_else(|| {
                TortureError::Failed(
                    "tier0 status does not tell what the flash cache has answered".to_owned(),
                )
            }),
        }
    }

    /// Starts the server and waits until it can be connected to; also how many milliseconds that took. Drives that were
    /// damaged past recognition are done without, as the refused start says.
    pub(crate) fn serve(&self, site: &Site) -> Result<(Server, f64), TortureError> {
        let mut without = Vec::new();
        loop {
            match self.serve_without(site, &without)? {
                Ok(served) => return Ok(served),
                Err(drive) if !without.contains(&drive) => without.push(drive),
                Err(drive) => {
                    return Err(TortureError::Failed(format!("tier0 serve does not go on without {drive}")));
                }
            }
        }
    }

    /// One start; the drive that it asks to be done without, if that is why it is refused.
    fn serve_without(
        &self,
        site: &Site,
        without: &[String],
    ) -> Result<Result<(Server, f64), String>, TortureError> {
        let began = wall_s();
        let mut server = self.launch_without(site, without)?;
        let socket = site.socket();
        let listening = wait_until("tier0 serve listening", START_SECONDS_MAX, || {
            if let Some(status) = server.process.status()? {
                return Err(TortureError::Failed(format!("tier0 serve ended at once: {status}")));
            }
            Ok(UnixStream::connect(&socket).is_ok())
        });
        let took_ms = (wall_s() - began) * 1e3;
        match listening {
            Ok(()) => Ok(Ok((server, took_ms))),
            Err(error) => match Program::named_without(&server) {
                Some(drive) => Ok(Err(drive)),
                None => {
                    Err(TortureError::Failed(format!("{error}; its last words: {}", server.last_words())))
                }
            },
        }
    }

    /// Starts the server and does not wait for anything.
    pub(crate) fn launch(&self, site: &Site) -> Result<Server, TortureError> {
        self.launch_without(site, &[])
    }

    fn launch_without(&self, site: &Site, without: &[String]) -> Result<Server, TortureError> {
        // The socket of the server that was killed would answer "connection refused"; without it there is no doubt
        // about who listens.
        let _ = std::fs::remove_file(site.socket());
        let log = site.directory.join("serve.log");
        let mut command = self.command("serve", site);
        without.iter().for_each(|drive| {
            command.args(["--without", drive]);
        });
        let process = Running::start("tier0 serve", &mut command, &log)?;
        Ok(Server { process, log })
    }
}

/// A running server.
pub(crate) struct Server {
    process: Running,
    log: PathBuf,
}

impl Server {
    /// Kills it.
    pub(crate) fn kill(&mut self) -> Result<(), TortureError> {
        self.process
            .kill()
            .map_err(|error| TortureError::Failed(format!("{error}; its last words: {}", self.last_words())))
    }

    /// Asks it to end, and kills it `after` that unless it is gone by then; whether it was killed.
    pub(crate) fn kill_while_ending(&mut self, after: Duration) -> Result<bool, TortureError> {
        self.process.signal(Signal::TERM);
        pause(after);
        match self.process.status()? {
            Some(status) if !status.success() => {
                Err(TortureError::Failed(format!("tier0 serve ended badly: {status}; {}", self.last_words())))
            }
            Some(_) => Ok(false),
            None => self.process.kill().map(|()| true),
        }
    }

    /// Kills it while it starts; whether it was killed. A start that is refused for a damaged drive may end before.
    pub(crate) fn kill_at_once(mut self) -> Result<bool, TortureError> {
        match self.process.status()? {
            None => self.process.kill().map(|()| true),
            Some(_) if Program::named_without(&self).is_some() => Ok(false),
            Some(status) => Err(TortureError::Failed(format!(
                "tier0 serve ended while it started: {status}; {}",
                self.last_words()
            ))),
        }
    }

    /// Asks it to end and waits until it has, in good order.
    pub(crate) fn stop(self) -> Result<(), TortureError> {
        let Server { process, log } = self;
        process.stop().map_err(|error| TortureError::Failed(format!("{error}; {}", tail(&log))))
    }

    fn last_words(&self) -> String {
        tail(&self.log)
    }
}

/// The last lines of a file.
fn tail(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(3)..].join(" / ")
}
