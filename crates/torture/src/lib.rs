//! Kills the real program at random moments and looks what is left.
//!
//! | module | concept |
//! |---|---|
//! | [`plan`] | what a run does: how many kills, on which arrays, under which loads |
//! | `shape` | the arrays, and their description files |
//! | `server` | `tier0 serve` as a process: started, measured until it answers, killed |
//! | `ledger` | what every sector may hold, given what was acknowledged |
//! | `client` | the load over NBD that keeps the ledger, and the check after a restart |
//! | `blocks` | the campaign over NBD, with fio as second opinion |
//! | `faults` | what is done to drive files meanwhile |
//! | `database` | the campaign with a real database on a mounted file system |
//! | [`report`] | what was found |
//! | [`process`], [`tools`], [`clock`], [`memory`], [`mount`], [`postgres`], [`mariadb`] | of `tier0-programs`: processes, a volume as a mounted file system, a PostgreSQL cluster on it, a MariaDB |
//! | [`mishaps`] | everything else that must not lose data: errors that pass, refused starts, operators' mistakes |
//!
//! The fault model is that of a process: `SIGKILL` ends it between two instructions, and what it had given to the
//! kernel survives. Power cuts, which take the kernel's and the drives' volatile memory too, are the simulator's.
//! Drive files are truncated, overwritten, removed and brought back, never more of them than the RAID level survives.
//!
//! Invariants: the moments of the kills and the load come from the seed; how far a load gets until then does not, so a
//! seed repeats a run in kind and not byte by byte. The ledger is kept by what the server answered, and knows nothing
//! of how the server works.

mod blocks;
mod client;
mod commits;
mod database;
mod faults;
mod fio;
mod ledger;
pub mod mishaps;
pub mod plan;
pub mod report;
mod server;
mod shape;

pub use plan::{Load, Plan, torture};
pub use report::Report;
pub use tier0_programs::{
    ProgramError as TortureError, clock, mariadb, memory, mount, postgres, process, tools,
};
