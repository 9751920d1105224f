//! The options that say what users do, shared by `bench run` and `bench scene`.

use clap::{Args, ValueEnum};
use tier0_bench::decision_support::Queries;
use tier0_bench::load::Load as LoadName;
use tier0_bench::order_entry::draw::{Home, Items};
use tier0_bench::run::options::{Isolation, Weights};
use tier0_bench::run::{RunOptions, Think};
use tier0_units::Nanos;
use tier0_workload::spec::parse_duration;

/// What users do.
#[derive(Args, Debug)]
pub(super) struct Load {
    /// Users, each with a connection; of decision-support: streams
    #[arg(short, long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    users: u32,
    /// Measure this long
    #[arg(short, long, value_name = "TIME", default_value = "60s", value_parser = parse_duration)]
    duration: Nanos,
    /// Users start over this time, and run unmeasured until it ends [default: 5s]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    ramp: Option<Nanos>,
    /// Transactions per second that arrive in all, however long each takes (Poisson)
    #[arg(long, value_name = "TPS", conflicts_with = "think")]
    rate: Option<f64>,
    /// Pause of a user: none, exponential:TIME (mean; a bare number is in ms), or spec for keying and think times of the
    /// specification
    #[arg(long, value_name = "THINK", default_value = "none")]
    think: Think,
    /// How items are drawn: nurand (the specification) or uniform (as HammerDB does) [order-entry; default: nurand]
    #[arg(long, value_name = "LAW")]
    items: Option<ItemsOption>,
    /// Warehouse of a user: fixed (the specification), or all for a random one in each transaction [order-entry; default: fixed]
    #[arg(long, value_name = "HOME")]
    home: Option<HomeOption>,
    /// Weights of transactions, as in new-order=45,payment=43,delivery=4; kinds that are not named are
    /// not run [default: the specification's]
    #[arg(long, value_name = "MIX")]
    mix: Option<Weights>,
    /// Queries that streams run, as in q1,q6 [decision-support; default: all 22]
    #[arg(long, value_name = "QUERIES")]
    queries: Option<Queries>,
    /// End when each stream has run its queries once, instead of after a time [decision-support]
    #[arg(long, conflicts_with = "duration")]
    one_pass: bool,
    /// Isolation of transactions
    #[arg(long, value_name = "LEVEL", default_value = "read-committed")]
    isolation: IsolationOption,
    /// Seed of all random draws
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

/// How items are drawn.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ItemsOption {
    Nurand,
    Uniform,
}

/// The warehouse of a user.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum HomeOption {
    Fixed,
    All,
}

/// Isolation of transactions.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum IsolationOption {
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

impl Load {
    /// The same for the benchmark.
    pub(super) fn options(&self, load: Option<LoadName>) -> RunOptions {
        RunOptions {
            load,
            users: self.users,
            duration: self.duration,
            ramp: self.ramp,
            rate: self.rate,
            think: self.think,
            items: self.items.map(|items| match items {
                ItemsOption::Nurand => Items::NuRand,
                ItemsOption::Uniform => Items::Uniform,
            }),
            home: self.home.map(|home| match home {
                HomeOption::Fixed => Home::Fixed,
                HomeOption::All => Home::All,
            }),
            mix: self.mix.clone(),
            queries: self.queries.clone(),
            one_pass: self.one_pass,
            isolation: match self.isolation {
                IsolationOption::ReadCommitted => Isolation::ReadCommitted,
                IsolationOption::RepeatableRead => Isolation::RepeatableRead,
                IsolationOption::Serializable => Isolation::Serializable,
            },
            seed: self.seed,
        }
    }
}
