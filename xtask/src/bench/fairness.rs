//! `cargo xtask bench fairness`: what hostile connections cost a well-behaved one: its rate and p99 alone and beside them, in
//! turn, in one run.
//!
//! The hostile ask for 200 reads of 32 MiB each and take nothing; some stay, some leave and come again ten times in a second,
//! some have sent half of a write. They cost their own side next to nothing, so that the ratio tells of the server.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::rc::Rc;

use clap::Args;
use tier0_block::BlockTarget;
use tier0_nbd::client::{Client, ClientOptions, enter};
use tier0_nbd::protocol::NbdUri;
use tier0_nbd::protocol::transmission::{Request, RequestKind};
use tier0_units::{Lba, Nanos};
use tier0_world::net::Socket;
use tier0_world::{Gather, RealOptions, RealRuntime, World};

use super::{judge_at_least, judge_at_most, scratch, table, write};
use crate::error::BenchError;
use crate::machine;
use crate::server::{Address, build_tier0, tier0};

/// What to run.
#[derive(Args)]
pub(crate) struct Options {
    /// Hostile connections
    #[arg(long, default_value_t = 64)]
    hostile: u32,
    /// Rounds, each alone and beside the hostile
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Seconds of each
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
}

/// What is aimed at, of the rate alone and of the p99 alone.
const RATE_LEAST: f64 = 0.5;
const P99_MOST: f64 = 3.0;
const QUEUE_DEPTH: u64 = 32;
const READ_SECTORS: u32 = 16;
/// Between the visits of those who leave and come again.
const VISIT: Nanos = Nanos::from_millis(100);

/// Reads per second, and the time within which 99 of 100 ended, in microseconds.
struct Served {
    rate: f64,
    p99_us: f64,
}

/// Runs it and prints.
pub(crate) fn run(options: &Options) -> Result<(), BenchError> {
    let program = build_tier0()?;
    let directory = scratch()?;
    let (socket, array) = (directory.path().join("s"), directory.path().join("array.toml"));
    write(&array, &array_file(&socket))?;
    let server = tier0(&program, &array, &Address::Unix(socket))?;
    println!("{}", machine::describe());
    let uri: NbdUri = server.uri().parse().expect("the server's own address");
    let runtime = RealRuntime::new(&RealOptions::default())
        .map_err(BenchError::system("a real world cannot be opened"))?;
    let world = runtime.world().clone();
    let time = Nanos((options.seconds * 1e9) as u64);
    let (mut rates, mut p99s) = (Vec::new(), Vec::new());
    let mut rows = table(&["round", "alone IOPS", "p99 us", "beside IOPS", "p99 us", "rate", "p99"]);
    for round in 1..=options.rounds {
        let alone = runtime.run(well_behaved(world.clone(), uri.clone(), time))?;
        let hostile = Rc::new(Cell::new(true));
        (0..options.hostile).for_each(|number| bother(&world, &uri, number, &hostile));
        let beside = runtime.run(well_behaved(world.clone(), uri.clone(), time))?;
        hostile.set(false);
        let (rate, p99) = (beside.rate / alone.rate, beside.p99_us / alone.p99_us);
        rows.add_row([
            round.to_string(),
            format!("{:.0}", alone.rate),
            format!("{:.0}", alone.p99_us),
            format!("{:.0}", beside.rate),
            format!("{:.0}", beside.p99_us),
            format!("{rate:.2}"),
            format!("{p99:.2}"),
        ]);
        rates.push(rate);
        p99s.push(p99);
        let leaving = world.clone();
        runtime.run(async move { leaving.sleep(Nanos(3 * VISIT.0)).await });
    }
    println!("{rows}");
    let (rate, p99) = (median(rates), median(p99s));
    println!(
        "beside {} hostile connections (median of rounds): rate {rate:.2} of alone, aimed at {RATE_LEAST}: {}; p99 {p99:.2} x \
         alone, aimed at {P99_MOST}: {}",
        options.hostile,
        judge_at_least(rate, RATE_LEAST),
        judge_at_most(p99, P99_MOST)
    );
    Ok(())
}

fn array_file(socket: &Path) -> String {
    format!(
        "[array]\nname = \"bench\"\ncores = 1\n[[drive]]\nname = \"ram{{n}}\"\ncount = 4\nram = \"256MiB\"\n\
         [[pool]]\nname = \"pool0\"\nraid = \"raid10\"\nset_size = 4\n\
         [[volume]]\nname = \"lun0\"\nsize = \"256MiB\"\n[nbd]\nlisten = [\"unix:{}\"]\n",
        socket.display()
    )
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

/// Reads with a full queue for `time`.
async fn well_behaved(world: World, uri: NbdUri, time: Nanos) -> Result<Served, BenchError> {
    let client = Client::connect(&world, &uri, &ClientOptions::default()).await;
    let client = client.map_err(|error| BenchError::Failed(error.to_string()))?;
    let (end, took) = (world.now() + time, Rc::new(RefCell::new(Vec::new())));
    let blocks = client.info().sectors.0 / u64::from(READ_SECTORS);
    let readers: Vec<_> = (0..QUEUE_DEPTH)
        .map(|reader| {
            let (client, world, took) = (client.clone(), world.clone(), took.clone());
            let mut random = world.random(reader);
            world.clone().spawn(async move {
                while world.now() < end {
                    let (began, lba) = (world.now(), Lba(random.below(blocks) * u64::from(READ_SECTORS)));
                    client.read(lba, world.buffer(READ_SECTORS)).await.0?;
                    took.borrow_mut().push((world.now() - began).0);
                }
                Ok::<(), tier0_world::IoError>(())
            })
        })
        .collect();
    for reader in readers {
        reader.await.map_err(|error| BenchError::Failed(format!("the well-behaved client: {error}")))?;
    }
    client.close().await;
    let mut took = took.borrow_mut();
    took.sort_unstable();
    let p99_us = took.get(took.len() * 99 / 100).map_or(f64::INFINITY, |ns| *ns as f64 / 1e3);
    Ok(Served { rate: took.len() as f64 / (time.0 as f64 / 1e9), p99_us })
}

/// A hostile client: of four, two stay, one leaves and comes again, and one stops in the middle of a write.
fn bother(world: &World, uri: &NbdUri, number: u32, goes_on: &Rc<Cell<bool>>) {
    let (world, uri, goes_on) = (world.clone(), uri.clone(), goes_on.clone());
    let leaves = number % 4 == 2;
    let words = if number % 4 == 3 {
        let mut words = Request::new(RequestKind::Write, 1, 0, 32 << 20).to_wire().to_vec();
        words.resize(1000, 0);
        words
    } else {
        Request::new(RequestKind::Read, 1, 0, 32 << 20).to_wire().repeat(200)
    };
    let visiting = {
        let world = world.clone();
        async move {
            while goes_on.get() {
                // One that finds no place tries again.
                let entered = enter(&world, &uri, &ClientOptions::default()).await;
                if let Ok((socket, ..)) = entered {
                    say(&socket, &words).await;
                    world.sleep(VISIT).await;
                    while goes_on.get() && !leaves {
                        world.sleep(VISIT).await;
                    }
                }
            }
        }
    };
    world.spawn(visiting).detach();
}

async fn say(socket: &Socket, words: &[u8]) {
    let mut gather = Box::new(Gather::new());
    gather.push_header(words);
    // The server may have had enough of it.
    let _ = socket.send(gather).await;
}
