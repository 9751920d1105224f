//! `tier0 advise apply`: carries a plan out on a running PostgreSQL: tables and indexes go to a tablespace on flash, or the parts
//! of a volume where their files lie are pinned to the fast group of a tier0 array.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use jiff::SignedDuration;
use tier0_advisor::plan::{CacheSetting, Move, Plan};
use tier0_api::AdminRequest;
use tier0_units::ByteCount;

use super::input::parse_period;
use super::interrupt::or_interrupted;
use super::pinning::{Pinning, pin};
use super::postgres::{Server, Settings};
use crate::cli::Global;
use crate::consent;
use crate::control::Addressee;
use crate::driving::{live_line, tell_step};
use crate::failure::Failure;
use crate::output::{escaped, print};
use crate::signals::Signals;
use crate::text_file;
use crate::verb::asking::sentence;

const EXAMPLES: &str = "\
Examples:
  tier0 advise apply plan.json --dsn 'host=/run/postgresql dbname=shop user=shop'
      moves each table and index of the plan to the plan's tablespace, which must
      exist; asks before it begins; what is there already is skipped
  tier0 advise apply plan.json --dsn 'host=/run/postgresql dbname=shop' \\
    --pin --array array.toml --volume data
      moves nothing in the database: pins the parts of the volume where the files
      of these tables lie, by way of the file system's own map
  tier0 advise apply plan.json --dsn 'host=/run/postgresql dbname=shop' \\
    --pin --array array.toml --volume data --follow 60s
      maps again each minute until Ctrl-C: pins follow tables that grow or are
      rewritten

Moving a table copies it and locks it meanwhile; with --pin hosts go on working.
\"tier0 advise check\" then says what it brought.";

/// Carries out.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Apply {
    /// The plan, as "tier0 advise plan" prints it
    #[arg(value_name = "PLAN.JSON")]
    plan: PathBuf,
    /// The database, as key=value pairs or postgresql://
    #[arg(long, value_name = "DSN")]
    dsn: String,
    /// Pin parts of a volume instead of moving tables
    #[arg(long, requires = "array", requires = "volume")]
    pin: bool,
    /// The running array below the database: caches of the plan are switched there
    #[arg(long, value_name = "ARRAY.TOML")]
    array: Option<PathBuf>,
    /// The volume that holds the database's file system
    #[arg(long, value_name = "NAME", requires = "pin")]
    volume: Option<String>,
    /// Where the file system's device begins on the volume, where the kernel does not say
    #[arg(long, value_name = "SIZE", requires = "pin")]
    offset: Option<ByteCount>,
    /// Map and pin again at this interval, until Ctrl-C
    #[arg(long, value_name = "TIME", requires = "pin", value_parser = parse_period)]
    follow: Option<SignedDuration>,
    /// How long a statement may wait for locks of other sessions
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_period)]
    lock_timeout: SignedDuration,
    /// Carry the plan out on another database than that of its samples
    #[arg(long)]
    other_database: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

/// Does it.
pub(super) fn run(verb: &Apply, global: &Global) -> Result<(), Failure> {
    let plan = read(&verb.plan)?;
    let unknown = plan.moves.iter().filter(|one| !one.is_postgresql).count();
    let moves: Vec<&Move> = plan.moves.iter().filter(|one| one.is_postgresql).collect();
    if moves.is_empty() {
        let text = match unknown {
            0 => "the plan moves nothing; its answer says why (\"answer\" in the file)".to_owned(),
            _ if verb.pin => {
                "--pin follows the files of a PostgreSQL only, and the plan is not of one; move its objects by hand (tier0 advise plan \
                 --sql), or pin a whole volume (tier0 volume set NAME place)"
                    .to_owned()
            }
            _ => {
                "the plan is not of a PostgreSQL, and only there tier0 carries a plan out; carry its statements out by hand (tier0 advise \
                 plan --sql)"
                    .to_owned()
            }
        };
        return Err(Failure::Input(text));
    }
    if unknown > 0 {
        tracing::warn!("{unknown} objects of the plan are not of a PostgreSQL and are left out");
    }
    if let Some(twin) = plan.twin.as_ref().filter(|twin| twin.gain.expected < 0.0) {
        tracing::warn!(
            "the twin of the plan predicts a loss ({:+.0} % transactions); \"answer\" in the file says why",
            twin.gain.expected * 100.0
        );
    }
    let settings = Settings::of(&verb.dsn)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime
        .map_err(|error| Failure::Run(format!("cannot start: {error}; check the limits of this process")))?;
    let signals = Signals::catch()?;
    runtime.block_on(async {
        or_interrupted(&signals, check_database(verb, &plan, &settings))
            .await
            .unwrap_or(Err(Failure::Interrupted))
    })?;
    let caches = || switch_caches(&plan, verb.array.as_deref());
    if let (Some(array), Some(volume), true) = (&verb.array, &verb.volume, verb.pin) {
        let pinning = Pinning {
            plan: &verb.plan,
            array,
            volume,
            offset: verb.offset.map(|offset| offset.0),
            follow: verb.follow.and_then(|every| Duration::try_from(every).ok()),
            yes: verb.yes,
        };
        if !plan.settings.is_empty() {
            consent::obtain(&of_caches(&plan), verb.yes)?;
        }
        return runtime.block_on(pin(&pinning, &moves, &settings, (&signals, &caches)));
    }
    runtime.block_on(move_all(verb, &plan, &moves, &settings, (&signals, &caches), global))
}

/// The consequence for volumes' caches.
fn of_caches(plan: &Plan) -> String {
    let names: Vec<_> = plan.settings.iter().map(|setting| escaped(&setting.volume)).collect();
    format!("the read cache of {} is switched", names.join(", "))
}

