//! Ctrl-C and SIGTERM: the first asks for an orderly end, the second ends at once. Before anything is served there is
//! nothing to end in order, and the first ends at once, too. SIGHUP, which a closing terminal sends, does nothing to a
//! server.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use tier0_units::Nanos;
use tier0_world::World;
use tier0_world::real::{Fd, readable};

use crate::failure::Failure;

/// How often a signal is looked for that nothing tells of.
const LOOK: Nanos = Nanos::from_millis(200);

/// Whether somebody asked for an end; clones share it.
#[derive(Clone)]
pub(crate) struct Signals {
    raised: Arc<AtomicBool>,
    /// Whether the next one ends the program.
    at_once: Arc<AtomicBool>,
    pipe: Arc<OwnedFd>,
}

impl Signals {
    /// Catches the signals from now on, a closing terminal's too: there is something to be cleared away.
    pub(crate) fn catch() -> Result<Signals, Failure> {
        Signals::register(false, &[SIGINT, SIGTERM, SIGHUP])
    }

    /// The same, and the second one has `last` called before it ends the program.
    pub(crate) fn catch_then(last: impl FnOnce() + Send + 'static) -> Result<Signals, Failure> {
        let caught = [SIGINT, SIGTERM, SIGHUP];
        let signals = Signals::of(&caught, None).map_err(|error| cannot(&error))?;
        let mut heard = signal_hook::iterator::Signals::new(caught).map_err(|error| cannot(&error))?;
        let thread = std::thread::Builder::new().name("tier0-signals".into());
        let listening = thread.spawn(move || {
            if let Some(signal) = heard.forever().nth(1) {
                last();
                std::process::exit(128 + signal);
            }
        });
        listening.map_err(|error| cannot(&error))?;
        Ok(signals)
    }

    /// Catches the signals of a server, which they end at once until it [serves](Signals::serving).
    pub(crate) fn catch_of_server() -> Result<Signals, Failure> {
        // Whatever the flag says, nothing happens.
        let ignored = signal_hook::flag::register(SIGHUP, Arc::default());
        ignored.map_err(|error| cannot(&error))?;
        Signals::register(true, &[SIGINT, SIGTERM])
    }

    /// From now on the first signal asks for an orderly end.
    pub(crate) fn serving(&self) {
        if !self.raised() {
            self.at_once.store(false, Ordering::SeqCst);
        }
    }

    fn register(at_once: bool, signals: &[i32]) -> Result<Signals, Failure> {
        Signals::of(signals, Some(at_once)).map_err(|error| cannot(&error))
    }

    /// `at_once`: whether the next signal ends the program, which the first makes true; none where somebody else sees to
    /// that.
    fn of(signals: &[i32], at_once: Option<bool>) -> std::io::Result<Signals> {
        let ends = at_once.is_some();
        let raised = Arc::new(AtomicBool::new(false));
        let at_once = Arc::new(AtomicBool::new(at_once.unwrap_or(false)));
        let (read, write) = UnixStream::pair()?;
        for &signal in signals {
            let code = 128 + signal;
            if ends {
                // In this order: the first signal finds the flag unset and sets it, the second finds it set.
                signal_hook::flag::register_conditional_shutdown(signal, code, at_once.clone())?;
                signal_hook::flag::register(signal, at_once.clone())?;
            }
            signal_hook::flag::register(signal, raised.clone())?;
            signal_hook::low_level::pipe::register(signal, write.try_clone()?)?;
        }
        Ok(Signals { raised, at_once, pipe: Arc::new(OwnedFd::from(read)) })
    }

    /// Whether a signal has come.
    pub(crate) fn raised(&self) -> bool {
        self.raised.load(Ordering::Relaxed)
    }

    /// Ends once a signal has come; in a real world, and in any number of them.
    pub(crate) async fn wait(&self, world: &World) {
        let Ok(pipe) = self.pipe.try_clone() else {
            return self.look_out(world).await;
        };
        let pipe: Fd = Rc::new(pipe);
        while !self.raised() {
            if readable(world, &pipe).await.is_err() {
                return self.look_out(world).await;
            }
        }
    }

    /// No descriptor is left to be woken by: the signal is looked for from time to time.
    async fn look_out(&self, world: &World) {
        while !self.raised() {
            world.sleep(LOOK).await;
        }
    }
}

fn cannot(error: &std::io::Error) -> Failure {
    Failure::Run(format!("cannot catch signals: {error}; check the limit of open files"))
}
