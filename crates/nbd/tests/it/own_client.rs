//! Server and client of this crate against each other, on both drivers of the real world.

use std::cell::Cell;
use std::pin::pin;
use std::rc::Rc;

use crate::common::{Sockets, on_each_driver, ram, server};
use futures_util::future::{Either, select};
use tier0_block::{BlockStatus, BlockTarget, TargetInfo};
use tier0_drive::DriveHandle;
use tier0_nbd::client::{Client, ClientError, ClientOptions, list};
use tier0_nbd::protocol::{NbdAddress, NbdUri};
use tier0_nbd::server::{ExportOptions, Server, ServerError, ServerOptions, TargetError, TargetOptions};
use tier0_units::{ByteCount, Lba, Nanos, SectorCount};
use tier0_world::net::{Listener, PeerAddress};
use tier0_world::{Buf, BufMut, IoError, World};

/// `sectors` sectors, each filled with its address and `version`.
fn pattern(world: &World, lba: u64, sectors: u32, version: u64) -> BufMut {
    let mut buf = world.buffer(sectors);
    for (index, sector) in buf.as_mut_slice().chunks_exact_mut(512).enumerate() {
        let value = ((lba + index as u64) << 16 | version).to_le_bytes();
        sector.chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&value));
    }
    buf
}

#[test]
fn what_is_written_is_read_back_in_every_size() {
    on_each_driver(|world| async move {
        let sockets = Sockets::new();
        let _server = server(&world, &sockets, "gold", ServerOptions::default());
        for (structured_replies, connections) in [(true, 1), (false, 1), (true, 3)] {
            let options = ClientOptions { structured_replies, connections, ..ClientOptions::default() };
            let client = Client::connect(&world, &sockets.uri("gold"), &options).await.expect("connects");
            assert_eq!(client.info().sectors, SectorCount::in_bytes(ByteCount::mib(64)));
            // One sector; eight KiB; more than the direct limit; more than the receive buffer; more than a payload.
            for sectors in [1, 16, 129, 1000, 70_000] {
                let expected = pattern(&world, 7, sectors, u64::from(sectors));
                let copy = BufMut::copy_from(expected.as_slice(), world.width());
                client.write(Lba(7), copy.freeze(), sectors == 16).await.expect("writes");
                let (result, got) = client.read(Lba(7), world.buffer(sectors)).await;
                result.expect("reads");
                assert!(got.as_slice() == expected.as_slice(), "{sectors} sectors, {options:?}");
            }
            client.flush().await.expect("flushes");
            client.close().await;
        }
    });
}

#[test]
fn many_requests_are_in_flight_and_none_is_mixed_up() {
    on_each_driver(|world| async move {
        let sockets = Sockets::new();
        let options = ServerOptions {
            target: TargetOptions {
                in_flight_requests_max: 8,
                in_flight_bytes_max: 1 << 20,
                ..TargetOptions::default()
            },
            payload_bytes_max: 1 << 20,
            ..ServerOptions::default()
        };
        let _server = server(&world, &sockets, "", options);
        let client =
            Client::connect(&world, &sockets.uri(""), &ClientOptions::default()).await.expect("connects");
        let mut tasks = Vec::new();
        for task in 0..64u64 {
            let (client, world) = (client.clone(), world.clone());
            tasks.push(world.clone().spawn(async move {
                let mut random = world.random(task);
                for version in 0..40 {
                    let sectors = 1 + random.below(300) as u32;
                    let lba = task * 1024 + random.below(1024 - 300);
                    client
                        .write(Lba(lba), pattern(&world, lba, sectors, version).freeze(), false)
                        .await
                        .expect("write");
                    let (result, got) = client.read(Lba(lba), world.buffer(sectors)).await;
                    result.expect("read");
                    assert!(
                        got.as_slice() == pattern(&world, lba, sectors, version).as_slice(),
                        "task {task}"
                    );
                }
            }));
        }
        for task in tasks {
            task.await;
        }
    });
}

