//! `cargo xtask bench qos --part neighbours`: how much a quiet volume notices of its neighbour on the same served array: of a
//! flood of writes, with equal weights and with the greatest weight for the quiet one; and of a scan.
//!
//! The same hosts load the quiet volume each time at a fixed rate. In each round all is measured in turn, first alone, and the
//! result is the ratio within the round. Latencies are the clients' own.

use tier0_nbd::client::Client;
use tier0_units::Nanos;
use tier0_world::RealRuntime;

use super::Asked;
use super::host::{Got, Load, Loaded, measured};
use crate::bench::{judge_at_least, judge_at_most, table};
use crate::error::BenchError;
use crate::spread::Spread;

/// What is aimed at: p99 of the quiet volume beside a flood, as a multiple of that alone.
const FLOODED_MOST: f64 = 1.5;
/// p95 of small reads beside a scan, as a multiple of that alone.
const SCANNED_MOST: f64 = 2.0;
/// The scan's throughput beside small reads, as a share of that alone.
const SCAN_LEAST: f64 = 0.9;
/// Weights of the quiet volume; its neighbour has the default of 10.
const WEIGHTS: [u32; 2] = [10, 100];

const QUIET: Load =
    Load { hosts: 8, every: Nanos::from_millis(40), sectors: 16, reads: 50, is_sequential: false };
const FLOOD: Load = Load { hosts: 32, every: Nanos::ZERO, sectors: 128, reads: 0, is_sequential: false };
const SMALL: Load = Load { reads: 100, ..QUIET };
const SCAN: Load = Load { hosts: 4, every: Nanos::ZERO, sectors: 2048, reads: 100, is_sequential: true };

/// What is measured, on an array whose volumes `quiet` and `busy` these connections have.
pub(super) struct Neighbours<'a> {
    pub(super) runtime: &'a RealRuntime,
    pub(super) clients: &'a [Client; 2],
    pub(super) asked: &'a Asked,
    /// Of each measurement.
    pub(super) time: Nanos,
}

/// What a round brought.
struct Round {
    alone: Got,
    /// By weight, the quiet volume and its neighbour.
    flooded: [[Got; 2]; 2],
    small: Got,
    scan: Got,
    scanned: [Got; 2],
}

impl Neighbours<'_> {
    /// Measures so many rounds, and prints.
    pub(super) fn run(&self, rounds: u32) -> Result<(), BenchError> {
        let rounds = (0..rounds).map(|_| self.round()).collect::<Result<Vec<Round>, _>>()?;
        print(&rounds);
        let spread = |ratio: &dyn Fn(&Round) -> f64| Spread::of(rounds.iter().map(ratio));
        for (place, weight) in WEIGHTS.iter().enumerate() {
            let ratio = spread(&|round| round.flooded[place][0].quantile(99) / round.alone.quantile(99));
            println!(
                "p99 beside a flood, weights {weight} and 10: {ratio:.2} times that alone, aimed at {FLOODED_MOST}: {}",
                judge_at_most(ratio.median(), FLOODED_MOST)
            );
        }
        let ratio = spread(&|round| round.scanned[0].quantile(95) / round.small.quantile(95));
        println!(
            "p95 of 8 KiB reads beside a scan: {ratio:.2} times that alone, aimed at {SCANNED_MOST}: {}",
            judge_at_most(ratio.median(), SCANNED_MOST)
        );
        let kept = spread(&|round| round.scanned[1].megabytes_per_s() / round.scan.megabytes_per_s());
        println!(
            "throughput of the scan beside them: {kept:.2} of that alone, aimed at {SCAN_LEAST}: {}",
            judge_at_least(kept.median(), SCAN_LEAST)
        );
        Ok(())
    }

    fn round(&self) -> Result<Round, BenchError> {
        let alone = self.one(0, QUIET)?;
        let flooded = WEIGHTS.map(|weight| {
            self.asked.set_of("quiet", [format!("weight={weight}")])?;
            self.both(QUIET, FLOOD)
        });
        let [equal, greater] = flooded;
        Ok(Round {
            alone,
            flooded: [equal?, greater?],
            small: self.one(0, SMALL)?,
            scan: self.one(1, SCAN)?,
            scanned: self.both(SMALL, SCAN)?,
        })
    }

    fn one(&self, client: usize, load: Load) -> Result<Got, BenchError> {
        let got = self.measured(vec![Loaded::whole(self.clients[client].clone(), load)])?;
        Ok(got.into_iter().next().unwrap_or_default())
    }

    fn both(&self, quiet: Load, busy: Load) -> Result<[Got; 2], BenchError> {
        let [one, other] = self.clients.clone();
        let got = self.measured(vec![Loaded::whole(one, quiet), Loaded::whole(other, busy)])?;
        Ok(got.try_into().unwrap_or_else(|_| unreachable!("there are two")))
    }

    fn measured(&self, loads: Vec<Loaded<Client>>) -> Result<Vec<Got>, BenchError> {
        let got = self.runtime.run(measured(self.runtime.world().clone(), loads, self.time));
        got.map_err(|error| BenchError::Failed(format!("the load: {error}")))
    }
}

/// Medians of the rounds.
fn print(rounds: &[Round]) {
    let mut rows = table(&["quiet volume", "beside", "p50 ms", "p95 ms", "p99 ms", "neighbour MB/s"]);
    let mut row = |what: &str,
                   beside: &str,
                   quiet: Option<&dyn Fn(&Round) -> &Got>,
                   busy: Option<&dyn Fn(&Round) -> &Got>| {
        let median = |of: &dyn Fn(&Round) -> f64| Spread::of(rounds.iter().map(of)).median();
        let latency = |percent: usize| {
            quiet.map_or_else(String::new, |got| {
                format!("{:.2}", median(&|round| got(round).quantile(percent)))
            })
        };
        let rate = busy
            .map_or_else(String::new, |got| format!("{:.0}", median(&|round| got(round).megabytes_per_s())));
        rows.add_row([what.to_owned(), beside.to_owned(), latency(50), latency(95), latency(99), rate]);
    };
    row("8 KiB, half reads", "nothing", Some(&|round| &round.alone), None);
    for (place, weight) in WEIGHTS.iter().enumerate() {
        row(
            "8 KiB, half reads",
            &format!("flood; weights {weight} and 10"),
            Some(&|round| &round.flooded[place][0]),
            Some(&|round| &round.flooded[place][1]),
        );
    }
    row("8 KiB reads", "nothing", Some(&|round| &round.small), None);
    row("none", "scan", None, Some(&|round| &round.scan));
    row("8 KiB reads", "scan", Some(&|round| &round.scanned[0]), Some(&|round| &round.scanned[1]));
    println!("\n{rows}");
}
