//! Ctrl-C and SIGTERM: a benchmark that has started servers and mounted something ends in order, so that nothing is left.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::error::BenchError;

/// Whether the user asked for an end.
#[derive(Clone)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Catches the signals from now on. A second one ends the program at once.
    pub(crate) fn catch() -> Result<Interrupt, BenchError> {
        let raised = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // In this order: the second signal finds the flag that the first has raised.
            signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, raised.clone())
                .and_then(|_| signal_hook::flag::register(signal, raised.clone()))
                .map_err(BenchError::system("signals cannot be caught"))?;
        }
        Ok(Interrupt(raised))
    }

    /// Fails once a signal has come.
    pub(crate) fn check(&self) -> Result<(), BenchError> {
        match self.0.load(Ordering::SeqCst) {
            true => Err(BenchError::Failed("interrupted; what was mounted and made is removed".into())),
            false => Ok(()),
        }
    }
}
