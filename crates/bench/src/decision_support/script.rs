//! What a stream does: the queries one after the other, in an order of its own in each pass.

use std::collections::VecDeque;
use std::str::FromStr;

use tier0_world::Random;
use tokio_postgres::{Client, Error};

use super::queries::{NAMES, query};
use crate::BenchError;
use crate::address::Address;
use crate::run::options::{Isolation, RunOptions};
use crate::run::script::{Outcome, Script};

/// A choice of queries, by their places, each once and in ascending order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queries(Vec<usize>);

impl Queries {
    fn all() -> Queries {
        Queries((0..NAMES.len()).collect())
    }
}

impl FromStr for Queries {
    type Err = BenchError;

    /// `q1,q6,…`; a number alone will do.
    fn from_str(text: &str) -> Result<Queries, BenchError> {
        let place = |part: &str| {
            let number = part.trim().trim_start_matches(['q', 'Q']).parse::<usize>().ok();
            number.filter(|number| (1..=NAMES.len()).contains(number)).map(|number| number - 1).ok_or_else(
                || {
                    BenchError::Option(format!(
                        "there is no query {part:?}; use some of q1 to q{}",
                        NAMES.len()
                    ))
                },
            )
        };
        let mut places: Vec<usize> = text.split(',').map(place).collect::<Result<_, BenchError>>()?;
        places.sort_unstable();
        places.dedup();
        Ok(Queries(places))
    }
}

/// The script.
pub(crate) struct DecisionSupport {
    queries: Queries,
    factor: f64,
    is_one_pass: bool,
}

impl DecisionSupport {
    /// That of a run on a database of this scale factor.
    pub(crate) fn new(options: &RunOptions, factor: f64) -> DecisionSupport {
        let queries = options.queries.clone().unwrap_or_else(Queries::all);
        DecisionSupport { queries, factor, is_one_pass: options.one_pass }
    }
}

/// Where a stream is.
pub(crate) struct Stream {
    /// Kinds that are left in this pass.
    left: VecDeque<usize>,
    passes: u64,
}

impl Script for DecisionSupport {
    type Session = Client;
    type User = Stream;
    /// The text of the query.
    type Input = String;

    const CANCELS: bool = true;

    fn names(&self) -> Vec<&'static str> {
        self.queries.0.iter().map(|place| NAMES[*place]).collect()
    }

    fn headline(&self) -> Option<usize> {
        None
    }

    fn mix(&self) -> Option<String> {
        None
    }

    fn user(&self, _number: u64) -> Stream {
        Stream { left: VecDeque::new(), passes: 0 }
    }

    fn next(&self, stream: &mut Stream, random: &mut Random) -> Option<(usize, String)> {
        if stream.left.is_empty() {
            if self.is_one_pass && stream.passes == 1 {
                return None;
            }
            stream.passes += 1;
            stream.left = shuffled(self.queries.0.len(), random);
        }
        let kind = stream.left.pop_front()?;
        Some((kind, query(self.queries.0[kind], self.factor, random)))
    }

    async fn open(&self, address: &Address, isolation: Isolation) -> Result<Client, BenchError> {
        let client = address.connect().await?;
        let sql = format!("set session characteristics as transaction isolation level {}", isolation.words());
        client.batch_execute(&sql).await.map_err(BenchError::query("setting the isolation"))?;
        Ok(client)
    }

    fn client<'a>(&self, session: &'a Client) -> &'a Client {
        session
    }

    async fn run(&self, session: &Client, input: &String) -> Result<Outcome, Error> {
        session.query(input, &[]).await?;
        Ok(Outcome::COMMITTED)
    }
}

/// The numbers below `count` in a random order (Fisher and Yates).
fn shuffled(count: usize, random: &mut Random) -> VecDeque<usize> {
    let mut numbers: VecDeque<usize> = (0..count).collect();
    for place in (1..count).rev() {
        numbers.swap(place, random.below(place as u64 + 1) as usize);
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_has_each_query_once_and_streams_have_orders_of_their_own() {
        let script = DecisionSupport { queries: Queries::all(), factor: 1.0, is_one_pass: true };
        let pass = |number| {
            let (mut stream, mut random) = (script.user(number), Random::new(1, number));
            let drawn = std::iter::from_fn(|| script.next(&mut stream, &mut random));
            drawn.map(|(kind, _)| kind).collect::<Vec<_>>()
        };
        let (one, other) = (pass(0), pass(1));
        assert_ne!(one, other);
        for mut pass in [one, other] {
            pass.sort_unstable();
            assert_eq!(pass, (0..22).collect::<Vec<_>>());
        }
    }

    #[test]
    fn queries_are_chosen_by_name() {
        let chosen: Queries = "q6, q1,19,q6".parse().expect("queries");
        assert_eq!(chosen, Queries(vec![0, 5, 18]));
        for wrong in ["q0", "q23", "x", ""] {
            let error = wrong.parse::<Queries>().expect_err("none").to_string();
            assert!(error.contains("q1 to q22"), "{error}");
        }
    }
}
