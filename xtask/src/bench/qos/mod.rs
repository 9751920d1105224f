//! `cargo xtask bench qos`: how well a volume's ceilings are held: two connections on two shards of one served array load the
//! volume together, and the requests that end in each second are compared with what the ceilings allow.
//!
//! After that, what a quiet volume notices of its neighbour (`neighbours`), and what writes to flash notice of disks (`lanes`).
//!
//! Reads of a small volume come from memory, so that nothing but the ceilings limits. A second begins when
//! the load does, not when the server's budget does.

mod host;
mod lanes;
mod neighbours;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;

use clap::Args;
use serde_json::Value;
use tier0_block::BlockTarget;
use tier0_nbd::client::{Client, ClientOptions};
use tier0_nbd::protocol::NbdUri;
use tier0_units::{Lba, Nanos};
use tier0_world::{RealOptions, RealRuntime, World};

use self::neighbours::Neighbours;
use super::served::create;
use super::{judge_at_most, scratch, table, write};
use crate::error::BenchError;
use crate::machine;
use crate::server::{Address, build_tier0, tier0};

/// What to run.
#[derive(Args)]
pub(crate) struct Options {
    /// Seconds of each load of ceilings, of which the first may have a burst; the other parts take three times as many
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(3..))]
    seconds: u32,
    /// Rounds of neighbours
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Four seconds of each load, and one round
    #[arg(long)]
    short: bool,
    /// Measure this alone
    #[arg(long, value_enum)]
    part: Option<Part>,
}

/// What can be measured.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// How well ceilings are held
    Ceilings,
    /// What a quiet volume notices of its neighbour
    Neighbours,
    /// What writes to flash notice of a flood of writes to disks, in virtual time
    Lanes,
}

/// What is aimed at: how far a second may be from what the ceilings allow, in percent.
const DEVIATION_MOST: f64 = 5.0;
const CONNECTIONS: u64 = 2;
/// Requests that each connection has under way.
const QUEUE_DEPTH: u64 = 16;
const REQUEST_SECTORS: u32 = 16;
const REQUEST_BYTES: f64 = 8192.0;
/// Before each load: so much time's budget is saved where a burst allows it.
const REST: Nanos = Nanos::from_secs(3);

/// Ceilings, and what they allow in a second.
struct Ceilings {
    iops: u32,
    mbps: u32,
    burst_s: u32,
}

/// In order: requests, bytes, both of which the lower counts, and a burst.
const ALL: [Ceilings; 6] = [
    Ceilings { iops: 500, mbps: 0, burst_s: 0 },
    Ceilings { iops: 2000, mbps: 0, burst_s: 0 },
    Ceilings { iops: 5000, mbps: 0, burst_s: 0 },
    Ceilings { iops: 0, mbps: 20, burst_s: 0 },
    Ceilings { iops: 3000, mbps: 10, burst_s: 0 },
    Ceilings { iops: 1000, mbps: 0, burst_s: 2 },
];

impl Ceilings {
    fn told(&self) -> String {
        let part = |name: &str, value: u32| (value > 0).then(|| format!("{name}={value}"));
        let parts = [part("iops.max", self.iops), part("mbps.max", self.mbps), part("burst", self.burst_s)];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }

    /// Requests in the second of this number, the first after a rest.
    fn allowed(&self, second: usize) -> f64 {
        let by_iops = if self.iops > 0 { f64::from(self.iops) } else { f64::INFINITY };
        let by_bytes = if self.mbps > 0 { f64::from(self.mbps) * 1e6 / REQUEST_BYTES } else { f64::INFINITY };
        let saved = if second == 0 { f64::from(self.burst_s) } else { 0.0 };
        by_iops.min(by_bytes) * (1.0 + saved)
    }
}

/// Runs it and prints.
pub(crate) fn run(options: &Options) -> Result<(), BenchError> {
    println!("{}", machine::describe());
    let (seconds, rounds) = if options.short { (4, 1) } else { (options.seconds, options.rounds) };
    // Long enough for a flood to fill the write cache.
    let long = Nanos::from_secs(3 * u64::from(seconds));
    let is_wanted = |part: Part| options.part.is_none_or(|only| only == part);
    if is_wanted(Part::Ceilings) || is_wanted(Part::Neighbours) {
        let program = build_tier0()?;
        let directory = scratch()?;
        let (socket, array) = (directory.path().join("s"), directory.path().join("array.toml"));
        write(&array, &array_file(directory.path(), &socket))?;
        create(&program, &array)?;
        let server = tier0(&program, &array, &Address::Unix(socket))?;
        let uri: NbdUri = server.uri().parse().expect("the server's own address");
        let runtime = RealRuntime::new(&RealOptions::default())
            .map_err(BenchError::system("a real world cannot be opened"))?;
        let asked = Asked { program, array };
        if is_wanted(Part::Ceilings) {
            ceilings(&runtime, &uri, &asked, seconds as usize)?;
        }
        if is_wanted(Part::Neighbours) {
            neighbours(&runtime, uri, &asked, long, rounds)?;
        }
    }
    if is_wanted(Part::Lanes) {
        lanes::run(long)?;
    }
    Ok(())
}

