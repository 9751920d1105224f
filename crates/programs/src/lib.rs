//! Other people's programs around an array: processes in the background, a volume as a mounted file system, PostgreSQL on it.
//!
//! | module | concept |
//! |---|---|
//! | [`process`] | a process of ours: started, killed, waited for |
//! | [`tools`] | where programs lie, and running them to their end |
//! | [`mount`] | ext4 on a loop device on nbdfuse on an NBD export |
//! | [`postgres`] | a PostgreSQL cluster in a directory: made, started, killed, asked |
//! | [`mariadb`] | a MariaDB server in a directory: made, started, asked |
//! | [`memory`] | a control group that limits memory |
//! | [`clock`] | waiting |
//!
//! Campaigns of `torture`, system tests, benchmarks and `tier0 bench scene` use it. It knows no array: only addresses, paths and
//! commands.

pub mod clock;
mod error;
pub mod mariadb;
pub mod memory;
pub mod mount;
pub mod postgres;
pub mod process;
pub mod tools;

pub use error::ProgramError;
