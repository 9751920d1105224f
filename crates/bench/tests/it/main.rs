//! The benchmark against a real PostgreSQL, in a temporary directory.

mod brokerage;
mod decision_support;
mod server;
mod shared;
mod story;
