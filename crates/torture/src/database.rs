//! The campaign with a database: PostgreSQL on ext4 on a loop device on nbdfuse on the NBD export. The server is killed
//! under streams of commits and `pgbench`; afterwards the file system recovers its journal, PostgreSQL its log, every
//! acknowledged commit must be there, the sums of `pgbench` must agree, and `pg_amcheck` must find nothing.

use std::path::Path;
use std::time::Duration;

use tier0_world::Random;

use crate::TortureError;
use crate::clock::pause;
use crate::commits::{Stream, TABLE};
use crate::mount::{self, Mounted};
use crate::plan::Context;
use crate::postgres::{self, Cluster, Postmaster};
use crate::process::Running;
use crate::report::Campaign;
use crate::server::Server;
use crate::shape::{Shape, Site};
use crate::tools::{need, output};

/// The volume, and its size in MiB: the smallest cluster is 40, its log 64, the tables of pgbench 30, and rows grow.
const VOLUME: (&str, u64) = ("pg", 320);
/// The size of a drive's file: the volume fits a mirror of two of them.
const DRIVE_MIB: u64 = 512;
/// Sessions of numbered commits.
const STREAMS: u32 = 4;
/// Sessions of pgbench.
const CLIENTS: &str = "--client=4";
/// The shortest and longest time until a kill.
const KILL_AFTER: [Duration; 2] = [Duration::from_millis(200), Duration::from_millis(2500)];

/// Whether this machine has what it takes.
pub(crate) fn is_possible() -> Result<(), TortureError> {
    need(&mount::TOOLS)?;
    need(&postgres::TOOLS)?;
    if rustix::process::geteuid().is_root() {
        Ok(())
    } else {
        Err(TortureError::NeedsRoot("mounting a volume"))
    }
}

/// Everything above the array, running.
struct Stack {
    // In the order in which they end where something fails.
    postmaster: Postmaster,
    mounted: Mounted,
    server: Server,
}

/// Runs the campaign.
pub(crate) fn run(
    directory: &Path,
    shape: Shape,
    seed: u64,
    kills: u32,
    context: &mut Context<'_>,
    campaign: &mut Campaign,
) -> Result<(), TortureError> {
    let site = Site::describe(directory, shape, DRIVE_MIB, &[VOLUME])?;
    let mut random = Random::new(seed, 0);
    context.program.create(&site)?;
    let (server, _) = context.program.serve(&site)?;
    let mounted = Mounted::new(&site.directory, &site.uri(VOLUME.0), true)?;
    let cluster = Cluster::of(mounted.point(), directory)?;
    cluster.create()?;
    let mut stack = Stack { postmaster: cluster.start()?, mounted, server };
    let mut pgbench = cluster.client("pgbench");
    output("pgbench", pgbench.args(["--initialize", "--scale=2", "--quiet", "postgres"]))?;
    cluster.query(TABLE)?;
    cluster.query("create extension amcheck")?;
    let mut streams: Vec<Stream> = (0..STREAMS).map(Stream::new).collect();
    while campaign.kills < kills && context.has_time() {
        campaign.acknowledged += load(&cluster, stack, &mut streams, &mut random, &site)?;
        campaign.kills += 1;
        let (server, took_ms) = context.program.serve(&site)?;
        campaign.recovery_ms.push(took_ms);
        let mounted = Mounted::new(&site.directory, &site.uri(VOLUME.0), false)?;
        stack = Stack { postmaster: cluster.start()?, mounted, server };
        check(&cluster, &mut streams, campaign)?;
        campaign.reads_from_flash += context.program.reads_from_flash(&site)?;
        (context.tell)(&format!(
            "{}: {} kills, {} commits acknowledged",
            campaign.name, campaign.kills, campaign.acknowledged
        ));
    }
    stack.postmaster.stop()?;
    cluster.verify_checksums()?;
    campaign.second_opinions += 1;
    stack.mounted.unmount()?;
    stack.server.stop()
}

/// Commits in all streams and in pgbench until the server is killed, then clears away what stood on it; how many commits
/// the streams were told of.
fn load(
    cluster: &Cluster,
    mut stack: Stack,
    streams: &mut [Stream],
    random: &mut Random,
    site: &Site,
) -> Result<u64, TortureError> {
    let mut pgbench = cluster.client("pgbench");
    pgbench.args([CLIENTS, "--time=600", "--no-vacuum", "postgres"]);
    let pgbench = Running::start("pgbench", &mut pgbench, &site.directory.join("pgbench.log"))?;
    let wait = KILL_AFTER[0] + (KILL_AFTER[1] - KILL_AFTER[0]).mul_f64(random.unit());
    std::thread::scope(|scope| {
        let running: Vec<_> = streams.iter_mut().map(|stream| scope.spawn(|| stream.run(cluster))).collect();
        pause(wait);
        let killed = stack.server.kill();
        // The sessions of the streams end with the database, so this comes before they are waited for.
        let ended = stack.postmaster.kill();
        drop(pgbench);
        let mut acknowledged = 0;
        for stream in running {
            acknowledged += stream.join().expect("a stream does not panic")?;
        }
        killed?;
        ended?;
        stack.mounted.abandon()?;
        Ok(acknowledged)
    })
}

/// Checks everything after a restart.
fn check(cluster: &Cluster, streams: &mut [Stream], campaign: &mut Campaign) -> Result<(), TortureError> {
    for stream in streams {
        stream.check(cluster)?;
    }
    // Every transaction of pgbench adds the same amount to an account, a teller and a branch, and writes it down.
    let sums = cluster.query(
        "select (select sum(abalance) from pgbench_accounts), (select sum(tbalance) from pgbench_tellers), \
         (select sum(bbalance) from pgbench_branches), (select coalesce(sum(delta), 0) from pgbench_history)",
    )?;
    let mut parts = sums.split('|');
    let first = parts.next();
    if !parts.all(|part| Some(part) == first) {
        return Err(TortureError::Failed(format!(
            "half a transaction of pgbench is there: the sums are {sums}"
        )));
    }
    campaign.checks += 1;
    output("pg_amcheck", cluster.client("pg_amcheck").args(["--heapallindexed", "postgres"]))?;
    campaign.second_opinions += 1;
    Ok(())
}