/// A target that tells what it is asked, and can be slow or fail.
#[derive(Clone)]
struct Probe {
    world: World,
    delay: Nanos,
    fail: Option<IoError>,
    under_way: Rc<Cell<usize>>,
    most: Rc<Cell<usize>>,
    flushes: Rc<Cell<usize>>,
}

impl Probe {
    fn new(world: &World) -> Probe {
        Probe {
            world: world.clone(),
            delay: Nanos::ZERO,
            fail: None,
            under_way: Rc::default(),
            most: Rc::default(),
            flushes: Rc::default(),
        }
    }

    async fn work(&self) -> Result<(), IoError> {
        self.under_way.set(self.under_way.get() + 1);
        self.most.set(self.most.get().max(self.under_way.get()));
        self.world.sleep(self.delay).await;
        self.under_way.set(self.under_way.get() - 1);
        self.fail.map_or(Ok(()), Err)
    }
}

impl BlockTarget for Probe {
    fn info(&self) -> TargetInfo {
        TargetInfo { sectors: SectorCount(4096), block_sectors: 8, volatile_cache: true }
    }

    async fn read(&self, _: Lba, mut buf: BufMut) -> (Result<(), IoError>, BufMut) {
        buf.as_mut_slice().fill(0x5a);
        (self.work().await, buf)
    }

    async fn write(&self, _: Lba, _: Buf, durable: bool) -> Result<(), IoError> {
        self.flushes.set(self.flushes.get() + usize::from(durable));
        self.work().await
    }

    async fn flush(&self) -> Result<(), IoError> {
        self.flushes.set(self.flushes.get() + 1);
        self.work().await
    }

    async fn discard(&self, _: Lba, _: u64) -> Result<(), IoError> {
        Err(IoError::Unsupported)
    }

    async fn write_zeroes(&self, _: Lba, _: u64, _: bool, durable: bool) -> Result<(), IoError> {
        self.flushes.set(self.flushes.get() + usize::from(durable));
        self.work().await
    }

    async fn block_status(&self, _: Lba, sectors: u64, _: usize) -> Result<Vec<BlockStatus>, IoError> {
        let hole = BlockStatus { sectors: 8, allocated: false, zero: true };
        Ok(vec![hole, BlockStatus { sectors: sectors - 8, allocated: true, zero: false }])
    }
}

async fn probe_server(
    world: &World,
    sockets: &Sockets,
    probe: &Probe,
    options: ServerOptions,
) -> (Server<Probe>, Client) {
    let server = Server::new(world, options);
    server.add_export(ExportOptions::named("probe"), probe.clone()).expect("a free name");
    server.listen(&sockets.address()).expect("a free address");
    let client =
        Client::connect(world, &sockets.uri("probe"), &ClientOptions::default()).await.expect("connects");
    (server, client)
}

#[test]
fn every_command_reaches_the_target() {
    on_each_driver(|world| async move {
        let (sockets, probe) = (Sockets::new(), Probe::new(&world));
        let (_server, client) = probe_server(&world, &sockets, &probe, ServerOptions::default()).await;
        assert_eq!(client.info(), probe.info());
        client.flush().await.expect("flush");
        client.write(Lba(8), world.buffer(8).freeze(), true).await.expect("durable write");
        client.write_zeroes(Lba(0), 4096, true, true).await.expect("durable zeroes");
        assert_eq!(probe.flushes.get(), 3, "flush, FUA write, FUA zeroes");
        client.discard(Lba(0), 8).await.expect("a trim that the target cannot take is taken");
        let runs = client.block_status(Lba(0), 64, 16).await.expect("status");
        let expected = [
            BlockStatus { sectors: 8, allocated: false, zero: true },
            BlockStatus { sectors: 56, allocated: true, zero: false },
        ];
        assert_eq!(runs, expected);
        assert_eq!(client.block_status(Lba(0), 64, 1).await.expect("status"), expected[..1]);
        assert_eq!(client.write(Lba(4), world.buffer(8).freeze(), false).await, Err(IoError::Misaligned));
        assert_eq!(client.read(Lba(4096), world.buffer(8)).await.0, Err(IoError::OutOfRange));
    });
}