fn neighbours(
    runtime: &RealRuntime,
    uri: NbdUri,
    asked: &Asked,
    time: Nanos,
    rounds: u32,
) -> Result<(), BenchError> {
    let clients = runtime.run(both(runtime.world().clone(), uri))?;
    Neighbours { runtime, clients: &clients, asked, time }.run(rounds)?;
    runtime.run(async move {
        for client in clients {
            client.close().await;
        }
    });
    Ok(())
}

fn ceilings(runtime: &RealRuntime, uri: &NbdUri, asked: &Asked, seconds: usize) -> Result<(), BenchError> {
    let world = runtime.world().clone();
    println!("{}", runtime.run(connected(world.clone(), uri.clone(), asked.clone()))?);
    let run_load = || runtime.run(load(world.clone(), uri.clone(), seconds));
    println!("without ceilings: {} IOPS in the slowest second\n", run_load()?.iter().min().unwrap_or(&0));
    println!("requests that ended in each second:");
    let mut results = Vec::new();
    for ceilings in &ALL {
        asked.set(ceilings)?;
        rest(runtime);
        let counts = run_load()?;
        println!("{}: {counts:?}", ceilings.told());
        results.push((ceilings, counts));
    }
    print(&results);
    Ok(())
}

fn print(results: &[(&Ceilings, Vec<u64>)]) {
    let mut rows = table(&[
        "ceilings",
        "allowed IOPS",
        "first second",
        "lowest later",
        "highest",
        "largest deviation %",
    ]);
    for (ceilings, counts) in results {
        // The first second may have a burst.
        let later = || counts[1..].iter();
        rows.add_row([
            ceilings.told(),
            format!("{:.0}", ceilings.allowed(1)),
            counts[0].to_string(),
            later().min().unwrap_or(&0).to_string(),
            later().max().unwrap_or(&0).to_string(),
            format!("{:.1}", largest_deviation(ceilings, counts)),
        ]);
    }
    let largest =
        results.iter().map(|(ceilings, counts)| largest_deviation(ceilings, counts)).fold(0.0, f64::max);
    println!("\n{rows}");
    println!(
        "largest deviation of a second: {largest:.1} %, aimed at {DEVIATION_MOST}: {}",
        judge_at_most(largest, DEVIATION_MOST)
    );
}

/// Of all seconds, the largest distance from what is allowed, in percent of that.
fn largest_deviation(ceilings: &Ceilings, counts: &[u64]) -> f64 {
    let deviation = |(second, count): (usize, &u64)| {
        let allowed = ceilings.allowed(second);
        (*count as f64 - allowed).abs() / allowed * 100.0
    };
    counts.iter().enumerate().map(deviation).fold(0.0, f64::max)
}

/// The program and the array that it serves.
#[derive(Clone)]
struct Asked {
    program: PathBuf,
    array: PathBuf,
}

impl Asked {
    fn set(&self, ceilings: &Ceilings) -> Result<(), BenchError> {
        let value = |name: &str, value: u32| format!("{name}={value}");
        let settings = [
            value("iops.max", ceilings.iops),
            value("mbps.max", ceilings.mbps),
            value("burst", ceilings.burst_s),
        ];
        self.set_of("lun0", settings)
    }

    /// Sets something of a volume.
    fn set_of(&self, volume: &str, settings: impl IntoIterator<Item = String>) -> Result<(), BenchError> {
        let mut command = Command::new(&self.program);
        command.args(["volume", "set"]).arg(&self.array).arg(volume).args(settings);
        self.output(command).map(drop)
    }

    /// The shards whose connections have asked for something.
    fn shards(&self) -> Result<Vec<String>, BenchError> {
        let mut command = Command::new(&self.program);
        command.args(["iostat", "--json"]).arg(&self.array);
        let report: Value = serde_json::from_slice(&self.output(command)?)
            .map_err(|error| BenchError::Failed(format!("tier0 iostat: {error}")))?;
        let connections = report["pools"][0]["connections"].as_array().cloned().unwrap_or_default();
        let shard = |one: &Value| Some(one["id"].as_str()?.split('.').next()?.to_owned());
        Ok(connections.iter().filter_map(shard).collect())
    }

