//! Servers under test: started, waited for, and ended with the benchmark.

use std::io::Read;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::clock;
use crate::error::BenchError;

/// How long a server may take to serve; creating a RAM array and reading its drives takes far less.
const START_WAIT: Duration = Duration::from_secs(20);
/// What every NBD server says first.
const GREETING: &[u8; 8] = b"NBDMAGIC";
const LOOK: Duration = Duration::from_millis(20);

/// Where a server listens.
#[derive(Clone, Debug)]
pub(crate) enum Address {
    Unix(PathBuf),
    /// A port of this machine's.
    Tcp(u16),
}

impl Address {
    /// A port that no process listens on at the moment.
    pub(crate) fn free_port() -> Result<Address, BenchError> {
        let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
        Ok(Address::Tcp(bound.map_err(BenchError::system("no port is to be had"))?.port()))
    }

    /// Whether an NBD server greets there. That one can connect says nothing yet: the socket of a process that was killed
    /// lives on until the kernel has ended its io_uring.
    fn greets(&self) -> bool {
        let mut greeting = [0; GREETING.len()];
        let heard = match self {
            Address::Unix(path) => UnixStream::connect(path).and_then(|mut stream| {
                stream.set_read_timeout(Some(START_WAIT))?;
                stream.read_exact(&mut greeting)
            }),
            Address::Tcp(port) => TcpStream::connect((Ipv4Addr::LOCALHOST, *port)).and_then(|mut stream| {
                stream.set_read_timeout(Some(START_WAIT))?;
                stream.read_exact(&mut greeting)
            }),
        };
        heard.is_ok() && &greeting == GREETING
    }
}

/// A running server; dropping it ends it.
pub(crate) struct Server {
    name: &'static str,
    child: Child,
    address: Address,
    export: &'static str,
}

impl Server {
    /// Starts `command` and waits until it greets on `address`. Its words are not shown: some complain of a client that
    /// only looks whether they serve already.
    pub(crate) fn start(
        name: &'static str,
        command: &mut Command,
        address: &Address,
        export: &'static str,
    ) -> Result<Server, BenchError> {
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let child = child.map_err(BenchError::system(format!("{name} cannot be started")))?;
        let mut server = Server { name, child, address: address.clone(), export };
        let until = clock::wall_s() + START_WAIT.as_secs_f64();
        while !address.greets() {
            if let Ok(Some(status)) = server.child.try_wait() {
                return Err(BenchError::Failed(format!("{name} ended at once: {status}")));
            }
            if clock::wall_s() > until {
                return Err(BenchError::Failed(format!("{name} does not serve on {address:?}")));
            }
            clock::pause(LOOK);
        }
        Ok(server)
    }

    /// Its name in tables.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// The NBD address of its export.
    pub(crate) fn uri(&self) -> String {
        match &self.address {
            Address::Unix(path) => format!("nbd+unix:///{}?socket={}", self.export, path.display()),
            Address::Tcp(port) => format!("nbd://127.0.0.1:{port}/{}", self.export),
        }
    }

    /// Seconds of processor time that it has used.
    pub(crate) fn cpu_s(&self) -> Result<f64, BenchError> {
        clock::process_s(self.child.id()).ok_or_else(|| {
            BenchError::Failed(format!("{} has ended; start it by hand to see why", self.name))
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself; both calls then fail, and nothing is left to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Builds tier0 as users do, and gives its path.
pub(crate) fn build_tier0() -> Result<PathBuf, BenchError> {
    build_in("release", &[])
}

/// Builds tier0 so that it counts nothing, in a directory of its own.
pub(crate) fn build_silent() -> Result<PathBuf, BenchError> {
    build_in(
        "silent",
        &["--features", "tier0-stats/silent", "--config", "profile.silent.inherits=\"release\""],
    )
}

fn build_in(profile: &str, more: &[&str]) -> Result<PathBuf, BenchError> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let profile_argument = format!("--profile={profile}");
    let own = ["build", &profile_argument, "--quiet", "--package", "tier0"];
    let status = Command::new(cargo).args(own).args(more).status();
    if !status.map_err(BenchError::system("cargo cannot be started"))?.success() {
        return Err(BenchError::Failed("tier0 does not build; see cargo's words above".into()));
    }
    // xtask is built into the same directory, by its alias in release mode too.
    let own = std::env::current_exe().map_err(BenchError::system("the own path is unknown"))?;
    let target = own.parent().and_then(Path::parent).expect("the program lies in target/PROFILE");
    Ok(target.join(profile).join("tier0"))
}

/// Starts tier0 on an array file.
pub(crate) fn tier0(program: &Path, array: &Path, address: &Address) -> Result<Server, BenchError> {
    let mut command = Command::new(program);
    command.args(["serve", "--quiet"]).arg(array);
    Server::start("tier0", &mut command, address, "lun0")
}
