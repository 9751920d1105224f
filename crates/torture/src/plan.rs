//! What a run does.

use std::path::PathBuf;

use tempfile::TempDir;
use tier0_world::Random;

use crate::blocks::Blocks;
use crate::clock::wall_s;
use crate::database;
use crate::faults::Fault;
use crate::fio::Fio;
use crate::report::{Campaign, Report};
use crate::server::Program;
use crate::shape::{SHAPES, Shape};
use crate::{TortureError, tools};

/// Under which load the server is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Our own client with its ledger, and fio beside it.
    Blocks,
    /// PostgreSQL on a mounted file system.
    Database,
    /// One after the other.
    Both,
}

/// A run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The program under test.
    pub program: PathBuf,
    /// Where the arrays' directories are made; not a tmpfs, so that O_DIRECT works as it does for users.
    pub directory: PathBuf,
    /// What all moments and all requests are drawn from.
    pub seed: u64,
    /// How often the server is killed.
    pub kills: u32,
    /// No campaign begins, and no server is killed again, after so many seconds.
    pub seconds_max: Option<u64>,
    /// Under which load.
    pub load: Load,
    /// Whether drive files are damaged, removed and brought back too.
    pub faults: bool,
    /// Only arrays whose name contains this: `raid5`, `volatile`.
    pub only: Option<String>,
}

/// The share of kills that databases get where both loads run: each takes several times as long.
const DATABASE_SHARE: u32 = 4;
/// Kills of one campaign over NBD, before the next array takes its turn.
const KILLS_PER_CAMPAIGN: u32 = 10;
/// Kills of one campaign with a database.
const KILLS_PER_DATABASE: u32 = 10;

/// What all campaigns of a run share.
pub(crate) struct Context<'a> {
    pub(crate) program: Program,
    pub(crate) until_s: f64,
    pub(crate) tell: &'a mut dyn FnMut(&str),
}

impl Context<'_> {
    /// Whether there is time for another kill.
    pub(crate) fn has_time(&self) -> bool {
        wall_s() < self.until_s
    }
}

/// Runs the plan; `tell` hears how it goes.
///
/// # Errors
/// Where a campaign cannot be set up. What goes wrong in one is in the report, and its directory is kept.
pub fn torture(plan: &Plan, tell: &mut dyn FnMut(&str)) -> Result<Report, TortureError> {
    let until_s = plan.seconds_max.map_or(f64::INFINITY, |seconds| wall_s() + seconds as f64);
    let mut context = Context { program: Program(plan.program.clone()), until_s, tell };
    let mut report = Report { seed: plan.seed, ..Report::default() };
    let (mut blocks, mut databases) = match plan.load {
        Load::Blocks => (plan.kills, 0),
        Load::Database => (0, plan.kills),
        Load::Both => (plan.kills - plan.kills / DATABASE_SHARE, plan.kills / DATABASE_SHARE),
    };
    if databases > 0
        && let Err(reason) = database::is_possible()
    {
        report.skipped.push(format!("the database: {reason}"));
        if plan.load == Load::Both {
            blocks += databases;
        }
        databases = 0;
    }
    if blocks > 0 && !Fio::is_there() {
        report.skipped.push("fio as second opinion: it is not installed".to_owned());
    }
    let jobs = jobs(plan, blocks, databases);
    for (index, job) in jobs.into_iter().enumerate() {
        if !context.has_time() {
            report.skipped.push(format!("{}: the time is over", job.name()));
            continue;
        }
        report.campaigns.push(run(plan, index as u64, job, &mut context)?);
    }
    Ok(report)
}

/// A campaign to be run.
#[derive(Clone, Copy, Debug)]
struct Job {
    shape: Shape,
    kills: u32,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Blocks(Option<Fault>),
    Database,
}

impl Job {
    fn name(&self) -> String {
        let shape = self.shape.name();
        match self.kind {
            Kind::Blocks(None) => format!("blocks {shape}"),
            Kind::Blocks(Some(fault)) => format!("blocks {shape}, {fault}"),
            Kind::Database => format!("database {shape}"),
        }
    }
}

/// The campaigns that make up so many kills: the shapes in turn, each with and then without a fault.
fn jobs(plan: &Plan, mut blocks: u32, mut databases: u32) -> Vec<Job> {
    let wanted = |shape: &&Shape| plan.only.as_ref().is_none_or(|only| shape.name().contains(only));
    let shapes: Vec<Shape> = SHAPES.iter().filter(wanted).copied().collect();
    let mut jobs = Vec::new();
    let mut faults = Fault::ALL.into_iter().cycle();
    for (turn, &shape) in shapes.iter().cycle().enumerate() {
        if blocks == 0 {
            break;
        }
        let (round, place) = (turn / shapes.len(), turn % shapes.len());
        let damage = plan.faults && shape.may_lose > 0 && (round + place) % 2 == 1;
        let fault = if damage { faults.next() } else { None };
        let kills = blocks.min(fault.map_or(KILLS_PER_CAMPAIGN, Fault::kills));
        jobs.push(Job { shape, kills, kind: Kind::Blocks(fault) });
        blocks -= kills;
    }
    // Databases run on what loses nothing when a drive is lost.
    let safe = shapes.iter().filter(|shape| shape.may_lose > 0).cycle();
    for &shape in safe {
        if databases == 0 {
            break;
        }
        let kills = databases.min(KILLS_PER_DATABASE);
        jobs.push(Job { shape, kills, kind: Kind::Database });
        databases -= kills;
    }
    jobs
}

/// Runs one campaign in a directory of its own, which is kept where it fails.
fn run(plan: &Plan, index: u64, job: Job, context: &mut Context<'_>) -> Result<Campaign, TortureError> {
    let directory = directory(plan)?;
    let mut campaign = Campaign { name: job.name(), ..Campaign::default() };
    (context.tell)(&format!("{}: {} kills", campaign.name, job.kills));
    let seed = Random::new(plan.seed, index).bits();
    let done = match job.kind {
        Kind::Blocks(fault) => Blocks::new(directory.path(), job.shape, seed, context, &mut campaign)
            .and_then(|blocks| blocks.run(job.kills, fault)),
        Kind::Database => database::run(directory.path(), job.shape, seed, job.kills, context, &mut campaign),
    };
    if let Err(error) = done {
        let kept = directory.keep();
        campaign.failure = Some(format!("{error} (kept in {})", kept.display()));
        (context.tell)(&format!("FAILED {}: {error}", campaign.name));
    }
    Ok(campaign)
}

fn directory(plan: &Plan) -> Result<TempDir, TortureError> {
    let made = tempfile::Builder::new().prefix("torture-").tempdir_in(&plan.directory);
    let directory = made
        .map_err(TortureError::system(format!("no directory can be made in {}", plan.directory.display())))?;
    // A database's own user must be able to reach its socket and its mount point.
    tools::run("chmod", &["a+rx", &directory.path().display().to_string()])?;
    Ok(directory)
}