    fn output(&self, mut command: Command) -> Result<Vec<u8>, BenchError> {
        let output = command.output().map_err(BenchError::system("tier0 cannot be started"))?;
        match output.status.success() {
            true => Ok(output.stdout),
            false => Err(BenchError::Failed(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
        }
    }
}

fn array_file(directory: &Path, socket: &Path) -> String {
    format!(
        "[array]\nname = \"bench\"\ncores = 2\n[[drive]]\nname = \"d{{n}}\"\ncount = 2\npath = {:?}\nsize = \"2GiB\"\nclass = \"flash\"\n\
         [[pool]]\nname = \"pool0\"\nraid = \"raid1\"\nset_size = 2\n\
         [[volume]]\nname = \"lun0\"\nsize = \"64MiB\"\n\
         [[volume]]\nname = \"quiet\"\nsize = \"512MiB\"\nread_cache = false\n\
         [[volume]]\nname = \"busy\"\nsize = \"1GiB\"\nread_cache = false\n[nbd]\nlisten = [\"unix:{}\"]\n",
        directory.join("d{n}.img"),
        socket.display()
    )
}

fn rest(runtime: &RealRuntime) {
    let world = runtime.world().clone();
    runtime.run(async move { world.sleep(REST).await });
}

async fn connect(world: &World, uri: &NbdUri) -> Result<Vec<Client>, BenchError> {
    let mut clients = Vec::new();
    for _ in 0..CONNECTIONS {
        let client = Client::connect(world, uri, &ClientOptions::default()).await;
        clients.push(client.map_err(|error| BenchError::Failed(error.to_string()))?);
    }
    Ok(clients)
}

/// A connection to the quiet volume, and one to its neighbour.
async fn both(world: World, uri: NbdUri) -> Result<[Client; 2], BenchError> {
    let mut clients = Vec::new();
    for volume in ["quiet", "busy"] {
        let uri = NbdUri { export: volume.to_owned(), ..uri.clone() };
        let client = Client::connect(&world, &uri, &ClientOptions::default()).await;
        clients.push(client.map_err(|error| BenchError::Failed(error.to_string()))?);
    }
    Ok(clients.try_into().unwrap_or_else(|_| unreachable!("there are two")))
}

/// On which shards the connections are.
async fn connected(world: World, uri: NbdUri, asked: Asked) -> Result<String, BenchError> {
    let clients = connect(&world, &uri).await?;
    let shards = asked.shards()?;
    for client in clients {
        client.close().await;
    }
    Ok(format!("{CONNECTIONS} connections, on shards {}", shards.join(" and ")))
}

/// Requests that end in each of so many seconds, over all connections.
async fn load(world: World, uri: NbdUri, seconds: usize) -> Result<Vec<u64>, BenchError> {
    let clients = connect(&world, &uri).await?;
    let (began, ended) = (world.now(), Rc::new(RefCell::new(vec![0; seconds])));
    let mut hosts = Vec::new();
    for (number, client) in (0u64..).zip(&clients) {
        for host in 0..QUEUE_DEPTH {
            let (client, ended) = (client.clone(), ended.clone());
            let seed = number * QUEUE_DEPTH + host;
            hosts.push(world.spawn(ask_on(world.clone(), client, seed, began, ended)));
        }
    }
    for host in hosts {
        host.await.map_err(|error| BenchError::Failed(format!("the load: {error}")))?;
    }
    for client in clients {
        client.close().await;
    }
    Ok(ended.take())
}

/// Asks until all seconds are over.
async fn ask_on(
    world: World,
    client: Client,
    seed: u64,
    began: Nanos,
    ended: Rc<RefCell<Vec<u64>>>,
) -> Result<(), tier0_world::IoError> {
    let (mut random, blocks) = (world.random(seed), client.info().sectors.0 / u64::from(REQUEST_SECTORS));
    loop {
        let lba = Lba(random.below(blocks) * u64::from(REQUEST_SECTORS));
        client.read(lba, world.buffer(REQUEST_SECTORS)).await.0?;
        let second = ((world.now() - began).as_secs_f64()) as usize;
        match ended.borrow_mut().get_mut(second) {
            Some(count) => *count += 1,
            None => return Ok(()),
        }
    }
}
