//! The real world's two drivers, through the same tests: files, sockets, timers, other threads.

use std::rc::Rc;

use tier0_units::Nanos;
use tier0_world::net::{Listener, PeerAddress, Socket};
use tier0_world::real::{Backend, BlockFile, Submission, keep_awake};
use tier0_world::sync::mailbox;
use tier0_world::{
    BufMut, Completion, Gather, IoError, Payload, PayloadWidth, RealOptions, RealRuntime, World,
};

/// Runs `test` on each driver that this machine allows.
fn on_each_driver<F: Future<Output = ()> + 'static>(test: impl Fn(World) -> F) {
    for backend in [Backend::Uring, Backend::Threads] {
        match RealRuntime::new(&RealOptions { backend, seed: 1, ..RealOptions::default() }) {
            Ok(runtime) => runtime.run(test(runtime.world().clone())),
            Err(error) if backend == Backend::Uring => {
                eprintln!("skipped: io_uring is not to be had here: {error}")
            }
            Err(error) => panic!("epoll and threads must work everywhere: {error}"),
        }
    }
}

/// A world that is dropped leaves to the kernel, or to its threads, what they were given: a write that was on its way came
/// after one that the next world made to the same place.
#[test]
fn what_was_given_to_the_kernel_has_ended_when_a_world_has_settled() {
    for backend in [Backend::Uring, Backend::Threads] {
        let Ok(runtime) = RealRuntime::new(&RealOptions { backend, seed: 1, ..RealOptions::default() })
        else {
            continue;
        };
        let file = tempfile::tempfile().expect("a temporary file");
        let there = file.try_clone().expect("a descriptor");
        let (pieces, piece) = (64u64, 1u64 << 20);
        let world = runtime.world().clone();
        runtime.run(async move {
            let file = BlockFile::new(file.into(), Submission::Direct);
            for number in 0..pieces {
                let mut buf = world.buffer((piece / 512) as u32);
                buf.as_mut_slice().fill(7);
                let (completion, pending) = world.completion();
                file.write_at(number * piece, buf.freeze(), true, completion);
                world.spawn(async move { drop(pending.await) }).detach();
            }
        });
        assert_eq!(runtime.settle(Nanos::from_secs(60)), 0);
        let mut content = Vec::new();
        std::io::Read::read_to_end(&mut &there, &mut content).expect("it can be read");
        assert!(content.len() as u64 == pieces * piece && content.iter().all(|byte| *byte == 7));
    }
}

#[test]
fn files_are_read_written_flushed_and_deallocated() {
    for submission in [Submission::Direct, Submission::Apart] {
        a_file_is_read_written_flushed_and_deallocated(submission);
    }
}

fn a_file_is_read_written_flushed_and_deallocated(submission: Submission) {
    on_each_driver(move |world| async move {
        let file = tempfile::tempfile().expect("a temporary file");
        file.set_len(1 << 20).expect("a file grows");
        let file = BlockFile::new(file.into(), submission);
        let mut buf = world.buffer(16);
        buf.as_mut_slice().fill(7);
        let nines = BufMut::copy_from(&[9; 512], PayloadWidth::REAL).freeze();
        ended(&world, |completion| file.write_at(8192, buf.freeze(), false, completion))
            .await
            .0
            .expect("write");
        ended(&world, |completion| file.write_at(0, nines, true, completion)).await.0.expect("write");
        ended(&world, |completion| file.sync_data(completion)).await.0.expect("flush");
        let read = async |offset, sectors| {
            let buf = world.buffer(sectors);
            ended(&world, |completion| file.read_at(offset, buf, completion)).await
        };
        let (result, payload) = read(8192 - 512, 2).await;
        result.expect("read");
        let buf = payload.into_read();
        assert_eq!((buf.as_slice()[511], buf.as_slice()[512]), (0, 7));
        ended(&world, |completion| file.deallocate(8192, 4096, completion)).await.0.expect("deallocate");
        let (result, payload) = read(8192, 16).await;
        result.expect("read");
        let buf = payload.into_read();
        assert_eq!((buf.as_slice()[0], buf.as_slice()[4095], buf.as_slice()[4096]), (0, 0, 7));
        let (result, payload) = read((1 << 20) - 512, 2).await;
        assert_eq!((result, payload.into_read().sectors()), (Err(IoError::OutOfRange), 2));
    });
}

