//! The figures of a case's runs as a prediction of the plan.

use serde::{Deserialize, Serialize};

use super::case::CaseRun;
use super::load::{Load, Unit};
use crate::gain::Gain;
use crate::report::{change, interval};

/// A model of the present array that is off by more than this is told with a warning.
const OFF: f64 = 0.3;

/// What a run gave.
#[derive(Clone, Debug, PartialEq)]
pub struct RunFigures {
    /// Units per second.
    pub units_s: f64,
    /// Half the width of the interval that the simulation leaves it, as a share of it.
    pub half_width: f64,
    /// Mean time of a unit, milliseconds.
    pub unit_ms: f64,
    /// Mean time of a read, milliseconds.
    pub read_ms: f64,
    /// Mean time of a write of the log, milliseconds.
    pub log_ms: f64,
    /// What limits, in words.
    pub limit: String,
}

/// The twin's prediction of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Twin {
    /// The gain in throughput, over all numbers of sessions that the samples leave open.
    pub gain: Gain,
    /// Numbers of sessions at work that were simulated, the most likely first.
    pub sessions: Vec<u32>,
    /// Whether the samples show that number.
    pub sessions_measured: bool,
    /// Whether transactions were counted; else units of I/Os.
    pub of_transactions: bool,
    /// Transactions (or units) per second as they were measured.
    pub measured_s: f64,
    /// The array as it is.
    pub now: TwinFigures,
    /// With the plan.
    pub next: TwinFigures,
    /// The flash of the array with the plan.
    pub flash: String,
    /// Sentences of one paragraph.
    pub answer: Vec<String>,
}

/// Figures of the most likely number of sessions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TwinFigures {
    /// Transactions (or units) per second.
    pub transactions_s: f64,
    /// Milliseconds of one.
    pub transaction_ms: f64,
    /// Milliseconds of a read.
    pub read_ms: f64,
    /// Milliseconds of a write of the log; none without a log.
    pub log_ms: Option<f64>,
    /// What limits, in words.
    pub limit: String,
}

/// What the runs of a case say, beside the gain of mean value analysis. `flash` describes the flash.
pub fn judge(load: &Load, runs: &[(CaseRun, RunFigures)], flash: &str, analysed: Option<Gain>) -> Twin {
    let sessions = load.users.band();
    let of = |users: u32, is_next: bool| {
        let found = runs.iter().find(|(run, _)| *run == CaseRun { users, is_next });
        &found.expect("a case has both runs of each number of users").1
    };
    let gains = sessions.iter().flat_map(|users| {
        let (now, next) = (of(*users, false), of(*users, true));
        let ratio = next.units_s / now.units_s.max(1e-9);
        // Waits for other things, which the simulation leaves as long as they were, may become shorter with those for storage:
        // sessions wait for the holders of locks, and these for storage.
        let shrunk = load.other_ms * (next.unit_ms / now.unit_ms.max(1e-9)).min(1.0);
        let shrinks = (next.unit_ms + load.other_ms) / (next.unit_ms + shrunk).max(1e-9);
        let open = now.half_width.hypot(next.half_width);
        [ratio, ratio * shrinks].map(|ratio| (ratio - 1.0, ratio * open))
    });
    let gains: Vec<(f64, f64)> = gains.collect();
    let expected = 0.5 * (gains[0].0 + gains[1].0);
    // Where the twin of the present array is near what was measured, that is as good a base as its own rate.
    let measured = load.units_s.max(1e-9);
    let middle = of(load.users.middle, true).units_s;
    let is_near = (of(load.users.middle, false).units_s / measured - 1.0).abs() <= OFF;
    let over_measured = is_near.then_some(middle / measured - 1.0);
    // Processors cannot do more than all of their time.
    let most = 1e3 * load.cores / load.processor_ms / measured - 1.0;
    let ends = gains.iter().flat_map(|(gain, open)| [gain - open, gain + open]).chain(over_measured);
    let (low, high) =
        ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), end| (low.min(end), high.max(end)));
    let gain = Gain { expected: expected.min(most), low: low.min(most), high: high.min(most) };
    let figures = |run: &RunFigures| TwinFigures {
        transactions_s: run.units_s,
        transaction_ms: run.unit_ms,
        read_ms: run.read_ms,
        log_ms: (run.log_ms > 0.0).then_some(run.log_ms),
        limit: run.limit.clone(),
    };
    let mut twin = Twin {
        gain,
        sessions,
        sessions_measured: load.users.is_measured,
        of_transactions: load.unit == Unit::Transaction,
        measured_s: load.units_s,
        now: figures(of(load.users.middle, false)),
        next: figures(of(load.users.middle, true)),
        flash: flash.to_owned(),
        answer: Vec::new(),
    };
    twin.answer = answer(&twin, load, analysed);
    twin
}

