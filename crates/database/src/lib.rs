//! Databases that are modelled: the pages that transactions touch, the buffer that keeps some of them, and the reads and writes
//! that are left for the storage.
//!
//! | module | concept |
//! |---|---|
//! | [`workload`] | objects and transactions, from `catalog/workloads` |
//! | [`engine`] | pages, log and writers of a database engine, from `catalog/engines` |
//! | [`layout`] | objects at a scale, in pages |
//! | [`script`] | the pages that a transaction touches |
//! | [`buffer`] | pages in memory, clean and dirty |
//! | [`mod@sweep`] | a buffer without time: reads and writes of a transaction by its size |
//! | [`mod@run`] | users of a host who run transactions against volumes, in a world's time |
//! | [`storage`] | objects and log on volumes |
//! | `pages` | the buffer at work: reads, writes behind, checkpoints |
//! | `scan` | scans: large reads of pages in order, and scans that join |
//! | `page_cache` | the operating system's page cache between the buffer and the volumes |
//! | `log` | commits that are written together |
//! | `images` | full images of pages in the log |
//! | `locks` | rows that a transaction holds until it has committed |
//! | `arrivals` | transactions that arrive at a rate |
//! | [`host`] | cores and processor time |
//! | [`host_model`] | hosts of `catalog/hosts` |
//! | [`station`] | servers that are busy until a time |
//!
//! I/O per transaction follows from the scripts' touches, the buffer's misses and its dirty pages: it is derived and not fitted.
//!
//! The crate does not model arrays, drives, or the inner levels of indexes.

mod arrivals;
pub mod buffer;
pub mod engine;
pub mod host;
pub mod host_model;
mod images;
pub mod layout;
mod locks;
mod log;
mod page_cache;
mod pages;
pub mod run;
mod scan;
pub mod script;
pub mod station;
pub mod storage;
pub mod sweep;
pub mod workload;
