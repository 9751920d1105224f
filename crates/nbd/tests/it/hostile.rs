//! Clients that lie, stall, flood or vanish: only their own connection ends, and a well-behaved neighbour is served
//! all the while.

use crate::common::{Sockets, on_each_driver, server};
use tier0_block::BlockTarget;
use tier0_nbd::client::{Client, ClientOptions};
use tier0_nbd::protocol::handshake::{ClientGoal, ClientHandshake, ClientStep};
use tier0_nbd::protocol::transmission::{Request, RequestKind};
use tier0_nbd::server::{ServerOptions, TargetOptions};
use tier0_units::{Lba, Nanos};
use tier0_world::net::{PeerAddress, Socket};
use tier0_world::{Gather, World};

/// A connection on which anything can be sent.
pub(crate) struct Raw {
    socket: Socket,
}

impl Raw {
    fn connect(world: &World, sockets: &Sockets) -> Raw {
        Raw::connect_to(world, &sockets.address())
    }

    fn connect_to(world: &World, address: &PeerAddress) -> Raw {
        Raw { socket: Socket::connect(world, address).expect("connects") }
    }

    pub(crate) async fn send(&self, bytes: &[u8]) {
        let mut gather = Box::new(Gather::new());
        gather.push_header(bytes);
        // The server may have closed already; that it does is what the tests are about.
        let _ = self.socket.send(gather).await;
    }

    /// Everything until the server closes.
    async fn rest(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        loop {
            bytes.reserve(65536);
            let result;
            (result, bytes) = self.socket.receive(bytes).await;
            if result.unwrap_or(0) == 0 {
                return bytes;
            }
        }
    }

    /// An honest handshake.
    async fn negotiate(world: &World, sockets: &Sockets) -> Raw {
        Raw::negotiate_at(world, &sockets.address()).await
    }

    /// The same with the server at `address`.
    pub(crate) async fn negotiate_at(world: &World, address: &PeerAddress) -> Raw {
        Raw::connect_to(world, address).negotiated().await
    }

    /// The same on a connection that was made.
    pub(crate) async fn negotiate_on(socket: Socket) -> Raw {
        Raw { socket }.negotiated().await
    }

    async fn negotiated(self) -> Raw {
        let raw = self;
        let goal = ClientGoal::Go { export: String::new(), structured_replies: true, block_status: true };
        let mut handshake = ClientHandshake::new(goal);
        let (mut received, mut out) = (Vec::with_capacity(1 << 16), Vec::new());
        loop {
            let (used, step) = handshake.advance(&received, &mut out).expect("an honest server");
            received.drain(..used);
            raw.send(&std::mem::take(&mut out)).await;
            match step {
                ClientStep::Continue => {}
                ClientStep::Ready(_) => return raw,
                ClientStep::NeedMore => received = raw.socket.receive(received).await.1,
                step => panic!("{step:?}"),
            }
        }
    }
}

fn small() -> ServerOptions {
    ServerOptions {
        target: TargetOptions {
            in_flight_requests_max: 16,
            in_flight_bytes_max: 1 << 20,
            drain_timeout: Nanos::from_millis(100),
            ..TargetOptions::default()
        },
        payload_bytes_max: 1 << 20,
        ..ServerOptions::default()
    }
}

#[test]
fn malformed_bytes_close_the_connection_and_nothing_else() {
    on_each_driver(|world| async move {
        let sockets = Sockets::new();
        let server = server(&world, &sockets, "", small());
        let neighbour =
            Client::connect(&world, &sockets.uri(""), &ClientOptions::default()).await.expect("connects");
        for bytes in
            [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 100], &[0, 0, 0, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]]
        {
            let raw = Raw::connect(&world, &sockets);
            raw.send(bytes).await;
            assert!(raw.rest().await.starts_with(b"NBDMAGICIHAVEOPT"), "greets, then closes");
            neighbour.flush().await.expect("the neighbour is served");
        }
        let long_write = Request::new(RequestKind::Write, 1, 0, u32::MAX).to_wire();
        let mut after_disconnect = Request::new(RequestKind::Disconnect, 1, 0, 0).to_wire().to_vec();
        after_disconnect.push(0);
        for bytes in [&b"no request at all"[..], &long_write, &after_disconnect] {
            let raw = Raw::negotiate(&world, &sockets).await;
            raw.send(bytes).await;
            assert_eq!(raw.rest().await, [], "closes without a word");
            neighbour.flush().await.expect("the neighbour is served");
        }
        while server.connection_count() > 1 {
            world.sleep(Nanos::from_millis(1)).await;
        }
    });
}

#[test]
fn a_silent_client_is_dropped_after_the_handshake_timeout() {
    on_each_driver(|world| async move {
        let sockets = Sockets::new();
        let options = ServerOptions { handshake_timeout: Nanos::from_millis(100), ..small() };
        let server = server(&world, &sockets, "", options);
        let silent = Raw::connect(&world, &sockets);
        let slow = Raw::connect(&world, &sockets);
        slow.send(&[0, 0]).await;
        assert_eq!(silent.rest().await.len(), 18, "the greeting and the end");
        assert_eq!(slow.rest().await.len(), 18);
        assert_eq!(server.connection_count(), 0);
    });
}