#[test]
fn the_targets_errors_reach_the_client_and_the_connection_lives_on() {
    on_each_driver(|world| async move {
        for (error, expected) in [
            (IoError::RedundancyLost, IoError::Medium),
            (IoError::NoSpace, IoError::NoSpace),
            (IoError::Unsupported, IoError::Unsupported),
        ] {
            let sockets = Sockets::new();
            let probe = Probe { fail: Some(error), ..Probe::new(&world) };
            let (_server, client) = probe_server(&world, &sockets, &probe, ServerOptions::default()).await;
            for _ in 0..3 {
                assert_eq!(client.read(Lba(0), world.buffer(8)).await.0, Err(expected));
                assert_eq!(client.write(Lba(0), world.buffer(8).freeze(), false).await, Err(expected));
                assert_eq!(client.flush().await, Err(expected));
            }
        }
    });
}

#[test]
fn requests_in_flight_are_bounded() {
    on_each_driver(|world| async move {
        for (requests, bytes, most) in [(4, 1 << 20, 4), (1000, 3 * 4096, 3)] {
            let (sockets, mut probe) = (Sockets::new(), Probe::new(&world));
            probe.delay = Nanos::from_millis(2);
            let options = ServerOptions {
                target: TargetOptions {
                    in_flight_requests_max: requests,
                    in_flight_bytes_max: bytes,
                    ..TargetOptions::default()
                },
                payload_bytes_max: 4096 * 2,
                ..ServerOptions::default()
            };
            let (_server, client) = probe_server(&world, &sockets, &probe, options).await;
            let reads: Vec<_> = (0..32)
                .map(|_| {
                    let (client, buf) = (client.clone(), world.buffer(8));
                    world.spawn(async move { client.read(Lba(0), buf).await.0 })
                })
                .collect();
            for read in reads {
                read.await.expect("reads");
            }
            assert_eq!(probe.most.get(), most, "{requests} requests, {bytes} bytes");
        }
    });
}

#[test]
fn shutting_down_answers_what_is_in_flight() {
    on_each_driver(|world| async move {
        let (sockets, mut probe) = (Sockets::new(), Probe::new(&world));
        probe.delay = Nanos::from_millis(200);
        let (server, client) = probe_server(&world, &sockets, &probe, ServerOptions::default()).await;
        let reads: Vec<_> = (0..8)
            .map(|_| {
                let (client, buf) = (client.clone(), world.buffer(8));
                world.spawn(async move { client.read(Lba(0), buf).await })
            })
            .collect();
        while probe.under_way.get() < 8 {
            world.sleep(Nanos::from_millis(1)).await;
        }
        server.shut_down().await;
        assert_eq!((probe.under_way.get(), server.connection_count()), (0, 0));
        for read in reads {
            let (result, buf) = read.await;
            result.expect("an answer");
            assert!(buf.as_slice().iter().all(|&byte| byte == 0x5a));
        }
        assert!(matches!(client.flush().await, Err(IoError::Gone)), "later requests find it gone");
        let again = Client::connect(&world, &sockets.uri("probe"), &ClientOptions::default()).await;
        assert!(matches!(again, Err(ClientError::Connect { .. })), "nobody listens any more");
    });
}