/// Starts an operation, and waits for it.
async fn ended(world: &World, start: impl FnOnce(Completion)) -> (Result<(), IoError>, Payload) {
    let (completion, pending) = world.completion();
    start(completion);
    let (outcome, payload) = pending.await;
    (outcome.map(|_| ()), payload)
}

#[test]
fn sockets_carry_more_than_their_buffers_hold() {
    on_each_driver(|world| async move {
        let unix = || PeerAddress::Unix(tempfile::tempdir().expect("a directory").keep().join("socket"));
        let tcp = || PeerAddress::Tcp("127.0.0.1:0".parse().expect("an address"));
        // One large part, and many that unix sockets are sent in pieces.
        for (address, parts, sectors) in
            [(unix(), 1, 8192), (unix(), 512, 16), (tcp(), 1, 8192), (tcp(), 512, 16)]
        {
            let listener = Listener::bind(&world, &address).expect("bind");
            let client = Socket::connect(&world, listener.address()).expect("connect");
            let server = listener.accept().await.expect("accept");
            let mut expected = Vec::new();
            let mut gather = Box::new(Gather::new());
            for part in 0..parts {
                let mut buf = BufMut::zeroed(sectors, PayloadWidth::REAL);
                buf.as_mut_slice().iter_mut().zip(0..).for_each(|(byte, at)| *byte = (part + at / 97) as u8);
                gather.push_header(b"head");
                expected.extend_from_slice(b"head");
                expected.extend_from_slice(buf.as_slice());
                gather.push_data(buf.freeze());
            }
            // It comes back as replies do whose requests came in large messages.
            let echo = world.spawn(async move {
                loop {
                    let (result, bytes) = server.receive(Vec::with_capacity(65536)).await;
                    let mut gather = Box::new(Gather::new());
                    for part in bytes.chunks(8192) {
                        gather.push_header(&part[..part.len() % 512]);
                        let rest = &part[part.len() % 512..];
                        gather.push_data(BufMut::copy_from(rest, PayloadWidth::REAL).freeze());
                    }
                    if result.expect("receive") == 0 {
                        return server.shutdown();
                    }
                    server.send(gather).await.0.expect("send");
                }
            });
            let sending = client.clone();
            let sender = world.spawn(async move {
                sending.send(gather).await.0.expect("send");
            });
            let mut received = Vec::new();
            while received.len() < expected.len() {
                received.reserve(65536);
                let result;
                (result, received) = client.receive(received).await;
                assert_ne!(result.expect("receive"), 0);
            }
            client.shutdown();
            echo.await;
            sender.await;
            assert!(received == expected, "{address}, {parts} parts");
        }
    });
}

#[test]
fn a_busy_unix_socket_is_refused_and_a_dead_one_replaced() {
    on_each_driver(|world| async move {
        let directory = tempfile::tempdir().expect("a directory");
        let address = PeerAddress::Unix(directory.path().join("socket"));
        drop(std::os::unix::net::UnixListener::bind(directory.path().join("socket")).expect("bind"));
        let first = Listener::bind(&world, &address).expect("a dead socket is replaced");
        let found = std::fs::metadata(directory.path().join("socket")).expect("a socket");
        let mode = std::os::unix::fs::PermissionsExt::mode(&found.permissions());
        assert_eq!(mode & 0o777, 0o600, "others could connect before the socket is given to anybody");
        let second = Listener::bind(&world, &address).err().expect("a live socket is refused");
        assert_eq!(second.kind(), std::io::ErrorKind::AddrInUse);
        drop(first);
        assert!(!directory.path().join("socket").exists());
    });
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the owner is another process's thread, so to speak")]
fn a_socket_whose_owner_is_about_to_go_is_waited_for() {
    on_each_driver(|world| async move {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("socket");
        let dying = std::os::unix::net::UnixListener::bind(&path).expect("bind");
        let owner = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(100));
            drop(dying);
        });
        Listener::bind(&world, &PeerAddress::Unix(path)).expect("it is free by and by");
        owner.join().expect("the owner is gone");
    });
}

