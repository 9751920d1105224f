use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;

use tier0_units::Nanos;

use super::{Listener, Mortality, NetworkOptions, PeerAddress, Socket};
use crate::{Gather, IoError, PayloadWidth, VirtualRuntime, World};

fn in_virtual_time<F: Future<Output = ()> + 'static>(seed: u64, test: impl FnOnce(World) -> F) {
    let runtime = VirtualRuntime::new(seed, PayloadWidth::REAL);
    runtime.run(test(runtime.world().clone()));
}

fn with(world: &World, options: NetworkOptions) {
    world.network().expect("a virtual world has a network").set_options(options);
}

fn list(bytes: &[u8]) -> Box<Gather> {
    let mut gather = Box::new(Gather::new());
    gather.push_header(bytes);
    gather
}

/// Everything until the end of the stream or of the connection.
async fn rest(socket: &Socket) -> (Vec<u8>, Option<IoError>) {
    let mut bytes = Vec::new();
    loop {
        bytes.reserve(5_000);
        let result;
        (result, bytes) = socket.receive(bytes).await;
        match result {
            Ok(0) => return (bytes, None),
            Ok(_) => {}
            Err(error) => return (bytes, Some(error)),
        }
    }
}

fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|index| (index * 7 % 251) as u8).collect()
}

#[test]
fn bytes_take_their_time_and_keep_their_order() {
    in_virtual_time(1, |world| async move {
        let options = NetworkOptions {
            latency: Nanos::from_millis(5),
            jitter: Nanos::from_millis(3),
            bytes_per_second: 1_000_000,
            segment_bytes_max: 100,
            ..NetworkOptions::default()
        };
        with(&world, options);
        let (near, far) = Socket::pair(&world).expect("a pair");
        let sent = pattern(20_000);
        near.send(list(&sent)).await.0.expect("there is room");
        assert_eq!(world.now(), Nanos::ZERO, "the sender does not wait for the receiver");
        near.shutdown();
        assert_eq!(rest(&far).await, (sent, None));
        let took = world.now();
        assert!(
            (Nanos::from_millis(25)..Nanos::from_millis(29)).contains(&took),
            "{took}: 20 ms, and latency"
        );
    });
}

#[test]
fn the_sender_of_more_than_there_is_room_for_waits_until_it_is_read() {
    in_virtual_time(2, |world| async move {
        with(&world, NetworkOptions { buffer_bytes: 1000, ..NetworkOptions::default() });
        let (near, far) = Socket::pair(&world).expect("a pair");
        let taken = Rc::new(RefCell::new(0));
        let sending =
            world.spawn({
                let (near, taken) = (near.clone(), taken.clone());
                async move {
                    near.send_noting(list(&pattern(2_500)), |bytes| *taken.borrow_mut() += bytes).await.0
                }
            });
        world.sleep(Nanos::from_secs(1)).await;
        assert_eq!(*taken.borrow(), 1000);
        let (result, bytes) = far.receive(Vec::with_capacity(400)).await;
        assert_eq!((result, bytes), (Ok(400), pattern(400)));
        world.sleep(Nanos::from_secs(1)).await;
        assert_eq!(*taken.borrow(), 1400);
        far.shutdown();
        assert_eq!(sending.await, Err(IoError::Os(libc::EPIPE)), "nobody will read the rest");
    });
}

#[test]
fn a_connection_dies_at_any_byte() {
    let lengths = Rc::new(RefCell::new(std::collections::BTreeSet::new()));
    for seed in 0..50 {
        let lengths = lengths.clone();
        in_virtual_time(seed, |world| async move {
            let mortality = Mortality { share: 1.0, bytes_mean: 1000.0, silent: 0.0 };
            with(&world, NetworkOptions { mortality: Some(mortality), ..NetworkOptions::default() });
            let (near, far) = Socket::pair(&world).expect("a pair");
            let sent = pattern(200_000);
            let sending = world.spawn({
                let sent = sent.clone();
                async move {
                    near.send(list(&sent)).await.0?;
                    near.receive(Vec::with_capacity(1)).await.0
                }
            });
            let (arrived, error) = rest(&far).await;
            assert_eq!(error, Some(IoError::Os(libc::ECONNRESET)));
            assert!(sent.starts_with(&arrived) && arrived.len() < sent.len(), "{} bytes", arrived.len());
            assert_eq!(sending.await, Err(IoError::Os(libc::ECONNRESET)));
            lengths.borrow_mut().insert(arrived.len() % 28);
        });
    }
    assert!(lengths.borrow().len() > 14, "at any byte of a request: {lengths:?}");
}

#[test]
fn a_peer_that_falls_silent_is_given_up_after_a_while() {
    in_virtual_time(3, |world| async move {
        let mortality = Mortality { share: 1.0, bytes_mean: 10.0, silent: 1.0 };
        with(&world, NetworkOptions { mortality: Some(mortality), ..NetworkOptions::default() });
        let (near, far) = Socket::pair(&world).expect("a pair");
        near.send(list(&pattern(1_000))).await.0.expect("nobody knows yet");
        let (_, error) = rest(&far).await;
        assert_eq!(error, Some(IoError::Os(libc::ETIMEDOUT)));
        assert!(world.now() >= NetworkOptions::default().keepalive);
        assert_eq!(near.receive(Vec::with_capacity(1)).await.0, Err(IoError::Os(libc::ETIMEDOUT)));
    });
}

#[test]
fn listeners_are_found_by_their_address() {
    in_virtual_time(4, |world| async move {
        let path = PeerAddress::Unix(PathBuf::from("socket"));
        let refused = Socket::connect(&world, &path).err().expect("nobody listens");
        assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
        let listener = Listener::bind(&world, &path).expect("a free address");
        let taken = Listener::bind(&world, &path).err().expect("it is taken");
        assert_eq!(taken.kind(), std::io::ErrorKind::AddrInUse);
        let client = Socket::connect(&world, &path).expect("somebody listens");
        let server = listener.accept().await.expect("a connection");
        client.send(list(b"hello")).await.0.expect("there is room");
        drop(client);
        assert_eq!(rest(&server).await, (b"hello".to_vec(), None), "who is dropped closes");
        drop(listener);
        assert!(Socket::connect(&world, &path).is_err());
        let any = PeerAddress::Tcp("127.0.0.1:0".parse().expect("an address"));
        let first = Listener::bind(&world, &any).expect("a free port");
        let second = Listener::bind(&world, &any).expect("a free port");
        assert_ne!(first.address(), second.address());
    });
}
