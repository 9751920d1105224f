//! Drives a load against a target in real time, with a live line on stderr, until it ends or Ctrl-C comes.

use std::io::IsTerminal;
use std::rc::Rc;
use std::time::Duration;

use futures_util::future::{Either, select};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tier0_block::BlockTarget;
use tier0_units::{Nanos, counted};
use tier0_workload::run::LoadRun;
use tier0_workload::spec::LoadSpec;
use tier0_workload::stats::{EndedBy, LoadReport, Progress};
use tier0_world::{RealOptions, RealRuntime, World};

use crate::failure::Failure;
use crate::signals::Signals;

/// How often a live line changes, in real time.
pub(crate) const REFRESH: Nanos = Nanos::from_millis(250);

/// A real world of this thread; says once where it must do without io_uring.
pub(crate) fn real_world() -> Result<RealRuntime, Failure> {
    let runtime = RealRuntime::new(&RealOptions::default())
        .map_err(|error| Failure::Run(format!("cannot start: {error}; raise the limit of open files")))?;
    if let Some(error) = runtime.fallback() {
        tracing::warn!(%error, "the kernel refuses io_uring; falling back to epoll and threads, which is slower");
    }
    Ok(runtime)
}

/// A line on stderr that shows how a run goes. It draws nothing where stderr is no terminal or `show` is false.
pub(crate) fn live_line(show: bool) -> ProgressBar {
    let target = if show && std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr_with_hz(10)
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(None, target);
    bar.set_style(
        ProgressStyle::with_template("{spinner} {prefix}{wide_msg}").expect("the template is right"),
    );
    if !bar.is_hidden() {
        bar.enable_steady_tick(Duration::from_millis(100));
    }
    bar
}

/// Says a step of long work: on the live line, and where stderr is no terminal as a line of its own, unless `show` is false.
pub(crate) fn tell_step(bar: &ProgressBar, show: bool, text: String) {
    if show && bar.is_hidden() {
        crate::logging::say(&text);
    }
    bar.set_message(text);
}

/// Plans the load on `target` and runs it to its end, or until a signal comes. `listener` is told after every `every`.
pub(crate) async fn drive<T: BlockTarget + 'static>(
    world: &World,
    target: Rc<T>,
    load: LoadSpec,
    signals: &Signals,
    every: Nanos,
    listener: impl FnMut(&Progress) + 'static,
) -> Result<LoadReport, Failure> {
    let run = LoadRun::new(world, target, load).map_err(Failure::input)?;
    let stop = run.stop_handle();
    let running = std::pin::pin!(run.on_progress(every, listener).run());
    match select(running, std::pin::pin!(signals.wait(world))).await {
        Either::Left((report, _)) => Ok(report),
        Either::Right(((), running)) => {
            stop.stop();
            Ok(running.await)
        }
    }
}

/// Where the progress of a run is shown.
#[derive(Clone)]
pub(crate) struct Shown(ProgressBar);

impl Shown {
    /// On a live line.
    pub(crate) fn on(bar: &ProgressBar) -> Shown {
        Shown(bar.clone())
    }

    /// A listener that shows each progress.
    pub(crate) fn listener(&self) -> impl FnMut(&Progress) + use<> {
        let mut last = String::new();
        let bar = self.0.clone();
        move |progress| {
            let text = progress.to_string();
            if last != text {
                bar.set_message(text.clone());
                last = text;
            }
        }
    }

    /// Shows what is being done, and says whether to go on. In virtual time nothing waits for a signal, so each call checks for one.
    pub(crate) fn look(&self, signals: &Signals) -> impl Fn(&str) -> bool + Clone + use<> {
        let (bar, signals) = (self.0.clone(), signals.clone());
        move |what: &str| {
            if !what.is_empty() && bar.message() != what {
                bar.set_message(what.to_owned());
            }
            !signals.raised()
        }
    }
}

/// The failure that a finished run stands for, if it did not do what was asked.
pub(crate) fn verdict(report: &LoadReport) -> Result<(), Failure> {
    if report.is_clean() {
        return Ok(());
    }
    if let Some(verify) = report.verify.as_ref().filter(|verify| verify.sectors_wrong > 0) {
        let first = verify.first.as_deref().unwrap_or("address unknown");
        let wrong = counted(verify.sectors_wrong, "sector");
        return Err(Failure::WrongData(format!(
            "verification failed: {wrong} read back wrong: {first}; do not trust this target or its copies \
             until the cause is known"
        )));
    }
    let failed = report.errors.reads + report.errors.writes;
    if failed > 0 {
        let first = report.errors.first.as_deref().unwrap_or("reason unknown");
        return Err(Failure::Run(format!(
            "{} failed: {first}; check the target's log",
            counted(failed, "request")
        )));
    }
    Err(match report.ended_by {
        EndedBy::Stopped => Failure::Interrupted,
        EndedBy::Standstill => Failure::Run(
            "the target completes requests in zero simulated time, from memory; use drives with a model, less memory, or a load over more data".to_owned(),
        ),
        EndedBy::Overload => Failure::Run("the target cannot sustain the rate; lower --rate".to_owned()),
        other => Failure::Run(format!("the run ended early ({other:?}); see the report")),
    })
}