#[test]
fn an_idle_world_sleeps_until_its_timer() {
    on_each_driver(|world| async move {
        let before = world.now();
        let cpu_before = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        world.sleep(Nanos::from_millis(200)).await;
        let cpu_after = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        assert!(world.now() - before >= Nanos::from_millis(200));
        let cpu_ns =
            (cpu_after.tv_sec - cpu_before.tv_sec) * 1_000_000_000 + cpu_after.tv_nsec - cpu_before.tv_nsec;
        assert!(cpu_ns < 100_000_000, "a sleeping world must not spin: {cpu_ns} ns of CPU in 200 ms");
    });
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the test is about other threads")]
fn other_threads_wake_a_sleeping_world() {
    on_each_driver(|world| async move {
        let (sender, mut receiver) = mailbox();
        let remote = world.remote();
        let thread = std::thread::spawn(move || {
            for n in 0..1000 {
                sender.send(n);
                if n % 100 == 0 {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
            }
            remote.spawn(async { 42 })
        });
        for n in 0..1000 {
            assert_eq!(receiver.receive().await, Some(n));
        }
        assert_eq!(receiver.receive().await, None);
        let task = thread.join().expect("the thread ends");
        assert_eq!(task.await, 42);
    });
}

#[test]
fn a_dropped_future_leaves_its_buffer_to_the_kernel() {
    on_each_driver(|world| async move {
        let (a, b) = Socket::pair(&world).expect("a pair");
        let waiting = world.spawn({
            let a = a.clone();
            async move { a.receive(Vec::with_capacity(16)).await.1 }
        });
        world.sleep(Nanos::from_millis(1)).await;
        drop(waiting);
        assert_eq!(world.pending_count(), 1, "the receive is still under way");
        let mut gather = Box::new(Gather::new());
        gather.push_header(b"late");
        b.send(gather).await.0.expect("send");
        world.sleep(Nanos::from_millis(20)).await;
        assert_eq!(world.pending_count(), 0);
    });
}

#[test]
fn a_dropped_listener_gives_its_address_back_although_an_accept_was_under_way() {
    on_each_driver(|world| async move {
        let any = PeerAddress::Tcp("127.0.0.1:0".parse().expect("an address"));
        let listener = Rc::new(Listener::bind(&world, &any).expect("bind"));
        let address = listener.address().clone();
        let accepting = world.spawn({
            let listener = listener.clone();
            async move { listener.accept().await.is_ok() }
        });
        world.sleep(Nanos::from_millis(1)).await;
        drop((accepting, listener));
        world.sleep(Nanos::from_millis(20)).await;
        assert!(Socket::connect(&world, &address).is_err(), "nobody listens any more");
        Listener::bind(&world, &address).expect("the address is free again");
    });
}

#[test]
fn processors_are_kept_awake_only_while_waits_are_short() {
    if let Err(error) = keep_awake() {
        return eprintln!("skipped: processors cannot be kept awake here: {error}");
    }
    assert!(!are_kept_awake(), "given back with the file");
    let options = RealOptions { keep_awake: true, ..RealOptions::default() };
    let runtime = RealRuntime::new(&options).expect("a real world");
    let world = runtime.world().clone();
    runtime.run(async move {
        while !are_kept_awake() {
            for _ in 0..100 {
                world.sleep(Nanos::from_micros(5)).await;
            }
        }
        while are_kept_awake() {
            world.sleep(Nanos::from_millis(50)).await;
        }
    });
}

/// Whether this process has asked for it.
fn are_kept_awake() -> bool {
    let descriptors = std::fs::read_dir("/proc/self/fd").expect("its own descriptors");
    let mut targets = descriptors.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    targets.any(|target| target.as_os_str() == "/dev/cpu_dma_latency")
}
