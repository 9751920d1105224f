//! What users of a load do: the seam between the shared run and a load.

use tier0_world::Random;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error};

use super::options::Isolation;
use crate::address::Address;
use crate::error::BenchError;

/// Parameters of a statement.
pub(crate) type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

/// What users do. One is shared by all of them.
pub(crate) trait Script: Send + Sync + 'static {
    /// A connection with its prepared statements.
    type Session: Send + Sync + 'static;
    /// What a user keeps from one transaction to the next.
    type User: Send + Sync + 'static;
    /// A transaction with all that it needs, so that it can be repeated.
    type Input: Send + Sync + 'static;

    /// Whether a transaction that is under way at the end is cancelled at once. Others have time to end, and are not counted.
    const CANCELS: bool = false;

    /// Names of the kinds of transactions, by place.
    fn names(&self) -> Vec<&'static str>;

    /// The kind whose commits are the load's own measure; none: all of them.
    fn headline(&self) -> Option<usize>;

    /// Shares of kinds in percent, as the option takes them; none where users do not draw kinds.
    fn mix(&self) -> Option<String>;

    /// The user of a number.
    fn user(&self, number: u64) -> Self::User;

    /// The next transaction of a user and the place of its kind; none if there is none left.
    fn next(&self, user: &mut Self::User, random: &mut Random) -> Option<(usize, Self::Input)>;

    /// How long a terminal of the specification keys in a transaction of a kind, seconds.
    fn keying(&self, _kind: usize) -> f64 {
        0.0
    }

    /// How long its user then thinks, seconds.
    fn thinking(&self, _kind: usize, _random: &mut Random) -> f64 {
        0.0
    }

    /// Connects and prepares all statements.
    fn open(
        &self,
        address: &Address,
        isolation: Isolation,
    ) -> impl Future<Output = Result<Self::Session, BenchError>>;

    /// The connection of a session.
    fn client<'a>(&self, session: &'a Self::Session) -> &'a Client;

    /// Runs a transaction once.
    fn run(
        &self,
        session: &Self::Session,
        input: &Self::Input,
    ) -> impl Future<Output = Result<Outcome, Error>> + Send;
}

/// What a transaction came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It was committed. So many things it did not find: in a Delivery, districts without an order.
    Committed { missed: u32 },
    /// It was rolled back as it was to be.
    RolledBack,
}

impl Outcome {
    /// It was committed and found everything.
    pub(crate) const COMMITTED: Outcome = Outcome::Committed { missed: 0 };
}