#[test]
fn exports_come_and_go() {
    on_each_driver(|world| async move {
        let sockets = Sockets::new();
        let server = server(&world, &sockets, "one", ServerOptions::default());
        let two = ExportOptions {
            description: "spare".into(),
            read_only: true,
            rotational: true,
            ..ExportOptions::named("two")
        };
        server.add_export(two.clone(), ram(&world, ByteCount::mib(1))).expect("a free name");
        let again = server.add_export(two, ram(&world, ByteCount::mib(1)));
        assert!(matches!(again, Err(ServerError::Target(TargetError::NameTaken { .. }))));
        let bad = server.add_export(ExportOptions::named("a\0b"), ram(&world, ByteCount::mib(1)));
        assert!(matches!(bad, Err(ServerError::BadText { .. })));

        let address = sockets.uri("").address;
        let names = |listed: Vec<_>| -> Vec<String> {
            listed
                .into_iter()
                .map(|e: tier0_nbd::protocol::handshake::ListedExport| e.name + &e.description)
                .collect()
        };
        assert_eq!(names(list(&world, &address).await.expect("a list")), ["one", "twospare"]);

        let options = ClientOptions::default();
        let one = Client::connect(&world, &sockets.uri("one"), &options).await.expect("connects");
        let two = Client::connect(&world, &sockets.uri("two"), &options).await.expect("connects");
        assert!(two.export().features.read_only && two.export().features.rotational);
        assert_eq!(two.write(Lba(0), world.buffer(1).freeze(), false).await, Err(IoError::ReadOnly));
        let refused = Client::connect(&world, &sockets.uri("three"), &options).await.err().expect("refused");
        assert!(matches!(refused, ClientError::Refused(_)), "{refused}");

        assert!(server.remove_export("one") && !server.remove_export("one"));
        while server.connection_count() > 1 {
            world.sleep(Nanos::from_millis(1)).await;
        }
        assert_eq!(one.flush().await, Err(IoError::Gone));
        two.flush().await.expect("the other export is not touched");
    });
}

#[test]
fn an_export_is_replaced_under_its_users_and_withdrawn_after_them() {
    on_each_driver(|world| async move {
        let sockets = Sockets::new();
        let server = server(&world, &sockets, "one", ServerOptions::default());
        let options = ClientOptions::default();
        let early = Client::connect(&world, &sockets.uri("one"), &options).await.expect("connects");
        server
            .replace_export(ExportOptions::named("one"), ram(&world, ByteCount::mib(128)))
            .expect("offered");
        let late = Client::connect(&world, &sockets.uri("one"), &options).await.expect("connects");
        assert_eq!(early.info().sectors, SectorCount::in_bytes(ByteCount::mib(64)));
        assert_eq!(late.info().sectors, SectorCount::in_bytes(ByteCount::mib(128)));
        early.flush().await.expect("it is not touched");
        assert_eq!((server.users_of("one"), server.users_of("two")), (2, 0));
        server.withdraw("one").await;
        assert_eq!(server.users_of("one"), 0);
        assert_eq!(early.flush().await, Err(IoError::Gone));
        assert_eq!(late.flush().await, Err(IoError::Gone));
        assert!(list(&world, &sockets.uri("").address).await.expect("a list").is_empty());
        server.replace_export(ExportOptions::named("one"), ram(&world, ByteCount::mib(1))).expect("offered");
        Client::connect(&world, &sockets.uri("one"), &options).await.expect("connects").close().await;
    });
}

#[test]
fn a_renamed_export_keeps_its_users() {
    on_each_driver(|world| async move {
        let sockets = Sockets::new();
        let server = server(&world, &sockets, "one", ServerOptions::default());
        let options = ClientOptions::default();
        let gone = Client::connect(&world, &sockets.uri("one"), &options).await.expect("connects");
        gone.flush().await.expect("served");
        gone.close().await;
        let early = Client::connect(&world, &sockets.uri("one"), &options).await.expect("connects");
        while server.users_of("one") > 1 {
            world.sleep(Nanos::from_millis(1)).await;
        }
        let renamed = ExportOptions::named("two");
        server.rename_export("one", renamed, ram(&world, ByteCount::mib(64))).expect("offered");
        early.flush().await.expect("it is not touched");
        assert_eq!((server.users_of("one"), server.users_of("two")), (0, 1));
        assert_eq!(server.export_names(), ["two"]);
        let ended: Vec<String> = server.ended_users().into_iter().map(|(name, _)| name).collect();
        assert_eq!(ended, ["two"], "what closed connections asked goes with the name");
        let refused = Client::connect(&world, &sockets.uri("one"), &options).await.err().expect("refused");
        assert!(matches!(refused, ClientError::Refused(_)), "{refused}");
        let late = Client::connect(&world, &sockets.uri("two"), &options).await.expect("connects");
        server.withdraw("two").await;
        assert_eq!(early.flush().await, Err(IoError::Gone), "it is a user of the new name");
        assert_eq!(late.flush().await, Err(IoError::Gone));
    });
}

