//! Ctrl-C and SIGTERM: the first asks for an orderly end, the second ends at once, unless it comes within [`SAME_WISH`] of
//! the first. Before anything is served there is nothing to end in order, and the first ends at once, too. SIGHUP, which a
//! closing terminal sends, does nothing to a server.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use tier0_units::Nanos;
use tier0_world::World;
use tier0_world::real::{Fd, readable};

use crate::failure::Failure;
use crate::logging;

/// How often a signal is looked for that nothing tells of.
const LOOK: Nanos = Nanos::from_millis(200);

/// What comes so soon after the first signal is the same wish: `timeout` sends SIGTERM to the process and then to its group,
/// and an impatient finger hits Ctrl-C twice. Neither is to cut off what is in flight.
const SAME_WISH: Duration = Duration::from_secs(2);

/// Whether a signal asked for an end; clones share it.
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
        let caught = [SIGINT, SIGTERM, SIGHUP];
        let signals = Signals::of(&caught).map_err(|error| cannot(&error))?;
        listen(heard(&caught)?, move |mut heard| {
            let mut wish = Wish::default();
            if let Some(signal) = heard.forever().find(|_| wish.is_second()) {
                logging::flush();
                std::process::exit(128 + signal);
            }
        })?;
        Ok(signals)
    }

    /// The same for a program that can end at any moment: the first signal has `first` called at once. Where the program has not
    /// ended `limit` after that, or a second signal comes, `last` is called and ends it.
    pub(crate) fn catch_within(
        limit: Duration,
        first: impl FnOnce() + Send + 'static,
        last: impl Fn() + Send + Sync + 'static,
    ) -> Result<Signals, Failure> {
        let caught = [SIGINT, SIGTERM, SIGHUP];
        let signals = Signals::of(&caught).map_err(|error| cannot(&error))?;
        let last = Arc::new(last);
        let end = move |code: i32| {
            last();
            logging::flush();
            std::process::exit(code)
        };
        listen(heard(&caught)?, move |mut heard| {
            let mut wish = Wish::default();
            if heard.forever().next().is_none() {
                return;
            }
            wish.is_second();
            first();
            let ends = end.clone();
            // Without this thread, the second signal still ends it.
            let _ = std::thread::Builder::new().name("tier0-end".into()).spawn(move || {
                #[expect(clippy::disallowed_methods, reason = "the time of people, not the engine's")]
                std::thread::sleep(limit);
                ends(0)
            });
            if let Some(signal) = heard.forever().find(|_| wish.is_second()) {
                end(128 + signal);
            }
        })?;
        Ok(signals)
    }

    /// Catches the signals of a server, which end it at once until it [serves](Signals::serving), and say so.
    pub(crate) fn catch_of_server() -> Result<Signals, Failure> {
        // Whatever the flag says, nothing happens.
        let ignored = signal_hook::flag::register(SIGHUP, Arc::default());
        ignored.map_err(|error| cannot(&error))?;
        let caught = [SIGINT, SIGTERM];
        // Before the flag is there to be raised: a signal that the thread does not hear would not end the start.
        let heard = heard(&caught)?;
        let signals = Signals::of(&caught).map_err(|error| cannot(&error))?;
        signals.at_once.store(true, Ordering::SeqCst);
        let at_once = signals.at_once.clone();
        listen(heard, move |mut heard| {
            let mut wish = Wish::default();
            for signal in heard.forever() {
                let is_serving = !at_once.swap(true, Ordering::SeqCst);
                let (is_first, is_second) = (wish.is_first(), wish.is_second());
                if !is_serving && (is_first || is_second) {
                    let name = if signal == SIGINT { "Ctrl-C" } else { "SIGTERM" };
                    let what = match is_first {
                        true => "during startup; the next start replays the write log",
                        false => "before the shutdown was complete; acknowledged writes are in the write log",
                    };
                    logging::say(&format!("tier0: stopped by {name} {what}"));
                    std::process::exit(128 + signal);
                }
            }
        })?;
        Ok(signals)
    }

    /// From now on the first signal asks for an orderly end.
    pub(crate) fn serving(&self) {
        if !self.raised() {
            self.at_once.store(false, Ordering::SeqCst);
        }
    }

    /// Only notes that they came.
    fn of(signals: &[i32]) -> std::io::Result<Signals> {
        let raised = Arc::new(AtomicBool::new(false));
        let (read, write) = UnixStream::pair()?;
        for &signal in signals {
            signal_hook::flag::register(signal, raised.clone())?;
            signal_hook::low_level::pipe::register(signal, write.try_clone()?)?;
        }
        Ok(Signals { raised, at_once: Arc::default(), pipe: Arc::new(OwnedFd::from(read)) })
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

/// The wish of those who send signals.
#[derive(Default)]
struct Wish {
    /// When it was told first.
    since: Option<Instant>,
}

impl Wish {
    fn is_first(&self) -> bool {
        self.since.is_none()
    }

    /// A signal has come: whether it is a second wish, to end at once.
    #[expect(clippy::disallowed_methods, reason = "the time of people, not the engine's")]
    fn is_second(&mut self) -> bool {
        let now = Instant::now();
        now.duration_since(*self.since.get_or_insert(now)) >= SAME_WISH
    }
}

/// The signals that come from now on.
fn heard(caught: &[i32]) -> Result<signal_hook::iterator::Signals, Failure> {
    signal_hook::iterator::Signals::new(caught).map_err(|error| cannot(&error))
}

/// Has a thread hear the signals.
fn listen(
    heard: signal_hook::iterator::Signals,
    hear: impl FnOnce(signal_hook::iterator::Signals) + Send + 'static,
) -> Result<(), Failure> {
    let thread = std::thread::Builder::new().name("tier0-signals".into());
    thread.spawn(move || hear(heard)).map(drop).map_err(|error| cannot(&error))
}

fn cannot(error: &std::io::Error) -> Failure {
    Failure::Run(format!("cannot catch signals: {error}; check the open file limit (ulimit -n)"))
}
