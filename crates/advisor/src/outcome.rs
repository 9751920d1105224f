//! A plan that was carried out, against what was measured afterwards: predicted, measured, error.

use serde::Serialize;

use crate::advice::Advice;
use crate::gain::Gain;
use crate::plan::{Before, Plan};

/// A plan with what came of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Checked {
    /// What was measured before.
    pub before: Before,
    /// What was measured afterwards.
    pub after: Before,
    /// The gain that the plan expects; none where it was not known.
    pub predicted: Option<Gain>,
    /// What the twin predicts; none where the plan was not simulated.
    pub twin: Option<Gain>,
    /// Whether the measured gain lies in the twin's interval.
    pub within_twin: Option<bool>,
    /// The measured gain in transactions per second: 0.2 is a fifth more.
    pub measured: Option<f64>,
    /// Measured less predicted gain, in the same unit.
    pub error: Option<f64>,
    /// Whether the measured gain lies in the predicted interval.
    pub within: Option<bool>,
    /// The objects that were to move.
    pub objects: Vec<CheckedObject>,
    /// Sentences of one paragraph.
    pub answer: Vec<String>,
}

/// An object of a plan, before and afterwards.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckedObject {
    /// Its name.
    pub object: String,
    /// Milliseconds of an I/O before.
    pub ms_before: Option<f64>,
    /// Milliseconds of an I/O afterwards.
    pub ms_after: Option<f64>,
    /// I/Os per second afterwards.
    pub ios_s_after: Option<f64>,
}

/// A measured rate within this share of the expected one is near it.
const NEAR: f64 = 0.2;
/// A load whose transactions write so many times more or less log is another load.
const OTHER_LOAD: f64 = 1.5;
/// A load that differs by more than this in its busy processors, without a change in its rate, is another load.
const SAME_RATE: f64 = 0.02;

/// Compares a plan with the advice of what was measured afterwards.
pub fn check(plan: &Plan, after: Before, advice: &Advice) -> Checked {
    let measured = plan.before.transactions_s.zip(after.transactions_s);
    let measured = measured.filter(|(before, _)| *before > 0.0).map(|(before, after)| after / before - 1.0);
    let both = measured.zip(plan.expected);
    let objects = plan.moves.iter().map(|moved| {
        let now = advice.objects.iter().find(|row| row.name == moved.object);
        CheckedObject {
            object: moved.object.clone(),
            ms_before: moved.ms_per_io,
            ms_after: now.and_then(|row| row.ms_per_io),
            ios_s_after: now
                .and_then(|row| row.reads_s)
                .map(|reads| reads + now.and_then(|row| row.writes_s).unwrap_or(0.0)),
        }
    });
    let mut checked = Checked {
        before: plan.before,
        after,
        predicted: plan.expected,
        twin: plan.twin.as_ref().map(|twin| twin.gain),
        within_twin: plan
            .twin
            .as_ref()
            .zip(measured)
            .map(|(twin, measured)| (twin.gain.low..=twin.gain.high).contains(&measured)),
        measured,
        error: both.map(|(measured, expected)| measured - expected.expected),
        within: both.map(|(measured, expected)| (expected.low..=expected.high).contains(&measured)),
        objects: objects.collect(),
        answer: Vec::new(),
    };
    checked.answer = answer(&checked);
    checked
}

