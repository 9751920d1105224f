//! A PostgreSQL server of this test, on a unix socket in a temporary directory.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::TempDir;
use tier0_bench::address::Address;
use tier0_programs::postgres::{Cluster, Postmaster, TOOLS};
use tier0_programs::tools::find;

/// More memory than the helper gives, and the times of reads.
const SETTINGS: [&str; 3] = ["shared_buffers=32MB", "max_wal_size=512MB", "track_io_timing=on"];

/// A cluster and the directory that it lies in.
pub(crate) struct Server {
    pub(crate) cluster: Cluster,
    /// Removed at the end.
    _directory: TempDir,
}

impl Server {
    /// A new cluster; none, with a message, where this machine cannot have one.
    pub(crate) fn create(test: &str) -> Option<Server> {
        let missing = TOOLS.iter().find(|(tool, _)| find(tool).is_none());
        let reason = match missing {
            Some((tool, package)) => format!("{tool} is not installed (package {package})"),
            None if !rustix::process::geteuid().is_root() => "PostgreSQL's user needs root".to_owned(),
            None => {
                let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
                open_to_all(directory.path());
                let cluster = Cluster::of(directory.path(), directory.path()).expect("there is a user");
                cluster.create().expect("made");
                return Some(Server { cluster, _directory: directory });
            }
        };
        eprintln!("skipped {test}: {reason}");
        None
    }

    /// Starts it.
    pub(crate) fn start(&self) -> Postmaster {
        self.cluster.start_with(&SETTINGS.map(str::to_owned)).expect("started")
    }

    /// Where one of its databases is.
    pub(crate) fn address(&self, database: &str) -> Address {
        let socket = self.cluster.socket().display();
        let dsn = format!("host={socket} user=postgres password=hush dbname={database}");
        Address::resolve(Some(&dsn), |_| None).expect("an address")
    }

    /// Runs a statement.
    pub(crate) fn query(&self, sql: &str) -> String {
        self.cluster.query(sql).unwrap_or_else(|error| panic!("{error}"))
    }
}

/// PostgreSQL's user must be able to reach its directory.
fn open_to_all(directory: &Path) {
    for path in directory.ancestors().take_while(|path| path.starts_with(env!("CARGO_TARGET_TMPDIR"))) {
        let mut mode = std::fs::metadata(path).expect("it is there").permissions();
        mode.set_mode(mode.mode() | 0o055);
        std::fs::set_permissions(path, mode).expect("it is ours");
    }
}
