//! Ctrl-C and SIGTERM: the first asks for an orderly end, the second ends at once.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use tier0_world::World;
use tier0_world::real::{Fd, readable};

use crate::failure::Failure;

/// Whether somebody asked for an end; clones share it.
#[derive(Clone)]
pub(crate) struct Signals {
    raised: Arc<AtomicBool>,
    pipe: Arc<OwnedFd>,
}

impl Signals {
    /// Catches the signals from now on.
    pub(crate) fn catch() -> Result<Signals, Failure> {
        Signals::register().map_err(|error| {
            Failure::Run(format!("cannot catch signals: {error}; check the limit of open files"))
        })
    }

    fn register() -> std::io::Result<Signals> {
        let raised = Arc::new(AtomicBool::new(false));
        let (read, write) = UnixStream::pair()?;
        for signal in [SIGINT, SIGTERM] {
            let code = 128 + signal;
            // In this order: the first signal finds the flag unset and sets it, the second finds it set.
            signal_hook::flag::register_conditional_shutdown(signal, code, raised.clone())?;
            signal_hook::flag::register(signal, raised.clone())?;
            signal_hook::low_level::pipe::register(signal, write.try_clone()?)?;
        }
        Ok(Signals { raised, pipe: Arc::new(OwnedFd::from(read)) })
    }

    /// Whether a signal has come.
    pub(crate) fn raised(&self) -> bool {
        self.raised.load(Ordering::Relaxed)
    }

    /// Ends once a signal has come; in a real world, and in any number of them.
    pub(crate) async fn wait(&self, world: &World) {
        let Ok(pipe) = self.pipe.try_clone() else {
            // No descriptor is left: only the second signal, which ends all at once, is heard.
            return std::future::pending().await;
        };
        let pipe: Fd = Rc::new(pipe);
        while !self.raised() {
            if readable(world, &pipe).await.is_err() {
                return std::future::pending().await;
            }
        }
    }
}
