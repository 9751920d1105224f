//! What hostile connections cost a well-behaved one, in virtual time: a target that carries out one request after the other,
//! as a processor or a fast drive does, and clients that ask for much, take nothing, stop halfway, leave and come again.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;

use tier0_block::{BlockStatus, BlockTarget, TargetInfo};
use tier0_nbd::client::{Client, ClientOptions};
use tier0_nbd::protocol::transmission::{Request, RequestKind};
use tier0_nbd::protocol::{NbdAddress, NbdUri};
use tier0_nbd::server::{ExportOptions, Server, ServerOptions, TargetOptions};
use tier0_units::{Lba, Nanos, SECTOR_BYTES, SectorCount};
use tier0_world::net::PeerAddress;
use tier0_world::{Buf, BufMut, IoError, PayloadWidth, VirtualRuntime, World};

use crate::hostile::Raw;

/// What one request costs the target, and a MiB of it: 100,000 requests or 5 GiB in a second.
const REQUEST_COSTS: Nanos = Nanos::from_micros(10);
const MIB_COSTS: Nanos = Nanos::from_micros(195);
const SECTORS: u64 = (64 << 20) / SECTOR_BYTES;

/// Carries out one request after the other.
#[derive(Clone)]
struct Line {
    world: World,
    busy_until: Rc<Cell<Nanos>>,
    bytes: Rc<Cell<u64>>,
}

impl Line {
    async fn work(&self, sectors: u64) {
        let bytes = sectors * SECTOR_BYTES;
        self.bytes.set(self.bytes.get() + bytes);
        let costs = REQUEST_COSTS + Nanos((MIB_COSTS.0 * bytes) >> 20);
        let end = self.busy_until.get().max(self.world.now()) + costs;
        self.busy_until.set(end);
        self.world.sleep_until(end).await;
    }
}

impl BlockTarget for Line {
    fn info(&self) -> TargetInfo {
        TargetInfo { sectors: SectorCount(SECTORS), block_sectors: 1, volatile_cache: true }
    }

    async fn read(&self, _: Lba, buf: BufMut) -> (Result<(), IoError>, BufMut) {
        self.work(u64::from(buf.sectors())).await;
        (Ok(()), buf)
    }

    async fn write(&self, _: Lba, buf: Buf, _: bool) -> Result<(), IoError> {
        self.work(u64::from(buf.sectors())).await;
        Ok(())
    }

    async fn flush(&self) -> Result<(), IoError> {
        Ok(())
    }

    async fn discard(&self, _: Lba, _: u64) -> Result<(), IoError> {
        Ok(())
    }

    async fn write_zeroes(&self, _: Lba, _: u64, _: bool, _: bool) -> Result<(), IoError> {
        Ok(())
    }

    async fn block_status(&self, _: Lba, sectors: u64, _: usize) -> Result<Vec<BlockStatus>, IoError> {
        Ok(vec![BlockStatus { sectors, allocated: true, zero: false }])
    }
}

/// A server in virtual time.
struct Scene {
    world: World,
    line: Line,
    server: Server<Line>,
}

fn address() -> PathBuf {
    PathBuf::from("nbd")
}

impl Scene {
    fn new(world: &World, options: ServerOptions) -> Scene {
        let line = Line { world: world.clone(), busy_until: Rc::default(), bytes: Rc::default() };
        let server = Server::new(world, options);
        server.add_export(ExportOptions::default(), line.clone()).expect("a free name");
        server.listen(&PeerAddress::Unix(address())).expect("a free address");
        Scene { world: world.clone(), line, server }
    }

    async fn client(&self) -> Client {
        let uri = NbdUri { address: NbdAddress::Unix(address()), export: String::new() };
        Client::connect(&self.world, &uri, &ClientOptions::default()).await.expect("connects")
    }

    async fn raw(&self) -> Raw {
        Raw::negotiate_at(&self.world, &PeerAddress::Unix(address())).await
    }

