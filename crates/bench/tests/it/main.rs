//! The benchmark against a real PostgreSQL, in a temporary directory.

mod decision_support;
mod server;
mod story;
