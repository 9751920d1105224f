//! Log lines on stderr: warnings unless `-v` or `-q` ask for more or less, or `TIER0_LOG` says exactly what.
//!
//! A thread writes them: a pipe that nobody reads, or a terminal that Ctrl-S has stopped, must not hold up who has something to
//! say. Lines that find no room are left out, and counted.

use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::cli::Global;

/// The variable that overrides `-v` and `-q`, with the directives of `tracing`'s filters.
const VARIABLE: &str = "TIER0_LOG";
/// Lines that wait for stderr.
const WAITING_MAX: usize = 1000;
/// How long the end of the program waits for stderr to take what is still to be said.
const END: Duration = Duration::from_secs(1);
/// How often room for it is looked for.
const PAUSE: Duration = Duration::from_millis(5);

/// What is logged where nothing asks for more or less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Default {
    /// Warnings.
    Warnings,
    /// Warnings of the program itself. A verb that serves an array of its own says in its result what happened to it.
    OfProgram,
}

/// Starts logging; a filter in the environment that cannot be read is left aside.
pub(crate) fn start(global: &Global, default: Default) {
    let level = match i16::from(global.verbose) - i16::from(global.quiet) {
        ..=-2 => "off",
        -1 => "error",
        0 if default == Default::OfProgram => "off,tier0=warn",
        0 => "warn",
        1 => "info",
        2 => "debug",
        3.. => "trace",
    };
    let filter = EnvFilter::try_from_env(VARIABLE).unwrap_or_else(|_| EnvFilter::new(level));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(Log)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false)
        .log_internal_errors(false)
        .init();
    tell_panics();
}

/// Says something on stderr behind all lines of the log; waits no longer than [`END`] for it to be taken. Where stderr is closed,
/// the user cannot be told.
pub(crate) fn say(text: &str) {
    put(format!("{text}\n").into_bytes());
}

/// Waits for what was logged, if anything was, no longer than [`END`].
pub(crate) fn flush() {
    if LINES.get().is_some() {
        put(Vec::new());
    }
}

/// Has a text written behind all lines of the log; whether it was, within [`END`].
fn put(text: Vec<u8>) -> bool {
    let Some(lines) = lines() else { return io::stderr().write_all(&text).is_ok() };
    let (told, said) = sync_channel(1);
    let mut line = Line { text, told: Some(told) };
    #[expect(clippy::disallowed_methods, reason = "the time of people, not the engine's")]
    let end = Instant::now() + END;
    // Whoever reads may be slow.
    while let Err(TrySendError::Full(again)) = lines.to.try_send(line) {
        #[expect(clippy::disallowed_methods, reason = "the time of people, not the engine's")]
        if Instant::now() >= end {
            return false;
        }
        line = again;
        #[expect(clippy::disallowed_methods, reason = "the time of people, not the engine's")]
        std::thread::sleep(PAUSE);
    }
    said.recv_timeout(END).is_ok()
}

/// A panic is told behind the log, and only where stderr takes it: the program must end.
fn tell_panics() {
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if put(Vec::new()) {
            tell(panic);
        }
    }));
}

/// To the thread that writes.
struct Lines {
    to: SyncSender<Line>,
    /// Lines that found no room since the last one that did.
    left_out: AtomicU64,
}

/// What is to be written.
struct Line {
    text: Vec<u8>,
    /// Who waits for it.
    told: Option<SyncSender<()>>,
}

/// None where no thread can be started.
static LINES: OnceLock<Option<Lines>> = OnceLock::new();

fn lines() -> Option<&'static Lines> {
    let started = LINES.get_or_init(|| {
        let (to, lines) = sync_channel(WAITING_MAX);
        let thread = std::thread::Builder::new().name("tier0-log".to_owned());
        thread.spawn(move || write(&lines)).ok()?;
        Some(Lines { to, left_out: AtomicU64::new(0) })
    });
    started.as_ref()
}

fn write(lines: &Receiver<Line>) {
    let mut stderr = io::stderr();
    for Line { text, told } in lines {
        let left_out =
            LINES.get().and_then(Option::as_ref).map_or(0, |lines| lines.left_out.swap(0, Ordering::Relaxed));
        if left_out > 0 {
            let _ = writeln!(stderr, "tier0: stderr was blocked; {left_out} log lines were dropped");
        }
        let _ = stderr.write_all(&text);
        // Who waited may have given up.
        if let Some(told) = told {
            let _ = told.try_send(());
        }
    }
}

/// Where the log's lines go.
struct Log;

impl<'a> MakeWriter<'a> for Log {
    type Writer = Entry;

    fn make_writer(&'a self) -> Entry {
        Entry(Vec::new())
    }
}

/// A line of the log, which is sent when it is complete.
struct Entry(Vec<u8>);

impl Write for Entry {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let text = std::mem::take(&mut self.0);
        match lines() {
            None => drop(io::stderr().write_all(&text)),
            Some(lines) if lines.to.try_send(Line { text, told: None }).is_err() => {
                lines.left_out.fetch_add(1, Ordering::Relaxed);
            }
            Some(_) => {}
        }
    }
}
