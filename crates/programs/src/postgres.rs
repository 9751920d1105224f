//! A PostgreSQL cluster in a directory of a mounted volume: made, started, killed, asked.
//!
//! The server asks no password, and a superuser's session has a shell (`copy … from program`). So its socket lies in a directory
//! that only the system's user `postgres` and root can enter, and it listens at no address of a network.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};

use crate::ProgramError;
use crate::clock::wait_until;
use crate::process::Running;
use crate::tools::{command, output, run};

/// The programs that this takes, with the package that brings them.
pub const TOOLS: [(&str, &str); 7] = [
    ("initdb", "postgresql"),
    ("postgres", "postgresql"),
    ("pg_isready", "postgresql"),
    ("psql", "postgresql"),
    ("pgbench", "postgresql"),
    ("pg_amcheck", "postgresql"),
    ("pg_checksums", "postgresql"),
];

/// The longest that a start with recovery may take.
const START_SECONDS_MAX: u32 = 120;
/// The longest that killed processes may take to be gone: they may be waiting for a dying device, which waits for the
/// last writes of the killed server, which wait for a disk that others keep busy.
const END_SECONDS_MAX: u32 = 240;

/// What the server is told. Every commit waits for its log to be stable; little memory and frequent checkpoints make it
/// write its data files too.
const SETTINGS: [&str; 9] = [
    "listen_addresses=",
    "unix_socket_permissions=0700",
    "fsync=on",
    "synchronous_commit=on",
    "shared_buffers=8MB",
    "min_wal_size=32MB",
    "max_wal_size=64MB",
    "checkpoint_timeout=30s",
    "log_checkpoints=off",
];

/// A cluster.
pub struct Cluster {
    data: PathBuf,
    socket: PathBuf,
    user: (u32, u32),
}

impl Cluster {
    /// The cluster of a volume mounted at `point`; its socket and log lie in `directory`.
    pub fn of(point: &Path, directory: &Path) -> Result<Cluster, ProgramError> {
        let id = |kind: &str| {
            let text = run("id", &[kind, "postgres"])?;
            let number = text.trim().parse::<u32>();
            number.map_err(|_| ProgramError::Failed(format!("id says {text:?} of the user postgres")))
        };
        let user = (id("--user")?, id("--group")?);
        Ok(Cluster { data: point.join("data"), socket: directory.join("pg"), user })
    }

    /// Makes it, with checksums.
    pub fn create(&self) -> Result<(), ProgramError> {
        for directory in [&self.data, &self.socket] {
            std::fs::create_dir_all(directory)
                .and_then(|()| std::fs::set_permissions(directory, PermissionsExt::from_mode(0o700)))
                .and_then(|()| std::os::unix::fs::chown(directory, Some(self.user.0), Some(self.user.1)))
                .map_err(ProgramError::system(format!("{} cannot be made", directory.display())))?;
        }
        let mut initdb = self.command("initdb");
        initdb.arg("--pgdata").arg(&self.data);
        initdb.args(["--data-checksums", "--auth=trust", "--no-locale", "--encoding=UTF8"]);
        output("initdb", &mut initdb)?;
        Ok(())
    }

    /// Starts it and waits until it has recovered.
    pub fn start(&self) -> Result<Postmaster, ProgramError> {
        self.start_with(&[])
    }

    /// The same with settings, `name=value`, that count more than the usual ones.
    pub fn start_with(&self, settings: &[String]) -> Result<Postmaster, ProgramError> {
        let log = self.socket.join("log");
        let mut postgres = self.command("postgres");
        // The Ctrl-C of a terminal is the caller's, which ends the server in order.
        postgres.process_group(0);
        postgres.arg("-D").arg(&self.data);
        postgres.arg("-c").arg(format!("unix_socket_directories={}", self.socket.display()));
        SETTINGS.iter().for_each(|setting| {
            postgres.args(["-c", setting]);
        });
        settings.iter().for_each(|setting| {
            postgres.args(["-c", setting.as_str()]);
        });
        let mut process = Running::start("postgres", &mut postgres, &log)?;
        wait_until("PostgreSQL accepting connections", START_SECONDS_MAX, || {
            if let Some(status) = process.status()? {
                return Err(ProgramError::Failed(format!(
                    "PostgreSQL ended with {status}; see {}",
                    log.display()
                )));
            }
            Ok(output("pg_isready", &mut self.client("pg_isready")).is_ok())
        })?;
        Ok(Postmaster { process })
    }

    /// The directory of its socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Whether its user can enter a directory.
    pub fn can_enter(&self, directory: &Path) -> bool {
        output("test", self.command("test").arg("-x").arg(directory)).is_ok()
    }

    /// One of PostgreSQL's programs, run as its user.
    fn command(&self, program: &str) -> Command {
        let mut command = command(program);
        command.uid(self.user.0).gid(self.user.1).current_dir("/");
        command
    }

    /// One that connects to the running server.
    pub fn client(&self, program: &str) -> Command {
        let mut command = self.command(program);
        command.arg("--host").arg(&self.socket);
        command
    }

    /// What a query answers, one row a line.
    pub fn query(&self, sql: &str) -> Result<String, ProgramError> {
        let mut psql = self.client("psql");
        psql.args(["--no-psqlrc", "--tuples-only", "--no-align", "--quiet", "--command", sql, "postgres"]);
        Ok(output(sql, &mut psql)?.trim().to_owned())
    }

    /// Verifies the checksum of every page of a cluster that was shut down.
    pub fn verify_checksums(&self) -> Result<(), ProgramError> {
        output("pg_checksums", self.command("pg_checksums").args(["--check", "--pgdata"]).arg(&self.data))?;
        Ok(())
    }
}

/// The running server.
pub struct Postmaster {
    process: Running,
}

impl Postmaster {
    /// Shuts it down in good order.
    pub fn stop(mut self) -> Result<(), ProgramError> {
        // SIGINT: the "fast" shutdown, which ends sessions and writes a checkpoint.
        self.process.signal(Signal::INT);
        let status = self.process.ends()?;
        if status.success() {
            Ok(())
        } else {
            Err(ProgramError::Failed(format!("PostgreSQL ended with {status}")))
        }
    }

    /// Kills all of its processes and waits until they are gone, so that nothing holds the file system.
    pub fn kill(mut self) -> Result<(), ProgramError> {
        let id = self.process.id().as_raw_nonzero().get();
        // A session that is forked after the children were listed would be left over, and its client would wait for ever.
        self.process.signal(Signal::STOP);
        wait_until("PostgreSQL to be held", END_SECONDS_MAX, || {
            Ok(status(id).is_none_or(|(state, _)| matches!(state.as_str(), "T" | "Z" | "X")))
        })?;
        let family: Vec<i32> = children(id);
        self.process.signal(Signal::KILL);
        family.iter().filter_map(|child| Pid::from_raw(*child)).for_each(|child| {
            // One that has ended by itself needs no signal.
            let _ = kill_process(child, Signal::KILL);
        });
        self.process.ends()?;
        wait_until("the end of PostgreSQL's processes", END_SECONDS_MAX, || {
            Ok(!family.iter().any(|child| is_running(*child)))
        })
    }
}

/// The processes whose parent is `parent`.
fn children(parent: i32) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    ids.filter(|id| status(*id).is_some_and(|(_, its_parent)| its_parent == parent)).collect()
}

/// Whether it exists and is no zombie.
fn is_running(id: i32) -> bool {
    status(id).is_some_and(|(state, _)| state != "Z" && state != "X")
}

/// State and parent of a process, fields 3 and 4 of its stat file (proc(5)).
fn status(id: i32) -> Option<(String, i32)> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
}