/// Refuses a database that is not the one that was sampled.
async fn check_database(verb: &Apply, plan: &Plan, settings: &Settings) -> Result<(), Failure> {
    let Some(sampled) = &plan.database else {
        tracing::warn!(
            "the plan does not say which database it is of; samples of \"tier0 advise collect\" do"
        );
        return Ok(());
    };
    let server = Server::connect(settings).await.map_err(Failure::Run)?;
    let found = server.address(settings).await.map_err(Failure::Run)?;
    match sampled.is_same(&found) || verb.other_database {
        true => Ok(()),
        false => Err(Failure::Input(format!(
            "the plan is of {}, and this is {}{}; correct --dsn, or add --other-database if the plan is meant for it",
            sampled.words(),
            found.words(),
            if sampled.system != found.system { " (another server)" } else { "" }
        ))),
    }
}

/// Switches the volumes' caches of a plan where the running array is named, and prints the others.
fn switch_caches(plan: &Plan, array: Option<&Path>) -> Result<(), Failure> {
    if plan.settings.is_empty() {
        return Ok(());
    }
    let Some(array) = array else {
        let told = plan.settings.iter().map(|setting| {
            escaped(&format!("in the array file: {}: {}", setting.field(), setting.why)) + "\n"
        });
        return print(&told.collect::<String>());
    };
    let array = Addressee::of(array)?;
    let status = array.status()?;
    for setting in &plan.settings {
        let CacheSetting { volume, read_cache, why } = setting;
        if !status.pools.iter().any(|pool| pool.volumes.iter().any(|known| known.name == *volume)) {
            tracing::warn!("the array has no volume {volume:?}; its cache is left as it is");
            continue;
        }
        let request =
            AdminRequest::VolumeCache { volume: volume.clone(), read: Some(*read_cache), write: None };
        sentence(array.ask(&request)?)?;
        let state = if *read_cache { "on" } else { "off" };
        let told = format!(
            "read cache of volume {volume}: {state}, because {why}; keep it in the file: {}",
            setting.field()
        );
        print(&(escaped(&told) + "\n"))?;
    }
    Ok(())
}

/// Reads a plan.
pub(super) fn read(path: &Path) -> Result<Plan, Failure> {
    Plan::parse(&text_file::read(path)?).map_err(|fact| Failure::Input(format!("{}: {fact}", path.display())))
}

/// Moves what is not there yet. Nothing is changed before everything is checked and agreed to.
async fn move_all(
    verb: &Apply,
    plan: &Plan,
    moves: &[&Move],
    settings: &Settings,
    (signals, caches): (&Signals, &dyn Fn() -> Result<(), Failure>),
    global: &Global,
) -> Result<(), Failure> {
    let server = Server::connect(settings).await.map_err(Failure::Run)?;
    let tablespace = &plan.tablespace;
    if !server.has_tablespace(tablespace).await.map_err(Failure::Run)? {
        return Err(Failure::Input(format!(
            "there is no tablespace {tablespace:?}; create it on flash (create tablespace … location '…'), or make the plan with \
             --tablespace"
        )));
    }
    let mut open = Vec::new();
    let (mut skipped, mut bytes) = (0, 0.0);
    for one in moves {
        let Some(located) = server.located(one).await.map_err(Failure::Run)? else {
            return Err(Failure::Input(format!(
                "{} is not in this database; connect to the database of the plan, or make the plan again",
                one.object
            )));
        };
        if located.tablespace == *tablespace {
            skipped += 1;
        } else {
            open.push(*one);
            bytes += located.bytes;
        }
    }
    let mut consequences = Vec::new();
    if !open.is_empty() {
        consequences.push(format!(
            "in {}, {} of {} are copied to tablespace {tablespace:?}, and each is locked meanwhile",
            server.address(settings).await.map_err(Failure::Run)?.words(),
            tier0_units::counted(open.len() as u64, "object"),
            ByteCount((bytes as u64).next_multiple_of(1 << 20)),
        ));
    }
    if verb.array.is_some() && !plan.settings.is_empty() {
        consequences.push(of_caches(plan));
    }
    if !consequences.is_empty() {
        consent::obtain(&consequences.join("; "), verb.yes)?;
    }
    caches()?;
    let lock_timeout = Duration::try_from(verb.lock_timeout).unwrap_or(Duration::from_secs(10));
    let bar = live_line(global.quiet == 0);
    for (done, one) in open.iter().enumerate() {
        tell_step(
            &bar,
            global.quiet == 0,
            format!("moving {} of {}: {}", done + 1, open.len(), escaped(&one.object)),
        );
        let moving = server.move_to(one, tablespace, lock_timeout);
        let failed = match or_interrupted(signals, moving).await {
            Some(Ok(())) => continue,
            Some(Err(fact)) => fact,
            None => {
                // Otherwise the server would carry it out later, when its locks are free.
                server.cancel().await;
                format!("interrupted, and the move of {} is cancelled", escaped(&one.object))
            }
        };
        bar.finish_and_clear();
        return Err(Failure::Run(format!(
            "{failed}; {done} of {} are moved, and the same command goes on with the rest",
            open.len()
        )));
    }
    bar.finish_and_clear();
    let before = if skipped == 0 { String::new() } else { format!(", {skipped} were there before") };
    print(&format!(
        "moved {} to tablespace {}{before}; collect samples of the same load, then \"tier0 advise check {}\"\n",
        tier0_units::counted(open.len() as u64, "object"),
        escaped(tablespace),
        verb.plan.display()
    ))
}
