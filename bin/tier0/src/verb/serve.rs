//! `tier0 serve`: finds an array on its drives and serves its volumes over NBD until Ctrl-C.

use std::path::{Path, PathBuf};

use clap::Args;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::Serialize;
use tier0_api::EventKind;
use tier0_array::open::{OpenArray, OpenOptions, open};
use tier0_description::{Description, ListenAddress};
use tier0_nbd::server::DEFAULT_TCP_ADDRESS;
use tier0_units::counted;
use tier0_world::net::PeerAddress;
use tier0_world::real::Backend;

use crate::addresses::{self, Patience};
use crate::control::{Unserved, served_already};
use crate::failure::Failure;
use crate::history::{Keeper, Served};
use crate::mounting::{commands, uri};
use crate::output::{align_right, json, print, rendered, table};
use crate::serving::Service;
use crate::signals::Signals;
use crate::sockets::Accesses;
use crate::troubles::Troubles;

const EXAMPLES: &str = "\
Examples:
  tier0 create array.toml && tier0 serve array.toml
  tier0 serve array.toml --listen unix:nbd.sock --listen 127.0.0.1:10809
  tier0 serve array.toml --listen 127.0.0.1:0 --json
      choose a free port and print it as JSON

Ctrl-C or SIGTERM completes requests in flight, then stops the server. A second
signal, at least 2 s later, stops it at once. SIGHUP is ignored, so the terminal
may close. -q logs errors but no warnings.";

/// Serves an array.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Serve {
    /// Array file
    #[arg(value_name = "ARRAY.TOML")]
    array: PathBuf,
    /// Listen on unix:PATH or IP:PORT instead of nbd.listen of the array file; may be repeated
    #[arg(long, value_name = "ADDRESS", value_parser = parse_listen)]
    listen: Vec<ListenAddress>,
    /// Use epoll and threads instead of io_uring (slower)
    #[arg(long)]
    no_io_uring: bool,
    /// Start without this drive (name or path) and give up data that only it holds; may be repeated
    #[arg(long, value_name = "DRIVE")]
    without: Vec<String>,
    /// Print the addresses as JSON
    #[arg(long)]
    json: bool,
}

fn parse_listen(text: &str) -> Result<ListenAddress, String> {
    ListenAddress::parse(text, false)
}

/// Serves it.
pub(crate) fn run(verb: &Serve) -> Result<(), Failure> {
    let description = Description::read(&verb.array).map_err(Failure::input)?;
    let accesses = Accesses::of(&description)?;
    let listen = match (verb.listen.is_empty(), description.listen.is_empty()) {
        (false, _) => verb.listen.clone(),
        (true, false) => description.listen.clone(),
        (true, true) => vec![ListenAddress(PeerAddress::Tcp(DEFAULT_TCP_ADDRESS))],
    };
    raise_open_files();
    // A start may wait, for a drive that is slow or in use.
    let signals = Signals::catch_of_server()?;
    let mut array = open(&description, &OpenOptions { without: verb.without.clone() })
        .map_err(|error| served_already(&description, &verb.array, error))?;
    let control = description.control.clone().filter(|_| array.is_lasting());
    let field = match (verb.listen.is_empty(), description.listen.is_empty()) {
        (false, _) => "--listen",
        (true, false) => "nbd.listen",
        (true, true) => "the default of nbd.listen",
    };
    check_addresses(field, &listen, control.as_deref())?;
    array.adopt_cores()?;
    for warning in description.all_notes().iter().chain(array.warnings()) {
        tracing::warn!("{warning}");
    }
    let troubles = Troubles::of(array.name());
    for (number, doubt) in array.doubts().iter().enumerate() {
        tracing::warn!("{doubt}");
        troubles.note(&format!("doubt {number}"), doubt.clone());
    }
    let events = description.events.filter(|_| array.is_lasting());
    let diary = events.and_then(|path| Diary::open(&mut array, path, &troubles));
    let sheet = Sheet::of(&array);
    let as_json = verb.json;
    let listening = move |bound: &[PeerAddress]| {
        // The reader of stdout may be gone; the server serves all the same.
        let _ = print(&if as_json { json(&sheet.addressed(bound)) } else { sheet.text(bound) });
    };
    let service = Service::new(&array, &listen, control, accesses, signals, troubles.clone(), listening);
    let served = service.run(&array, if verb.no_io_uring { Backend::Threads } else { Backend::Auto });
    // The next server looks for it as soon as it has the drives.
    diary.iter().for_each(|diary| diary.tell_end(&served));
    drop(array);
    if let Some(diary) = diary {
        diary.close();
    }
    served
}

/// Has this process open as many files as it may: each connection is one, and drives, the witness and events must find theirs.
fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    if let Err(error) = raised {
        tracing::debug!("cannot raise the open file limit, which stays {:?}: {error}", limit.current);
    }
}