    /// Reads 8 KiB with a queue of 32 for `time`; how many, and in which time 99 of 100 ended.
    async fn well_behaved(&self, time: Nanos) -> (usize, Nanos) {
        let client = self.client().await;
        let (end, took) = (self.world.now() + time, Rc::new(RefCell::new(Vec::new())));
        let reading = (0..32u64).map(|reader| {
            let (world, client, took) = (self.world.clone(), client.clone(), took.clone());
            self.world.spawn(async move {
                while world.now() < end {
                    let began = world.now();
                    client.read(Lba(reader * 16), world.buffer(16)).await.0.expect("it is served");
                    took.borrow_mut().push(world.now() - began);
                }
            })
        });
        for reading in reading.collect::<Vec<_>>() {
            reading.await;
        }
        client.close().await;
        let mut took = took.borrow_mut();
        took.sort_unstable();
        (took.len(), took[took.len() * 99 / 100])
    }
}

fn in_virtual_time<F: Future<Output = ()> + 'static>(test: impl FnOnce(World) -> F) {
    let runtime = VirtualRuntime::new(7, PayloadWidth::REAL);
    runtime.run(test(runtime.world().clone()));
}

/// 200 reads of 32 MiB.
fn flood() -> Vec<u8> {
    Request::new(RequestKind::Read, 1, 0, 32 << 20).to_wire().repeat(200)
}

const SHOWN: Nanos = Nanos::from_millis(400);

/// Where gigabytes move in a second.
const BRIEFLY: Nanos = Nanos::from_millis(40);

/// Rate and p99 beside the hostile against those alone.
fn judge(alone: (usize, Nanos), beside: (usize, Nanos)) {
    assert!(beside.0 * 2 >= alone.0, "at least half of the rate alone: {beside:?} of {alone:?}");
    assert!(beside.1.0 <= alone.1.0 * 3, "at most 3 times the p99: {beside:?} after {alone:?}");
}

#[test]
fn who_asks_for_much_and_takes_nothing_costs_little() {
    in_virtual_time(|world| async move {
        let scene = Scene::new(&world, ServerOptions::default());
        let alone = scene.well_behaved(SHOWN).await;
        let before = scene.line.bytes.get();
        let read_for_them = || scene.line.bytes.get() - before;
        let mut hostile = Vec::new();
        for _ in 0..64 {
            let raw = scene.raw().await;
            raw.send(&flood()).await;
            hostile.push(raw);
        }
        judge(alone, scene.well_behaved(SHOWN).await);
        let beside = scene.line.bytes.get();
        world.sleep(SHOWN).await;
        assert_eq!(scene.line.bytes.get(), beside, "nothing goes on for them");
        let well_behaved = alone.0 as u64 * 8192;
        assert!(read_for_them() < well_behaved + (64 << 20), "at most a MiB was read for each");
        drop(hostile);
        world.sleep(Nanos::from_millis(10)).await;
        assert_eq!(scene.line.bytes.get(), beside, "nothing was begun when they had gone");
        assert_eq!(scene.server.connection_count(), 0, "nothing keeps them");
    });
}

#[test]
fn who_leaves_and_comes_again_costs_little() {
    in_virtual_time(|world| async move {
        let scene = Rc::new(Scene::new(&world, ServerOptions::default()));
        let alone = scene.well_behaved(SHOWN).await;
        let hostile: Vec<_> = (0..64)
            .map(|_| {
                let (world, scene) = (world.clone(), scene.clone());
                world.clone().spawn(async move {
                    loop {
                        let raw = scene.raw().await;
                        raw.send(&flood()).await;
                        world.sleep(Nanos::from_millis(100)).await;
                    }
                })
            })
            .collect();
        judge(alone, scene.well_behaved(SHOWN).await);
        drop(hostile);
    });
}

/// A well-behaved client alone, and beside one that takes all it can get.
fn beside_the_greedy(options: ServerOptions, look: fn((usize, Nanos), (usize, Nanos))) {
    in_virtual_time(move |world| async move {
        let scene = Scene::new(&world, options);
        let alone = scene.well_behaved(BRIEFLY).await;
        let greedy = scene.client().await;
        let reading: Vec<_> = (0..4)
            .map(|_| {
                let (world, greedy) = (world.clone(), greedy.clone());
                world.clone().spawn(async move {
                    loop {
                        greedy.read(Lba(0), world.buffer(SECTORS as u32 / 2)).await.0.expect("it is served");
                    }
                })
            })
            .collect();
        look(alone, scene.well_behaved(BRIEFLY).await);
        drop(reading);
    });
}

