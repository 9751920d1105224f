//! fio through a server's NBD export, and the server of tier0 that it is measured through: one in memory.

use std::path::Path;
use std::process::Command;

use super::write;
use crate::error::BenchError;
use crate::fio;
use crate::server::{Address, Server, tier0};

/// One run against one server.
pub(super) struct Run {
    pub(super) outcome: fio::Outcome,
    /// Processor time of the server.
    pub(super) cpu_us_per_io: f64,
}

/// tier0 with a RAID 10 volume of so many MiB on RAM drives, on one core; its array file lies in `directory`.
pub(super) fn start_tier0(
    program: &Path,
    directory: &Path,
    address: &Address,
    mib: u32,
) -> Result<Server, BenchError> {
    let array = directory.join("array.toml");
    let listen = match address {
        Address::Unix(socket) => format!("unix:{}", socket.display()),
        Address::Tcp(port) => format!("127.0.0.1:{port}"),
    };
    // Half of the four drives holds data; the rest of each is room for metadata and whole chunklets.
    let drive = mib / 2 + 256;
    let text = format!(
        "[array]\nname = \"bench\"\ncores = 1\n\
         [[drive]]\nname = \"ram{{n}}\"\ncount = 4\nram = \"{drive}MiB\"\n\
         [[pool]]\nname = \"pool0\"\nraid = \"raid10\"\nset_size = 4\nstripe_unit = \"64KiB\"\n\
         [[volume]]\nname = \"lun0\"\nsize = \"{mib}MiB\"\n\
         [nbd]\nlisten = [\"{listen}\"]\n"
    );
    write(&array, &text)?;
    tier0(program, &array, address)
}

/// nbdkit with so many MiB in memory.
pub(super) fn start_nbdkit(address: &Address, mib: u32) -> Result<Server, BenchError> {
    let mut command = Command::new("nbdkit");
    command.arg("--foreground");
    match address {
        Address::Unix(socket) => command.arg("--unix").arg(socket),
        Address::Tcp(port) => command.args(["--ipaddr=127.0.0.1", &format!("--port={port}")]),
    };
    command.arg("memory").arg(format!("{mib}M"));
    Server::start("nbdkit memory", &mut command, address, "")
}

/// fio's arguments for the first `mib` MiB of the server's export.
pub(super) fn target(server: &Server, mib: u32) -> Vec<String> {
    vec!["--ioengine=nbd".into(), format!("--uri={}", server.uri()), format!("--size={mib}m")]
}

/// Random data everywhere, so that no server serves holes.
pub(super) fn fill(server: &Server, mib: u32) -> Result<(), BenchError> {
    fio::run(&[fio::fill(), target(server, mib)].concat()).map(|_| ())
}

/// Random 8 KiB requests to the first `mib` MiB over so many connections, 32 under way in all, so many of a hundred of them
/// reads.
pub(super) fn random_8k(
    server: &Server,
    mib: u32,
    connections: u32,
    read_percent: u32,
    seconds: u32,
) -> Result<Run, BenchError> {
    measured(server, mib, fio::random_8k_shared(connections, read_percent, seconds))
}

/// A load on the first `mib` MiB, and what processor time the server took for it.
pub(super) fn measured(server: &Server, mib: u32, load: Vec<String>) -> Result<Run, BenchError> {
    let before = server.cpu_s()?;
    let outcome = fio::run(&[load, target(server, mib)].concat())?;
    let cpu_us_per_io = (server.cpu_s()? - before) * 1e6 / outcome.ios;
    Ok(Run { outcome, cpu_us_per_io })
}
