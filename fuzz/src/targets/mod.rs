//! The parsers.

mod advise_report;
mod array_toml;
mod canary;
mod checksum;
mod flash_cache;
mod image;
mod journal_ring;
mod log_record;
mod nbd_client;
mod nbd_server;
mod nbd_uri;
mod pieces;
mod pool_open;
mod pool_records;
mod slot_table;
mod study_toml;
mod superblock;
mod trace;

use crate::Target;

/// Every target but the canary.
pub const ALL: &[Target] = &[
    advise_report::TARGET,
    array_toml::TARGET,
    flash_cache::TARGET,
    journal_ring::TARGET,
    log_record::TARGET,
    nbd_client::TARGET,
    nbd_server::TARGET,
    nbd_uri::TARGET,
    pool_open::TARGET,
    pool_records::TARGET,
    slot_table::TARGET,
    study_toml::TARGET,
    superblock::TARGET,
    trace::TARGET,
];

/// A parser with a planted fault, to prove that faults of its kind are found.
pub const CANARY: Target = canary::TARGET;