#[test]
fn a_client_that_vanishes_in_the_middle_of_a_write_leaves_nothing_behind() {
    on_each_driver(|world| async move {
        let sockets = Sockets::new();
        let server = server(&world, &sockets, "", small());
        for payload_bytes in [0, 100, 300_000] {
            let raw = Raw::negotiate(&world, &sockets).await;
            let mut bytes = Request::new(RequestKind::Write, 1, 0, 1 << 20).to_wire().to_vec();
            bytes.resize(28 + payload_bytes, 7);
            raw.send(&bytes).await;
            world.sleep(Nanos::from_millis(5)).await;
            raw.socket.shutdown();
            while server.connection_count() > 0 {
                world.sleep(Nanos::from_millis(1)).await;
            }
        }
        let client =
            Client::connect(&world, &sockets.uri(""), &ClientOptions::default()).await.expect("connects");
        let (result, buf) = client.read(Lba(0), world.buffer(2048)).await;
        result.expect("reads");
        let pieces = ServerOptions::default().piece_bytes as usize;
        let whole = 300_000 / pieces * pieces;
        assert!(buf.as_slice()[..whole].iter().all(|&byte| byte == 7), "what was whole may be there");
        assert!(buf.as_slice()[whole..].iter().all(|&byte| byte == 0), "half a piece is none");
    });
}

#[test]
fn a_client_that_takes_no_replies_waits_for_itself_alone() {
    on_each_driver(|world| async move {
        let sockets = Sockets::new();
        let server = server(&world, &sockets, "", small());
        let greedy = Raw::negotiate(&world, &sockets).await;
        let read = Request::new(RequestKind::Read, 1, 0, 1 << 20).to_wire();
        let flood = read.repeat(1000);
        let sending = world.spawn({
            let socket = greedy.socket.clone();
            async move {
                let mut gather = Box::new(Gather::new());
                gather.push_header(&flood);
                let _ = socket.send(gather).await;
            }
        });
        let neighbour =
            Client::connect(&world, &sockets.uri(""), &ClientOptions::default()).await.expect("connects");
        for _ in 0..100 {
            neighbour.read(Lba(0), world.buffer(16)).await.0.expect("the neighbour is served");
        }
        // Shutting down cuts it off after the drain timeout.
        drop(neighbour);
        server.shut_down().await;
        assert_eq!(server.connection_count(), 0);
        drop(sending);
    });
}

#[test]
fn connections_beyond_the_limit_are_closed() {
    on_each_driver(|world| async move {
        let sockets = Sockets::new();
        let target = TargetOptions { connections_max: 2, ..small().target };
        let options = ServerOptions { target, ..small() };
        let _server = server(&world, &sockets, "", options);
        let first =
            Client::connect(&world, &sockets.uri(""), &ClientOptions::default()).await.expect("connects");
        let second =
            Client::connect(&world, &sockets.uri(""), &ClientOptions::default()).await.expect("connects");
        let third = Raw::connect(&world, &sockets);
        assert_eq!(third.rest().await, [], "not even a greeting");
        first.flush().await.expect("served");
        second.flush().await.expect("served");
    });
}

#[test]
fn refused_requests_are_answered_and_their_payload_is_skipped() {
    on_each_driver(|world| async move {
        let sockets = Sockets::new();
        let _server = server(&world, &sockets, "", small());
        let raw = Raw::negotiate(&world, &sockets).await;
        let mut bytes = Vec::new();
        // Past the end, unaligned, an unknown flag, an unknown command; then goodbye.
        for request in [
            Request::new(RequestKind::Write, 1, 1 << 40, 200_000),
            Request::new(RequestKind::Write, 2, 1, 100),
            Request { flags: 1 << 9, ..Request::new(RequestKind::Write, 3, 0, 512) },
        ] {
            bytes.extend(request.to_wire());
            bytes.resize(bytes.len() + request.length as usize, 0x25);
        }
        bytes.extend(Request { kind: 99, ..Request::new(RequestKind::Read, 4, 0, 0) }.to_wire());
        bytes.extend(Request::new(RequestKind::Disconnect, 5, 0, 0).to_wire());
        raw.send(&bytes).await;
        let replies = raw.rest().await;
        let mut errors = Vec::new();
        let mut rest = &replies[..];
        while !rest.is_empty() {
            assert_eq!(rest[..8], [0x66, 0x8e, 0x33, 0xef, 0, 1, 0x80, 1], "an error chunk, and the last");
            let length = u32::from_be_bytes(rest[16..20].try_into().expect("four bytes")) as usize;
            errors.push((rest[15], rest[23]));
            rest = &rest[20 + length..];
        }
        assert_eq!(errors, [(1, 28), (2, 22), (3, 22), (4, 22)], "ENOSPC, then EINVAL for all else");
    });
}
