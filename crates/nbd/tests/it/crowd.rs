//! More clients than there are places, in virtual time: which of them stay, and how soon an honest one is served.

use std::cell::RefCell;
use std::net::IpAddr;
use std::rc::Rc;

use tier0_block::BlockTarget;
use tier0_drive::DriveHandle;
use tier0_nbd::client::{Client, ClientOptions};
use tier0_nbd::protocol::{NbdAddress, NbdUri};
use tier0_nbd::server::{ExportOptions, Server, ServerOptions, TargetOptions};
use tier0_units::{ByteCount, Nanos};
use tier0_world::net::{PeerAddress, Socket};
use tier0_world::{PayloadWidth, VirtualRuntime, World};

use crate::common::ram;
use crate::hostile::Raw;

/// Places of the server, and those of them that one address may have.
const PLACES: usize = 16;
const SHARE: usize = 8;
/// Longer than a handshake takes, and much shorter than a client that is silent is waited for.
const SOON: Nanos = Nanos::from_millis(500);

fn address() -> PeerAddress {
    PeerAddress::Unix("crowd".into())
}

fn host(last: u8) -> IpAddr {
    IpAddr::from([192, 0, 2, last])
}

/// A server with few places, and what it has told of them.
struct Scene {
    world: World,
    server: Server<DriveHandle>,
    told: Rc<RefCell<Vec<String>>>,
}

impl Scene {
    fn new(world: &World) -> Scene {
        let target = TargetOptions {
            connections_max: PLACES,
            connections_per_address_max: SHARE,
            ..TargetOptions::default()
        };
        let server = Server::new(world, ServerOptions { target, ..ServerOptions::default() });
        server.add_export(ExportOptions::named(""), ram(world, ByteCount::mib(1))).expect("a free name");
        server.listen(&address()).expect("a free address");
        let told = Rc::new(RefCell::new(Vec::new()));
        let listener = told.clone();
        server.tell_of_crowding(move |text| listener.borrow_mut().push(text));
        Scene { world: world.clone(), server, told }
    }

    /// A connection of a host, whose client says nothing.
    fn silent(&self, last: u8) -> Socket {
        Socket::connect_from(&self.world, host(last), &address()).expect("connects")
    }

    /// A connection of a host that has finished its handshake.
    async fn idle(&self, last: u8) -> Raw {
        Raw::negotiate_on(self.silent(last)).await
    }

    /// An honest client through a unix socket: it is served at once, or not at all.
    async fn local(&self) -> Option<Client> {
        let uri = NbdUri { address: NbdAddress::Unix("crowd".into()), export: String::new() };
        let began = self.world.now();
        let client = Client::connect(&self.world, &uri, &ClientOptions::default()).await.ok()?;
        client.flush().await.expect("it is served");
        assert!(self.world.now().saturating_sub(began) < SOON, "it was kept waiting");
        Some(client)
    }

    /// Lets what was begun arrive.
    async fn settle(&self) {
        self.world.sleep(SOON).await;
    }
}

fn in_virtual_time<F: Future<Output = ()> + 'static>(test: impl Fn(Scene) -> F) {
    let runtime = VirtualRuntime::new(1, PayloadWidth::REAL);
    let scene = Scene::new(runtime.world());
    runtime.run(test(scene));
}

/// 1,254 connections that said nothing kept every client out for ten seconds.
#[test]
fn silent_connections_keep_nobody_out() {
    in_virtual_time(|scene| async move {
        let flood: Vec<Socket> = (0..100).map(|number| scene.silent(1 + number % 4)).collect();
        scene.settle().await;
        assert!(scene.server.connection_count() <= PLACES);
        let local = scene.local().await.expect("a place is made for it");
        // A client of the very host that floods.
        let own = scene.idle(1).await;
        let counts = scene.server.counts().now();
        assert_eq!(counts.refused, 0, "silent ones give way");
        assert_eq!(counts.gave_way_negotiating as usize, 100 + 2 - PLACES);
        assert_eq!((counts.open, counts.negotiating), (PLACES as u64, PLACES as u64 - 2));
        local.flush().await.expect("it keeps its place");
        drop((flood, own));
    });
}

/// 1,023 connections that were idle kept every client out for good.
#[test]
fn an_address_leaves_places_for_others() {
    in_virtual_time(|scene| async move {
        let mut idle = Vec::new();
        for _ in 0..SHARE {
            idle.push(scene.idle(1).await);
        }
        assert_eq!(scene.silent(1).receive(Vec::with_capacity(64)).await.0, Ok(0), "one more is closed");
        let counts = scene.server.counts().now();
        assert_eq!((counts.refused, counts.refused_of_address), (1, 1));
        scene.idle(2).await;
        scene.local().await.expect("others have places");
        let told = scene.told.borrow().clone();
        let [told] = &told[..] else { panic!("it is told once: {told:?}") };
        assert!(told.contains("192.0.2.1 has 8 connections") && told.contains("closed a new one"), "{told}");
    });
}

#[test]
fn connections_that_never_asked_for_anything_give_way_to_new_ones() {
    in_virtual_time(|scene| async move {
        let mut idle = Vec::new();
        for number in 0..PLACES {
            idle.push(scene.idle(1 + number as u8 % 4).await);
        }
        assert!(scene.local().await.is_none(), "all of them have only just come");
        scene.world.sleep(TargetOptions::default().unused_timeout + Nanos::from_secs(10)).await;
        let first = scene.local().await.expect("one gives way");
        assert_eq!(scene.server.counts().now().gave_way_idle, 1);
        for _ in 0..PLACES - 1 {
            std::mem::forget(scene.local().await.expect("one gives way"));
        }
        assert!(scene.local().await.is_none(), "who has asked for something is not unused");
        first.flush().await.expect("it keeps its place");
    });
}

#[test]
fn counts_end_where_they_began() {
    in_virtual_time(|scene| async move {
        let some: Vec<Socket> = (0..5).map(|number| scene.silent(number)).collect();
        let chosen = scene.idle(9).await;
        scene.settle().await;
        let counts = scene.server.counts().now();
        assert_eq!((counts.open, counts.negotiating), (6, 5));
        drop((some, chosen));
        scene.settle().await;
        assert_eq!(scene.server.counts().now(), tier0_nbd::server::ConnectionsNow::default());
    });
}
