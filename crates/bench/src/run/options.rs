//! What a run does: users, time, pace, laws.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use tier0_units::Nanos;
use tier0_workload::spec::parse_duration;

pub use super::mix::Weights;
use crate::BenchError;
use crate::decision_support::script::Queries;
use crate::load::Load;
use crate::order_entry::draw::{Home, Items};

/// A pass ends by itself, before this.
const ONE_PASS_LIMIT: Duration = Duration::from_secs(365 * 24 * 3600);
/// More arrivals per second than any server serves; to count those of an hour takes seconds.
const RATE_MAX: f64 = 100_000.0;
/// How long users start where nothing else is said.
const RAMP: Nanos = Nanos::from_secs(5);

/// What a run does. What is none has a default of the load, which refuses it where it makes no sense.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The load that the database is to have; none: the one that it has.
    pub load: Option<Load>,
    /// Users, each with a connection of its own, who run one transaction after the other.
    pub users: u32,
    /// How long it is measured.
    pub duration: Nanos,
    /// How long before that users start, evenly, and then work unmeasured.
    pub ramp: Option<Nanos>,
    /// Transactions per second that arrive in all, whatever the database does (Poisson); none: users begin the next one at once,
    /// or after thinking.
    pub rate: Option<f64>,
    /// Pauses of users.
    pub think: Think,
    /// How items are drawn; of order entry.
    pub items: Option<Items>,
    /// Which warehouse users work for; of order entry.
    pub home: Option<Home>,
    /// Shares of transactions; none: the modelled workload's.
    pub mix: Option<Weights>,
    /// Which queries streams run; of decision support. None: all.
    pub queries: Option<Queries>,
    /// Whether each stream runs its queries once, however long that takes; of decision support.
    pub one_pass: bool,
    /// How sessions are isolated.
    pub isolation: Isolation,
    /// Seed of all draws.
    pub seed: u64,
}

impl RunOptions {
    /// # Errors
    /// Something is zero, or too much.
    pub(crate) fn check(&self) -> Result<(), BenchError> {
        let wrong = |text: &str| Err(BenchError::Option(text.to_owned()));
        if !(1..=10_000).contains(&self.users) {
            return wrong("a run has 1 to 10000 users; correct --users");
        }
        if self.duration < Nanos::from_secs(1) {
            return wrong("less than a second measures nothing; raise --duration");
        }
        if self.rate.is_some_and(|rate| !(rate > 0.0 && rate <= RATE_MAX)) {
            return wrong("a rate is a number above 0, and at most 100000; correct --rate");
        }
        if self.rate.is_some() && self.think != Think::None {
            return wrong(
                "transactions that arrive at a rate have no think time; leave out --rate or --think",
            );
        }
        Ok(())
    }

    /// # Errors
    /// Something is asked for that the load does not have.
    pub(crate) fn check_for(&self, load: Load) -> Result<(), BenchError> {
        use Load::{Brokerage, DecisionSupport, OrderEntry};
        let has_think_time_of_specification = self.think == Think::Spec;
        let has_pauses = self.think != Think::None;
        let others: [(&str, bool, &[Load]); 8] = [
            ("--items", self.items.is_some(), &[OrderEntry]),
            ("--home", self.home.is_some(), &[OrderEntry]),
            ("--think spec", has_think_time_of_specification, &[OrderEntry]),
            ("--mix", self.mix.is_some(), &[OrderEntry, Brokerage]),
            ("--rate", self.rate.is_some(), &[OrderEntry, Brokerage]),
            ("--ramp or --think", self.ramp.is_some() || has_pauses, &[OrderEntry, Brokerage]),
            ("--queries", self.queries.is_some(), &[DecisionSupport]),
            ("--one-pass", self.one_pass, &[DecisionSupport]),
        ];
        let wrong = others.iter().find(|(_, is_given, loads)| *is_given && !loads.contains(&load));
        match wrong {
            None => Ok(()),
            Some((option, ..)) => Err(BenchError::Option(format!(
                "{option} means nothing for the load of this database, {}; leave it out",
                load.title()
            ))),
        }
    }

    /// How long users start before anything is counted. The server books the reads of a query when it ends, so that those of
    /// decision support are counted from the first one on.
    pub(crate) fn ramp(&self, load: Load) -> Nanos {
        match load {
            Load::DecisionSupport => Nanos::ZERO,
            Load::OrderEntry | Load::Brokerage => self.ramp.unwrap_or(RAMP),
        }
    }

    /// How long is measured at most.
    pub(crate) fn duration(&self) -> Duration {
        if self.one_pass { ONE_PASS_LIMIT } else { self.duration.into() }
    }
}

/// How sessions are isolated from each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// Each statement sees what was committed before it; rows that a transaction changes are locked. PostgreSQL's default.
    #[default]
    ReadCommitted,
    /// A transaction sees one state, and is refused if a row that it changes has changed since.
    RepeatableRead,
    /// The same, and refused too if it and others could not have run one after the other.
    Serializable,
}

impl Isolation {
    /// Its name in options and reports.
    pub fn name(self) -> &'static str {
        match self {
            Isolation::ReadCommitted => "read-committed",
            Isolation::RepeatableRead => "repeatable-read",
            Isolation::Serializable => "serializable",
        }
    }

    /// Its name in SQL.
    pub(crate) fn words(self) -> String {
        self.name().replace('-', " ")
    }
}

/// Pauses of a user.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Think {
    /// None.
    None,
    /// An exponentially distributed time with this mean after each transaction.
    Exponential(Nanos),
    /// The keying and think times of the specification (clause 5.2.5.7): about 21 s for each transaction.
    Spec,
}

impl FromStr for Think {
    type Err = BenchError;

    fn from_str(text: &str) -> Result<Think, BenchError> {
        let wrong = || {
            BenchError::Option(format!(
                "{text:?} is no think time; use none, exponential:TIME (such as exponential:50ms) or spec"
            ))
        };
        match text {
            "none" => Ok(Think::None),
            "spec" => Ok(Think::Spec),
            _ => {
                let mean = text.strip_prefix("exponential:").ok_or_else(wrong)?;
                // A number alone is in milliseconds.
                let bare = mean.parse::<f64>().is_ok();
                let mean = parse_duration(&if bare { format!("{mean}ms") } else { mean.to_owned() });
                mean.map(Think::Exponential).map_err(|_| wrong())
            }
        }
    }
}

impl fmt::Display for Think {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Think::None => f.write_str("none"),
            Think::Exponential(mean) => write!(f, "exponential:{}ms", mean.as_millis_f64()),
            Think::Spec => f.write_str("spec"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn think_times_are_read_and_written() {
        for (text, think) in [
            ("none", Think::None),
            ("spec", Think::Spec),
            ("exponential:50", Think::Exponential(Nanos::from_millis(50))),
            ("exponential:2s", Think::Exponential(Nanos::from_secs(2))),
        ] {
            let read: Think = text.parse().expect("a think time");
            assert_eq!(read, think);
            assert_eq!(think.to_string().parse::<Think>().expect("the same"), think);
        }
        for wrong in ["exponential:", "exponential:-1", "5ms", "exponential:x", ""] {
            assert!(wrong.parse::<Think>().is_err(), "{wrong}");
        }
    }
}