#[test]
fn tcp_works_as_well() {
    on_each_driver(|world| async move {
        let server: Server<DriveHandle> = Server::new(&world, ServerOptions::default());
        server.add_export(ExportOptions::named("x"), ram(&world, ByteCount::mib(1))).expect("a free name");
        let bound = server
            .listen(&PeerAddress::Tcp("127.0.0.1:0".parse().expect("an address")))
            .expect("a free port");
        let PeerAddress::Tcp(bound) = bound else { panic!("{bound} is no TCP address") };
        let uri: NbdUri = format!("nbd://localhost:{}/x", bound.port()).parse().expect("an address");
        let client = Client::connect(&world, &uri, &ClientOptions::default()).await.expect("connects");
        let (result, buf) = client.read(Lba(0), world.buffer(16)).await;
        result.expect("reads");
        assert!(buf.as_slice().iter().all(|&byte| byte == 0));
        client.close().await;
    });
}

#[test]
fn a_client_says_why_it_cannot_connect() {
    on_each_driver(|world| async move {
        let sockets = Sockets::new();
        let options = ClientOptions { handshake_timeout: Nanos::from_millis(50), ..ClientOptions::default() };
        let connect =
            async |uri: &NbdUri| Client::connect(&world, uri, &options).await.err().expect("an error");
        let nobody = connect(&sockets.uri("x")).await;
        assert!(matches!(nobody, ClientError::Connect { .. }), "{nobody}");
        let tcp = NbdAddress::Tcp { host: "no-such-host.invalid".into(), port: 1 };
        let unknown = connect(&NbdUri { address: tcp, export: String::new() }).await;
        assert!(matches!(unknown, ClientError::Resolve { .. }), "{unknown}");
        let listener = Listener::bind(&world, &sockets.address()).expect("binds");
        let silent = connect(&sockets.uri("x")).await;
        assert!(matches!(silent, ClientError::Timeout(_)), "{silent}");
        let peer = listener.accept().await.expect("it has connected");
        let end = pin!(peer.receive(Vec::with_capacity(1)));
        let closed = select(end, world.sleep(Nanos::from_secs(10))).await;
        assert!(matches!(closed, Either::Left(((Ok(0), _), _))), "its receive kept the connection open");
    });
}

/// The first of two connections was kept for ever when the second one failed, and a server that was waited for until no
/// client used the export waited as long.
#[test]
fn a_client_that_cannot_have_all_its_connections_keeps_none() {
    on_each_driver(|world| async move {
        let sockets = Sockets::new();
        let one = TargetOptions { connections_max: 1, ..TargetOptions::default() };
        let server = server(&world, &sockets, "x", ServerOptions { target: one, ..ServerOptions::default() });
        let two = ClientOptions { connections: 2, ..ClientOptions::default() };
        let error = Client::connect(&world, &sockets.uri("x"), &two).await.err().expect("one has no place");
        assert!(matches!(error, ClientError::Closed | ClientError::Socket(_)), "{error}");
        let deadline = world.now() + Nanos::from_secs(10);
        while server.connection_count() > 0 {
            assert!(world.now() < deadline, "the other one is kept");
            world.sleep(Nanos::from_millis(1)).await;
        }
    });
}

#[test]
fn a_server_says_why_it_cannot_listen() {
    on_each_driver(|world| async move {
        let sockets = Sockets::new();
        let first = server(&world, &sockets, "a", ServerOptions::default());
        let error = first.listen(&sockets.address()).expect_err("the address is taken");
        assert!(error.to_string().contains("choose another address"), "{error}");
    });
}
