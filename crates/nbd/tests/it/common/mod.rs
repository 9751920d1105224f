//! What the tests share: a server on a RAM drive, in this thread's world or in a thread of its own.

use std::path::PathBuf;
use std::process::Command;
use std::thread::JoinHandle;

use tier0_drive::{DriveHandle, RamMedium};
use tier0_nbd::protocol::{NbdAddress, NbdUri};
use tier0_nbd::server::{ExportOptions, Server, ServerOptions};
use tier0_units::ByteCount;
use tier0_world::net::PeerAddress;
use tier0_world::real::Backend;
use tier0_world::{RealOptions, RealRuntime, World};

/// Runs `test` on each driver of the real world that this machine allows.
pub(crate) fn on_each_driver<F: Future<Output = ()> + 'static>(test: impl Fn(World) -> F) {
    for backend in [Backend::Uring, Backend::Threads] {
        match RealRuntime::new(&RealOptions { backend, seed: 1, ..RealOptions::default() }) {
            Ok(runtime) => runtime.run(test(runtime.world().clone())),
            Err(error) => eprintln!("skipped {backend:?}: {error}"),
        }
    }
}

/// A directory for sockets, and the addresses in it.
pub(crate) struct Sockets(tempfile::TempDir);

impl Sockets {
    pub(crate) fn new() -> Sockets {
        Sockets(tempfile::tempdir().expect("a temporary directory"))
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.0.path().join("nbd")
    }

    pub(crate) fn address(&self) -> PeerAddress {
        PeerAddress::Unix(self.path())
    }

    pub(crate) fn uri(&self, export: &str) -> NbdUri {
        NbdUri { address: NbdAddress::Unix(self.path()), export: export.to_owned() }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// A RAM drive in `world`.
pub(crate) fn ram(world: &World, size: ByteCount) -> DriveHandle {
    DriveHandle::new(RamMedium::new("ram", size).expect("memory").open(world))
}

/// A server in `world` that listens at `sockets` and offers a RAM drive called `export`.
pub(crate) fn server(
    world: &World,
    sockets: &Sockets,
    export: &str,
    options: ServerOptions,
) -> Server<DriveHandle> {
    let server = Server::new(world, options);
    server.add_export(ExportOptions::named(export), ram(world, ByteCount::mib(64))).expect("a free name");
    server.listen(&sockets.address()).expect("a free address");
    server
}

/// A server in a thread of its own, for tests that wait for other programs. It stops when dropped.
pub(crate) struct ServerThread {
    stop: Option<tier0_world::sync::oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ServerThread {
    /// Runs a server that `setup` fills with exports.
    #[expect(clippy::disallowed_methods, reason = "the test waits for programs in its own thread")]
    pub(crate) fn start(
        sockets: &Sockets,
        setup: impl FnOnce(&World, &Server<DriveHandle>) + Send + 'static,
    ) -> ServerThread {
        let address = sockets.address();
        let (stop, stopped) = tier0_world::sync::oneshot::channel();
        let (ready, started) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = RealRuntime::new(&RealOptions::default()).expect("a real world");
            let world = runtime.world().clone();
            let server = Server::new(&world, ServerOptions::default());
            setup(&world, &server);
            server.listen(&address).expect("a free address");
            ready.send(()).expect("the test waits");
            runtime.run(async move {
                // The test may have failed and be gone, which is a reason to stop as well.
                let _ = stopped.await;
                server.shut_down().await;
            });
        });
        started.recv().expect("the server starts");
        ServerThread { stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for ServerThread {
    fn drop(&mut self) {
        let _ = self.stop.take().expect("dropped once").send(());
        let ended = self.thread.take().expect("dropped once").join();
        assert!(ended.is_ok() || std::thread::panicking(), "the server's thread panicked");
    }
}

/// The output of a program, or `None`, said on stderr, where it is not installed.
pub(crate) fn run(program: &str, arguments: &[&str]) -> Option<String> {
    let output = match Command::new(program).args(arguments).output() {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("skipped: {program} is not installed");
            return None;
        }
        Err(error) => panic!("{program} cannot be run: {error}"),
    };
    let text = [&output.stdout[..], &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert!(output.status.success(), "{program} {arguments:?} failed:\n{}{}", text[0], text[1]);
    Some(text.concat())
}
