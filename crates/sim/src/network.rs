//! A system whose users come through its NBD server, over a modelled network.
//!
//! Every volume is an export, and its users share a client with one to three connections. Connections are slow or fast,
//! carry messages in pieces of any length, and die at any byte, with a word or in silence; the client then connects anew.
//! What was under way it asks again, but for some writes: those fail, and may be done or not. Beside it come others who
//! behave badly: they ask and do not listen, stop in the middle of a write, and vanish.
//!
//! Before it asks again the client waits until the server has done with its old connection, or a write of that one could
//! overtake a later one of the new: NBD leaves that to clients.
//!
//! What it does not do: volumes that come and go are used directly.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;

use tier0_block::{BlockStatus, BlockTarget, TargetInfo};
use tier0_drive::DriveHandle;
use tier0_nbd::client::{Client, ClientOptions};
use tier0_nbd::protocol::{NbdAddress, NbdUri};
use tier0_nbd::server::{ExportOptions, Server, ServerOptions, TargetOptions};
use tier0_units::{Lba, Nanos};
use tier0_world::net::{Mortality, NetworkOptions, PeerAddress};
use tier0_world::sync::Notify;
use tier0_world::{Buf, BufMut, IoError, Random, World};

use crate::config::{log_uniform, pick};
use crate::hostile;
use crate::system::{Abilities, Admin, ArrayConfig, Recovered, Running, Status, System, SystemError};

/// From one look whether a connection is gone to the next.
const LOOK: Nanos = Nanos::from_millis(1);
/// A client that cannot connect for so long never will.
const CONNECT_MAX: Nanos = Nanos::from_secs(600);

/// The export of clients that behave badly: no step waits until they have gone.
const HOSTILE: &str = "hostile";

/// A system behind a network.
#[derive(Clone)]
pub(crate) struct Networked<S>(pub(crate) S);

impl<S: System> System for Networked<S> {
    type Running = Served<S::Running>;

    fn abilities(&self) -> Abilities {
        self.0.abilities()
    }

    fn refuses(&self, config: &ArrayConfig) -> Option<String> {
        self.0.refuses(config)
    }

    async fn create(
        &self,
        world: &World,
        config: &ArrayConfig,
        drives: Vec<DriveHandle>,
    ) -> Result<(), SystemError> {
        self.0.create(world, config, drives).await
    }

    async fn clear(&self, drives: &[DriveHandle]) -> Result<(), SystemError> {
        self.0.clear(drives).await
    }

    async fn open(
        &self,
        world: &World,
        config: &ArrayConfig,
        drives: Vec<DriveHandle>,
        without: Vec<String>,
    ) -> Result<Served<S::Running>, SystemError> {
        let running = self.0.open(world, config, drives, without).await?;
        Ok(Served::start(world, running))
    }

    async fn called_lost(&self, drives: Vec<DriveHandle>) -> Vec<String> {
        self.0.called_lost(drives).await
    }

    async fn move_to(
        &self,
        world: &World,
        drives: Vec<DriveHandle>,
        shards: usize,
    ) -> Result<bool, SystemError> {
        self.0.move_to(world, drives, shards).await
    }

    async fn recover(
        &self,
        world: &World,
        drives: Vec<DriveHandle>,
        accepts_loss: bool,
    ) -> Result<Recovered, SystemError> {
        self.0.recover(world, drives, accepts_loss).await
    }
}

/// A running system and its server.
#[derive(Clone)]
pub(crate) struct Served<R: Running> {
    running: R,
    volumes: Vec<Volume<R::Volume>>,
}

impl<R: Running> Served<R> {
    fn start(world: &World, running: R) -> Served<R> {
        let mut random = world.random(0x5e7e);
        let network = world.network().expect("it is simulated");
        network.set_options(draw_network(&mut random));
        let server = Server::new(world, draw_options(&mut random));
        let inner = running.volumes();
        for (number, volume) in inner.iter().enumerate() {
            let options = ExportOptions::named(export(number));
            server.add_export(options, volume.clone()).expect("names differ and blocks are small");
        }
        if let Some(volume) = inner.first() {
            server.add_export(ExportOptions::named(HOSTILE), volume.clone()).expect("names differ");
        }
        server.listen(&PeerAddress::Unix(address())).expect("nobody else listens");
        let volumes = inner.into_iter().enumerate().map(|(number, inner)| {
            let way = Way::new(world, &server, number, &mut random);
            Volume { inner, way: Some(Rc::new(way)) }
        });
        let volumes = volumes.collect();
        hostile::bother(world, uri(HOSTILE.to_owned()));
        Served { running, volumes }
    }
}

