//! fio through a server's NBD export.

use crate::error::BenchError;
use crate::fio;
use crate::server::Server;

/// One run against one server.
pub(super) struct Run {
    pub(super) outcome: fio::Outcome,
    /// Processor time of the server.
    pub(super) cpu_us_per_io: f64,
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
    let before = server.cpu_s()?;
    let load = fio::random_8k_shared(connections, read_percent, seconds);
    let outcome = fio::run(&[load, target(server, mib)].concat())?;
    let cpu_us_per_io = (server.cpu_s()? - before) * 1e6 / outcome.ios;
    Ok(Run { outcome, cpu_us_per_io })
}
