//! How a benchmark of a database fails.

use thiserror::Error;

use crate::load::Load;
use crate::run::report::RunReport;

/// Why there is no result.
#[derive(Debug, Error)]
pub enum BenchError {
    /// The address of the database makes no sense. The text is not quoted, because it may have a password.
    #[error(
        "the database address cannot be read; use postgres://USER@HOST:PORT/DATABASE or \"host=/run/postgresql user=USER dbname=DATABASE\""
    )]
    Address,
    /// An option makes no sense.
    #[error("{0}")]
    Option(String),
    /// No connection.
    #[error(
        "cannot connect to the {to}: {fact}; check that the server runs, and the address (--dsn, TIER0_DSN or PGHOST, PGPORT, PGUSER, PGDATABASE)"
    )]
    Connect {
        /// The database, without a password.
        to: String,
        /// What the system or the server says.
        fact: String,
    },
    /// Tables of these names are there, and another program made them.
    #[error(
        "the {database} has tables that tier0 did not make and that have the names of its own ({tables}); create another database (createdb bench) and name it in --dsn"
    )]
    Foreign {
        /// The database.
        database: String,
        /// Their names.
        tables: String,
    },
    /// No schema of the search path exists.
    #[error("the search path of the {0} names no schema that exists; create one, or correct search_path")]
    NoSchema(String),
    /// There is nothing to run or check.
    #[error("the {0} has no tables of a load; load them with \"tier0 bench prepare\"")]
    NotPrepared(String),
    /// The database has another load.
    #[error(
        "the {database} has the load {has}, not {wanted}; leave out --load, or name another database in --dsn"
    )]
    OtherLoad {
        /// The database.
        database: String,
        /// The load that it has.
        has: Load,
        /// The load that was asked for.
        wanted: Load,
    },
    /// The record of the load is one of another version.
    #[error(
        "the {0} was loaded by another version of tier0; remove its tables with \"tier0 bench prepare --drop\", then load it again"
    )]
    OldForm(String),
    /// The load has not ended.
    #[error("{loaded} of {pieces} parts are loaded; run \"tier0 bench prepare\" again, which loads the rest")]
    Unfinished {
        /// Parts that are complete.
        loaded: u32,
        /// Parts of the database that was asked for.
        pieces: u32,
    },
    /// All rows are there, and the indexes may not be.
    #[error("the load was interrupted before its end; run \"tier0 bench prepare\" again, which completes it")]
    WithoutIndexes,
    /// A database of this size is not made of the one that there is.
    #[error(
        "the {database} has {has}, and {wanted} were asked for; use \"{option}\", or remove the tables first with --drop"
    )]
    OtherScale {
        /// The database.
        database: String,
        /// What it has or is to get.
        has: String,
        /// What was asked for now.
        wanted: String,
        /// The option that asks for what it has.
        option: String,
    },
    /// Another prepare is at work.
    #[error("another \"tier0 bench prepare\" works on the {0}; wait until it ends")]
    Busy(String),
    /// The database refused something, or went away.
    #[error("{what} failed: {fact}")]
    Query {
        /// What was done.
        what: String,
        /// What the server says, and what to do.
        fact: String,
    },
    /// The server is silent.
    #[error(
        "{what} failed: the server did not answer within {seconds} s; see whether it runs, and whether another session holds a lock \
         (pg_stat_activity, pg_locks), then try again"
    )]
    NoAnswer {
        /// What was asked.
        what: String,
        /// How long was waited.
        seconds: u64,
    },
    /// A run failed after some of its time was measured.
    #[error("{cause}")]
    Ended {
        /// Why.
        cause: Box<BenchError>,
        /// What was measured until then.
        report: Box<RunReport>,
    },
    /// The system refuses a thread or a runtime.
    #[error("cannot start: {0}; raise the limits of processes and open files")]
    System(#[from] std::io::Error),
    /// The caller asked for an end.
    #[error("stopped before its end")]
    Stopped,
}

impl BenchError {
    /// Whether what the user gave is wrong, and nothing was changed.
    pub fn is_input(&self) -> bool {
        use BenchError::{
            Address, Busy, Foreign, NoSchema, NotPrepared, OldForm, Option, OtherLoad, OtherScale,
            Unfinished, WithoutIndexes,
        };
        matches!(
            self,
            Address
                | Option(_)
                | NoSchema(_)
                | Foreign { .. }
                | OtherLoad { .. }
                | OldForm(_)
                | OtherScale { .. }
                | Busy(_)
                | NotPrepared(_)
                | Unfinished { .. }
                | WithoutIndexes
        )
    }

    /// For `map_err`: what was done when the database refused it.
    pub(crate) fn query(what: impl Into<String>) -> impl FnOnce(tokio_postgres::Error) -> BenchError {
        let what = what.into();
        move |error| BenchError::Query { what, fact: words(&error) }
    }
}

/// What a server or a driver says, with its remedy where there is an obvious one.
pub(crate) fn words(error: &tokio_postgres::Error) -> String {
    if error.is_closed() {
        return "the server closed the connection; start it again, then run \"tier0 bench check\"".to_owned();
    }
    let Some(told) = error.as_db_error() else {
        let cause = std::error::Error::source(error).map_or(String::new(), |cause| format!(": {cause}"));
        return format!("{error}{cause}");
    };
    let code = told.code().code();
    let remedy = match code {
        "53100" => "; free space for the database, then run \"tier0 bench check\"",
        "53300" => "; raise max_connections, or use fewer users or jobs",
        "55P03" => {
            "; another session holds a lock on the tables: end it (pg_stat_activity, pg_locks), then try again"
        }
        "42501" => "; use a user who owns the tables",
        "57P01" | "57P02" | "57P03" => "; start the server again, then run \"tier0 bench check\"",
        "28000" | "28P01" => "; check user and password (PGUSER, PGPASSWORD)",
        "3D000" => "; create it with createdb",
        _ => "",
    };
    let detail = told.detail().map_or(String::new(), |detail| format!(" ({detail})"));
    format!("{}{detail}, SQLSTATE {code}{remedy}", told.message())
}