#[test]
fn who_takes_all_it_can_get_leaves_half() {
    beside_the_greedy(ServerOptions::default(), judge);
    let contended_bytes_max = 64 << 20;
    let target = TargetOptions { contended_bytes_max, ..TargetOptions::default() };
    beside_the_greedy(ServerOptions { target, ..ServerOptions::default() }, |alone, beside| {
        assert!(beside.0 * 2 < alone.0, "without the limit it would not: {beside:?} of {alone:?}");
    });
}

#[test]
fn who_stops_halfway_or_takes_nothing_is_cut_off() {
    in_virtual_time(|world| async move {
        let patience = ServerOptions::default().target.stall_timeout;
        let scene = Scene::new(&world, ServerOptions::default());
        let idle = scene.client().await;
        let half_a_request = scene.raw().await;
        half_a_request.send(&Request::new(RequestKind::Read, 1, 0, 512).to_wire()[..20]).await;
        let half_a_write = scene.raw().await;
        half_a_write.send(&Request::new(RequestKind::Write, 1, 0, 1 << 20).to_wire()).await;
        half_a_write.send(&[1; 1000]).await;
        let deaf = scene.raw().await;
        deaf.send(&flood()).await;
        world.sleep(Nanos(patience.0 * 2 / 3)).await;
        assert_eq!(scene.server.connection_count(), 4);
        half_a_write.send(&[1; 1000]).await;
        world.sleep(Nanos(patience.0 * 2 / 3)).await;
        assert_eq!(scene.server.connection_count(), 2, "one has gone on, and one owes nothing");
        world.sleep(patience).await;
        assert_eq!(scene.server.connection_count(), 1);
        world.sleep(Nanos::from_secs(86_400)).await;
        idle.flush().await.expect("whoever is idle is none of them");
    });
}

#[test]
fn who_is_idle_for_long_gives_way_to_who_comes() {
    in_virtual_time(|world| async move {
        let target = TargetOptions { connections_max: 2, ..TargetOptions::default() };
        let idle_timeout = target.idle_timeout;
        let scene = Scene::new(&world, ServerOptions { target, ..ServerOptions::default() });
        let (first, second) = (scene.client().await, scene.client().await);
        world.sleep(idle_timeout).await;
        first.flush().await.expect("it is served");
        world.sleep(Nanos::from_secs(60)).await;
        let third = scene.client().await;
        third.flush().await.expect("it has got the place");
        first.flush().await.expect("it was not idle for long");
        assert_eq!(second.flush().await, Err(IoError::Gone));
        let uri = NbdUri { address: NbdAddress::Unix(address()), export: String::new() };
        let fourth = Client::connect(&world, &uri, &ClientOptions::default()).await;
        assert!(fourth.is_err(), "nobody is idle for long");
    });
}

#[test]
fn long_requests_work_over_any_network() {
    for seed in 0..5 {
        let runtime = VirtualRuntime::new(seed, PayloadWidth::REAL);
        let world = runtime.world().clone();
        let options = tier0_world::net::NetworkOptions {
            segment_bytes_max: 1 + 3_000 * seed as usize,
            buffer_bytes: 70_000,
            jitter: Nanos::from_micros(50),
            ..tier0_world::net::NetworkOptions::default()
        };
        world.network().expect("a virtual world").set_options(options);
        runtime.run(async move {
            let scene = Scene::new(&world, ServerOptions::default());
            for structured_replies in [false, true] {
                let uri = NbdUri { address: NbdAddress::Unix(address()), export: String::new() };
                let options = ClientOptions { structured_replies, ..ClientOptions::default() };
                let client = Client::connect(&world, &uri, &options).await.expect("connects");
                client.write(Lba(3), world.buffer(1001).freeze(), true).await.expect("writes");
                client.read(Lba(3), world.buffer(1001)).await.0.expect("reads");
                client.close().await;
            }
            assert_eq!(scene.line.bytes.get(), 4 * 1001 * SECTOR_BYTES);
        });
    }
}