fn address() -> PathBuf {
    PathBuf::from("nbd")
}

fn uri(export: String) -> NbdUri {
    NbdUri { address: NbdAddress::Unix(address()), export }
}

fn export(number: usize) -> String {
    format!("v{number}")
}

fn draw_network(random: &mut Random) -> NetworkOptions {
    let bytes = |least: u64, most: u64, random: &mut Random| log_uniform(least, most, random) as usize;
    NetworkOptions {
        latency: Nanos(log_uniform(1_000, 2_000_000, random)),
        jitter: Nanos(log_uniform(1, 1_000_000, random)),
        bytes_per_second: log_uniform(20_000_000, 5_000_000_000, random),
        buffer_bytes: bytes(4_096, 1 << 20, random),
        segment_bytes_max: bytes(200, 200_000, random),
        mortality: random.chance(0.8).then(|| Mortality {
            share: random.unit() * 0.8,
            // All that one request needs must come through now and then.
            bytes_mean: log_uniform(100_000, 20_000_000, random) as f64,
            silent: random.unit() * 0.5,
        }),
        keepalive: Nanos::from_secs(1 + random.below(10)),
    }
}

fn draw_options(random: &mut Random) -> ServerOptions {
    let piece_bytes = pick(&[4 << 10, 16 << 10, 128 << 10], random);
    let kib = |least: u64, most: u64, random: &mut Random| log_uniform(least, most, random) << 10;
    ServerOptions {
        target: TargetOptions {
            in_flight_requests_max: log_uniform(1, 1_000, random) as u32,
            in_flight_bytes_max: kib(4, 16 << 10, random),
            contended_bytes_max: kib(4, 1 << 10, random),
            unsent_bytes_max: kib(1, 4 << 10, random),
            reserve_bytes: u64::from(piece_bytes) + kib(1, 256, random),
            turn_bytes: kib(4, 256, random),
            stall_timeout: Nanos::from_secs(2 + random.below(30)),
            ..TargetOptions::default()
        },
        piece_bytes,
        receive_buffer_bytes: kib(1, 256, random) as usize,
        ..ServerOptions::default()
    }
}

impl<R: Running> Running for Served<R> {
    type Volume = Volume<R::Volume>;

    fn volumes(&self) -> Vec<Self::Volume> {
        self.volumes.clone()
    }

    fn scratch(&self) -> Vec<(String, Self::Volume)> {
        let direct = |(name, inner)| (name, Volume { inner, way: None });
        self.running.scratch().into_iter().map(direct).collect()
    }

    fn may_lose_requests(&self) -> bool {
        true
    }

    async fn status(&self) -> Status {
        self.running.status().await
    }

    async fn admin(&self, request: Admin) -> Result<(), SystemError> {
        self.running.admin(request).await
    }

    async fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut counters = self.running.counters().await;
        let ways = || self.volumes.iter().filter_map(|volume| volume.way.as_ref());
        counters.push(("network: connections made anew", ways().map(|way| way.reconnects()).sum()));
        counters.push(("network: requests asked again", ways().map(|way| way.repeats()).sum()));
        counters
    }
}

/// A volume, directly or through the network.
#[derive(Clone)]
pub(crate) struct Volume<V> {
    inner: V,
    way: Option<Rc<Way>>,
}

/// The way to a volume through the network.
struct Way {
    world: World,
    uri: NbdUri,
    options: ClientOptions,
    /// How many connections at the server use the export.
    users: Box<dyn Fn() -> usize>,
    /// With its number, by which one that broke is known.
    client: RefCell<Option<(u64, Client)>>,
    connecting: Cell<bool>,
    connected: Notify,
    random: RefCell<Random>,
    connections: Cell<u64>,
    repeats: Cell<u64>,
}