fn answer(checked: &Checked) -> Vec<String> {
    let percent = |gain: f64| format!("{:+.0} %", gain * 100.0);
    let mut lines = Vec::new();
    if checked.before == checked.after && checked.before.transactions_s.is_some() {
        lines.push(
            "These are the reports that the plan was made from; give those of a later time.".to_owned(),
        );
    }
    match (checked.predicted, checked.measured) {
        (Some(predicted), Some(measured)) => {
            let is_near = (measured - predicted.expected).abs() <= NEAR * (1.0 + predicted.expected);
            let verdict = match checked.within {
                Some(true) if is_near => "The prediction holds",
                Some(true) => "The gain lies in the predicted interval, but not near what was expected",
                _ if measured < predicted.low => "The gain is less than predicted",
                _ => "The gain is more than predicted",
            };
            lines.push(format!(
                "{verdict}: predicted {} transactions ({} to {}), measured {}.",
                percent(predicted.expected),
                percent(predicted.low),
                percent(predicted.high),
                percent(measured),
            ));
        }
        (None, Some(measured)) => lines.push(format!(
            "The plan has no predicted gain (a measurement was missing); measured {} transactions.",
            percent(measured)
        )),
        (_, None) => lines.push(
            "The gain was not measured: transactions and time are needed before and after; use samples of \"tier0 advise \
             collect\", Perfmon with Transactions/sec, or AWR."
                .to_owned(),
        ),
    }
    if let Some((twin, is_within)) = checked.twin.zip(checked.within_twin) {
        lines.push(format!(
            "The twin predicted {} ({} to {}): {}.",
            percent(twin.expected),
            percent(twin.low),
            percent(twin.high),
            if is_within { "it holds" } else { "it does not hold" }
        ));
    }
    if let Some((before, after)) = checked.before.log_bytes.zip(checked.after.log_bytes)
        && !(1.0 / OTHER_LOAD..=OTHER_LOAD).contains(&(after / before.max(1e-9)))
    {
        lines.push(format!(
            "A transaction wrote {before:.0} bytes of log before and {after:.0} afterwards: it is another load, or a checkpoint fell into \
             only one of the measurements, and the gain is not that of the plan alone."
        ));
    }
    let busy = checked.after.busy.filter(|busy| *busy >= 0.95 && checked.within == Some(false));
    if let Some(busy) = busy {
        lines
            .push(format!("The processors are {:.0} % busy now: they limit, and not storage.", busy * 100.0));
    }
    let unmoved = checked.objects.iter().filter(|object| {
        matches!((object.ms_before, object.ms_after), (Some(before), Some(after)) if after > 0.7 * before)
    });
    let unmoved: Vec<&str> = unmoved.map(|object| object.object.as_str()).collect();
    if !unmoved.is_empty() {
        lines.push(format!(
            "I/Os of {} take nearly as long as before; check that they were moved, and that their flash is not saturated.",
            unmoved.join(", ")
        ));
    }
    if let (Some(measured), Some(before), Some(after)) =
        (checked.measured, checked.before.busy, checked.after.busy)
        && measured.abs() < SAME_RATE
        && before < 0.95
        && (after - before).abs() < SAME_RATE
    {
        lines.push(
            "Rate and processors are as before: if users have think times or arrive at a fixed rate, flash shortens their response \
             times and not the time between their transactions."
                .to_owned(),
        );
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(predicted: Option<Gain>, after: f64, ms_after: f64) -> Checked {
        let before = Before {
            seconds: Some(60.0),
            transactions_s: Some(100.0),
            busy: Some(0.3),
            log_bytes: Some(5e3),
        };
        let measured = Some(after / 100.0 - 1.0);
        let mut checked = Checked {
            before,
            after: Before { transactions_s: Some(after), ..before },
            predicted,
            twin: Some(Gain { expected: 0.4, low: 0.2, high: 0.6 }),
            within_twin: Some((1.2..=1.6).contains(&(after / 100.0))),
            measured,
            error: None,
            within: predicted.map(|gain| (gain.low..=gain.high).contains(&(after / 100.0 - 1.0))),
            objects: vec![CheckedObject {
                object: "public.orders".into(),
                ms_before: Some(8.0),
                ms_after: Some(ms_after),
                ios_s_after: Some(10.0),
            }],
            answer: Vec::new(),
        };
        checked.answer = answer(&checked);
        checked
    }

    #[test]
    fn the_answer_says_whether_the_prediction_holds() {
        let gain = Some(Gain { expected: 0.5, low: 0.3, high: 0.8 });
        let text = |after, ms| checked(gain, after, ms).answer.join(" ");
        assert_eq!(
            text(150.0, 0.3),
            "The prediction holds: predicted +50 % transactions (+30 % to +80 %), measured +50 %. The twin predicted +40 % (+20 % to \
             +60 %): it holds."
        );
        assert!(text(170.0, 0.3).contains("it does not hold"));
        assert!(text(110.0, 0.3).starts_with("The gain is less than predicted"));
        assert!(text(210.0, 0.3).starts_with("The gain is more than predicted"));
        assert!(text(101.0, 7.9).contains("I/Os of public.orders take nearly as long as before"));
        assert!(text(100.5, 0.3).contains("fixed rate"));
        let wide = checked(Some(Gain { expected: 1.1, low: 0.0, high: 1.1 }), 130.0, 0.3);
        assert!(wide.answer[0].contains("not near what was expected"), "{:?}", wide.answer);
        let mut other = checked(gain, 150.0, 0.3);
        other.after.log_bytes = Some(2e4);
        assert!(answer(&other).join(" ").contains("5000 bytes of log before and 20000"), "another load");
        assert!(checked(None, 110.0, 0.3).answer[0].contains("no predicted gain"));
    }

    #[test]
    fn what_is_no_plan_is_refused() {
        for (text, word) in [
            ("x", "no JSON"),
            ("{}", "no placement plan"),
            ("{\"tier0\": \"placement-plan\", \"version\": 1}", "another version"),
            ("{\"tier0\": \"placement-plan\", \"version\": 2}", "missing field"),
        ] {
            let error = Plan::parse(text).expect_err(text);
            assert!(error.contains(word) && error.contains("tier0 advise plan"), "{error}");
        }
    }
}
