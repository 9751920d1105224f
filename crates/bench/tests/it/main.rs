//! The benchmark against a real PostgreSQL, in a temporary directory.

mod server;
mod story;
