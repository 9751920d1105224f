//! A process of ours: started, killed, waited for. Dropping it kills it.

use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::ProgramError;
use crate::clock::wait_until;

/// The longest that anything here takes to end.
const END_SECONDS_MAX: u32 = 60;

/// A running process.
pub struct Running {
    name: &'static str,
    child: Child,
}

impl Running {
    /// Starts `command`; what it prints is appended to the file `log`.
    pub fn start(name: &'static str, command: &mut Command, log: &Path) -> Result<Running, ProgramError> {
        let file = std::fs::File::options().create(true).append(true).open(log);
        let file = file.map_err(ProgramError::system(format!("{} cannot be opened", log.display())))?;
        let twin = file.try_clone().map_err(ProgramError::system("no descriptor is left"))?;
        command.stdin(Stdio::null()).stdout(twin).stderr(file);
        let child = command.spawn().map_err(ProgramError::system(format!("{name} cannot be started")))?;
        Ok(Running { name, child })
    }

    /// Its identity.
    pub fn id(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Sends a signal; one that has ended by itself is told by [`Running::status`].
    pub fn signal(&self, signal: Signal) {
        let _ = kill_process(self.id(), signal);
    }

    /// How it ended, if it has.
    pub fn status(&mut self) -> Result<Option<ExitStatus>, ProgramError> {
        self.child.try_wait().map_err(ProgramError::system(format!("{} cannot be waited for", self.name)))
    }

    /// Kills it at once and waits until it is gone. Fails if it had ended by itself: then there was nothing to kill.
    pub fn kill(&mut self) -> Result<(), ProgramError> {
        if let Some(status) = self.status()? {
            return Err(ProgramError::Failed(format!("{} ended by itself: {status}", self.name)));
        }
        self.signal(Signal::KILL);
        self.child.wait().map_err(ProgramError::system(format!("{} cannot be waited for", self.name)))?;
        Ok(())
    }

    /// Asks it to end and waits until it has, in good order.
    pub fn stop(mut self) -> Result<(), ProgramError> {
        self.signal(Signal::TERM);
        match self.ends()? {
            status if status.success() => Ok(()),
            status => Err(ProgramError::Failed(format!("{} ended with {status}", self.name))),
        }
    }

    /// Waits until it has ended by itself.
    pub fn ends(&mut self) -> Result<ExitStatus, ProgramError> {
        let mut ended = None;
        wait_until(&format!("the end of {}", self.name), END_SECONDS_MAX, || {
            ended = self.status()?;
            Ok(ended.is_some())
        })?;
        Ok(ended.expect("waited until it was so"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself; both calls then fail, and nothing is left to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