impl Way {
    fn new<V: BlockTarget + 'static>(
        world: &World,
        server: &Server<V>,
        number: usize,
        random: &mut Random,
    ) -> Way {
        let (server, name) = (server.clone(), export(number));
        Way {
            world: world.clone(),
            uri: uri(export(number)),
            options: ClientOptions {
                connections: 1 + random.below(3) as usize,
                structured_replies: random.chance(0.7),
                ..ClientOptions::default()
            },
            users: Box::new(move || server.users_of(&name)),
            client: RefCell::default(),
            connecting: Cell::default(),
            connected: Notify::new(),
            random: RefCell::new(world.random(0x3a7 + number as u64)),
            connections: Cell::default(),
            repeats: Cell::default(),
        }
    }

    fn reconnects(&self) -> u64 {
        self.connections.get().saturating_sub(1)
    }

    fn repeats(&self) -> u64 {
        self.repeats.get()
    }

    /// The client, connected if it was not.
    async fn client(&self) -> (u64, Client) {
        loop {
            let client = self.client.borrow().clone();
            if let Some(client) = client {
                return client;
            }
            if self.connecting.replace(true) {
                self.connected.wait().await;
                continue;
            }
            let client = self.connect().await;
            self.connections.set(self.connections.get() + 1);
            *self.client.borrow_mut() = Some((self.connections.get(), client));
            self.connecting.set(false);
            self.connected.notify_all();
        }
    }

    /// Connects, once the server has done with all that was before.
    async fn connect(&self) -> Client {
        let began = self.world.now();
        loop {
            while (self.users)() > 0 {
                self.world.sleep(LOOK).await;
            }
            match Client::connect(&self.world, &self.uri, &self.options).await {
                Ok(client) => return client,
                // The connection may die in its handshake, too.
                Err(error) => {
                    let waited = self.world.now() - began;
                    assert!(waited < CONNECT_MAX, "nobody can connect for {waited}: {error}");
                    self.world.sleep(LOOK).await;
                }
            }
        }
    }

    /// Asks until there is an answer; where `may_fail` a connection that broke may be the answer.
    async fn ask<F, A>(&self, may_fail: bool, ask: impl Fn(Client) -> F) -> A
    where
        F: Future<Output = A>,
        A: Answer,
    {
        loop {
            let (number, client) = self.client().await;
            let answer = ask(client).await;
            if !answer.is_lost() {
                return answer;
            }
            self.forget(number);
            // A client that was told that the old connection is over must not be overtaken by it.
            drop(self.client().await);
            if may_fail && self.random.borrow_mut().chance(0.5) {
                return answer;
            }
            self.repeats.set(self.repeats.get() + 1);
        }
    }

    /// A connection of client `number` broke: no request uses it any more.
    fn forget(&self, number: u64) {
        let broken = self.client.borrow_mut().take_if(|(current, _)| *current == number);
        drop(broken);
    }
}

/// What comes of a request.
trait Answer {
    /// Nothing, because the connection broke.
    fn is_lost(&self) -> bool;
}

impl<T> Answer for Result<T, IoError> {
    fn is_lost(&self) -> bool {
        matches!(self, Err(IoError::Gone))
    }
}

impl Answer for (Result<(), IoError>, BufMut) {
    fn is_lost(&self) -> bool {
        self.0.is_lost()
    }
}

impl<V: BlockTarget> BlockTarget for Volume<V> {
    fn info(&self) -> TargetInfo {
        self.inner.info()
    }

    async fn read(&self, lba: Lba, buf: BufMut) -> (Result<(), IoError>, BufMut) {
        let Some(way) = &self.way else { return self.inner.read(lba, buf).await };
        let sectors = buf.sectors();
        way.ask(false, |client| {
            let mut buf = way.world.buffer(sectors);
            buf.as_mut_slice().fill(0xd5);
            async move { client.read(lba, buf).await }
        })
        .await
    }

    async fn write(&self, lba: Lba, buf: Buf, durable: bool) -> Result<(), IoError> {
        let Some(way) = &self.way else { return self.inner.write(lba, buf, durable).await };
        way.ask(true, |client| {
            let buf = buf.clone();
            async move { client.write(lba, buf, durable).await }
        })
        .await
    }

    async fn flush(&self) -> Result<(), IoError> {
        let Some(way) = &self.way else { return self.inner.flush().await };
        way.ask(false, |client| async move { client.flush().await }).await
    }

    async fn discard(&self, lba: Lba, sectors: u64) -> Result<(), IoError> {
        let Some(way) = &self.way else { return self.inner.discard(lba, sectors).await };
        way.ask(false, |client| async move { client.discard(lba, sectors).await }).await
    }

    async fn write_zeroes(
        &self,
        lba: Lba,
        sectors: u64,
        may_discard: bool,
        durable: bool,
    ) -> Result<(), IoError> {
        let Some(way) = &self.way else {
            return self.inner.write_zeroes(lba, sectors, may_discard, durable).await;
        };
        way.ask(true, |client| async move { client.write_zeroes(lba, sectors, may_discard, durable).await })
            .await
    }

    async fn block_status(
        &self,
        lba: Lba,
        sectors: u64,
        runs_max: usize,
    ) -> Result<Vec<BlockStatus>, IoError> {
        let Some(way) = &self.way else { return self.inner.block_status(lba, sectors, runs_max).await };
        way.ask(false, |client| async move { client.block_status(lba, sectors, runs_max).await }).await
    }
}