fn answer(twin: &Twin, load: &Load, analysed: Option<Gain>) -> Vec<String> {
    let Twin { now, next, .. } = twin;
    let what = if twin.of_transactions { "transactions" } else { "units of I/Os" };
    let sessions = match (load.users.low, load.users.high) {
        (low, high) if low == high => format!("{low} session{}", if low == 1 { "" } else { "s" }),
        (low, high) => format!("{low} to {high} sessions"),
    };
    let mut lines = vec![format!(
        "The twin with {} and {sessions} at work: {} {what} ({}), {} ms each instead of {}; reads take {} ms instead of {}.",
        twin.flash,
        change(twin.gain.expected),
        interval(twin.gain),
        ms(next.transaction_ms),
        ms(now.transaction_ms),
        ms(next.read_ms),
        ms(now.read_ms),
    )];
    lines.push(match now.limit == next.limit {
        true => format!("The limit is {}, now and then.", now.limit),
        false => format!("The limit is {}, and then {}.", now.limit, next.limit),
    });
    if let Some(analysed) = analysed {
        let agrees = analysed.low <= twin.gain.high && twin.gain.low <= analysed.high;
        lines.push(format!(
            "Mean value analysis says {} ({}){}.",
            change(analysed.expected),
            interval(analysed),
            if agrees { "" } else { ": the intervals do not meet, and the twin knows the places of the I/Os and the array's caches" }
        ));
    }
    let off = now.transactions_s / twin.measured_s.max(1e-9) - 1.0;
    let warning = match off.abs() > OFF {
        true => {
            " It is not the array that was measured, or has other memory or other work beside; rely on the ratio and not on the times."
        }
        false => "",
    };
    lines.push(format!(
        "The twin of the present array does {} {what} per second, and {} were measured ({}).{warning}",
        rate(now.transactions_s),
        rate(twin.measured_s),
        change(off),
    ));
    lines.extend(load.notes.iter().map(|note| {
        let mut letters = note.chars();
        let first = letters.next().map_or_else(String::new, |first| first.to_uppercase().collect());
        format!("{first}{}.", letters.as_str())
    }));
    lines
}

fn ms(value: f64) -> String {
    if value < 10.0 { format!("{value:.2}") } else { format!("{value:.1}") }
}

fn rate(value: f64) -> String {
    if value < 100.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

#[cfg(test)]
mod tests {
    use super::super::load::{LoadObject, Users};
    use super::*;

    fn load(measured: f64) -> Load {
        Load {
            engine: "postgresql-15",
            objects: vec![LoadObject {
                name: "orders".into(),
                bytes: 1e9,
                reads: 5.0,
                read_bytes: None,
                writes: 1.0,
                moves: true,
            }],
            unit: Unit::Transaction,
            units_s: measured,
            log_bytes: Some(1e3),
            cores: 8.0,
            processor_ms: 8e3 * 0.4 / measured,
            other_ms: 0.0,
            users: Users { low: 10, middle: 10, high: 12, is_measured: true },
            notes: vec!["something was assumed".into()],
        }
    }

    fn runs(rates: [f64; 4]) -> Vec<(CaseRun, RunFigures)> {
        let order = [(10, false), (10, true), (12, false), (12, true)];
        let run = |((users, is_next), units_s): ((u32, bool), f64)| {
            let figures = RunFigures {
                units_s,
                half_width: 0.01,
                unit_ms: f64::from(users) / units_s * 1e3,
                read_ms: if is_next { 1.0 } else { 10.0 },
                log_ms: 0.5,
                limit: "I/O latency".into(),
            };
            (CaseRun { users, is_next }, figures)
        };
        order.into_iter().zip(rates).map(run).collect()
    }

    #[test]
    fn the_interval_covers_all_runs_and_the_measured_rate() {
        let twin = judge(&load(100.0), &runs([95.0, 190.0, 110.0, 198.0]), "a mirror", None);
        assert!((twin.gain.expected - 1.0).abs() < 1e-9, "{:?}", twin.gain);
        // 198 over 110, 190 over the measured 100, and what the simulation leaves open.
        assert!(twin.gain.low < 0.8 && twin.gain.low > 0.75, "{:?}", twin.gain);
        assert!(twin.gain.high > 1.0 && twin.gain.high < 1.05, "{:?}", twin.gain);
        let text = twin.answer.join(" ");
        for word in [
            "10 to 12 sessions",
            "+100 % transactions",
            "95.0 transactions per second",
            "Something was assumed.",
        ] {
            assert!(text.contains(word), "{word} is missing: {text}");
        }
        assert!(!text.contains("rely on the ratio"), "{text}");
    }

    #[test]
    fn processors_bound_the_gain_and_another_array_is_told() {
        // 40 % busy: no more than 2.5 times the measured rate.
        let twin = judge(&load(100.0), &runs([50.0, 240.0, 55.0, 245.0]), "a mirror", Some(Gain::default()));
        assert!((twin.gain.high - 1.5).abs() < 1e-9 && twin.gain.expected <= 1.5, "{:?}", twin.gain);
        let text = twin.answer.join(" ");
        assert!(text.contains("rely on the ratio") && text.contains("do not meet"), "{text}");
    }
}