/// Looks at the addresses before anything is written to the drives, and waits there for what a killed server leaves: later
/// the wait would hold up the array's own thread.
///
/// # Errors
/// A server cannot listen.
fn check_addresses(field: &str, listen: &[ListenAddress], control: Option<&Path>) -> Result<(), Failure> {
    if let Some(path) = control.filter(|path| addresses::is_control_taken(path, Patience::Start)) {
        return Err(Failure::Input(Unserved::Taken.text(path)));
    }
    let unusable = || addresses::unusable(field, listen).into_iter().map(|(_, text)| text).next();
    match addresses::conflict(field, listen, control)
        .or_else(unusable)
        .or_else(|| addresses::taken(field, listen, Patience::Start))
    {
        Some(text) => Err(Failure::Input(text)),
        None => {
            addresses::clear(listen, control);
            Ok(())
        }
    }
}

/// The array's events, and what the server itself has to say.
struct Diary {
    troubles: Troubles,
    keeper: Keeper,
}

impl Diary {
    /// Has the events of `array` kept, and begins with what its start has found.
    fn open(array: &mut OpenArray, path: PathBuf, troubles: &Troubles) -> Option<Diary> {
        let served = Served { drives: array.serving().map(str::to_owned).collect(), places: array.places() };
        let keeper = Keeper::start(path, served, troubles.clone())
            .inspect_err(|error| tracing::error!("events are not recorded: cannot start a thread: {error}"))
            .ok()?;
        array.tell_events(keeper.sender());
        troubles.tell_to(keeper.sender());
        let (version, process) = (env!("CARGO_PKG_VERSION").to_owned(), std::process::id());
        troubles.tell(&EventKind::ServerStarted { version, process });
        let warnings = array.warnings().iter().chain(array.doubts());
        warnings.for_each(|text| troubles.tell(&EventKind::StartWarning { text: text.clone() }));
        Some(Diary { troubles: troubles.clone(), keeper })
    }

    /// Tells how the server has ended.
    fn tell_end(&self, served: &Result<(), Failure>) {
        let error = served.as_ref().err().and_then(Failure::text);
        self.troubles.tell(&EventKind::ServerEnded { error });
    }

    /// Ends when all is written. All other senders of events are gone.
    fn close(self) {
        self.troubles.close();
        self.keeper.end();
    }
}

/// What is served, kept for the moment at which the addresses are known.
struct Sheet {
    array: String,
    cores: usize,
    /// Of the pool with the fewest; none of an array in memory.
    log_copies: usize,
    pools: Vec<String>,
    volumes: Vec<(String, u64)>,
}

/// The same for JSON.
#[derive(Serialize)]
struct Addressed<'a> {
    array: &'a str,
    cores: usize,
    volumes: Vec<AddressedVolume<'a>>,
}

#[derive(Serialize)]
struct AddressedVolume<'a> {
    name: &'a str,
    size_bytes: u64,
    addresses: Vec<String>,
}

impl Sheet {
    fn of(array: &OpenArray) -> Sheet {
        let drives = |count| counted(count as u64, "drive");
        let pools = array.pools().map(|pool| match pool.drives_lost {
            0 => format!("pool {}: {}, {}", pool.name, pool.level, drives(pool.drives)),
            lost => format!("pool {}: {}, {}, {lost} LOST", pool.name, pool.level, drives(pool.drives)),
        });
        Sheet {
            array: array.name().to_owned(),
            cores: array.cores(),
            log_copies: array.pools().map(|pool| pool.log_copies).min().unwrap_or(0),
            pools: pools.collect(),
            volumes: array.volumes().map(|(name, size)| (name.to_owned(), size.0)).collect(),
        }
    }

    fn addressed(&self, bound: &[PeerAddress]) -> Addressed<'_> {
        let volumes = self.volumes.iter().map(|(name, size_bytes)| AddressedVolume {
            name,
            size_bytes: *size_bytes,
            addresses: bound.iter().map(|address| uri(address, name).to_string()).collect(),
        });
        Addressed { array: &self.array, cores: self.cores, volumes: volumes.collect() }
    }

    fn text(&self, bound: &[PeerAddress]) -> String {
        let mut table = table(&["volume", "size", "address"]);
        for (name, size) in &self.volumes {
            let addresses: Vec<_> = bound.iter().map(|address| uri(address, name).to_string()).collect();
            table.add_row([name.clone(), tier0_units::ByteCount(*size).to_string(), addresses.join("\n")]);
        }
        align_right(&mut table, [1]);
        let mount = match (self.volumes.first(), bound.first()) {
            (Some((name, _)), Some(address)) => {
                format!("\nTo use {name}:\n{}", commands(&uri(address, name)))
            }
            _ => "\nThe array has no volume; add a [[volume]] to its file.\n".to_owned(),
        };
        format!(
            "array {}, {}, cores: {}; {}\n\n{}\n{mount}\nPress Ctrl-C to stop.\n",
            self.array,
            self.pools.join(", "),
            self.cores,
            match self.log_copies {
                0 => "in memory only: all data is lost when this process ends".to_owned(),
                1 => "durable writes are acknowledged once the write log's only copy holds them".to_owned(),
                2 => "durable writes are acknowledged once both copies of the write log hold them".to_owned(),
                copies => format!(
                    "durable writes are acknowledged once all {copies} copies of the write log hold them"
                ),
            },
            rendered(&table)
        )
    }
}
