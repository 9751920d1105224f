//! One set of third-party features for the whole workspace; it contains no code.
//!
//! Cargo compiles a dependency once for each set of features. Without this crate, `cargo test -p tier0-cache` asks for
//! other features than `cargo test --workspace` does and compiles `syn`, `serde_json`, `rustix` and everything above
//! them a second time. `tier0-units` and `tier0-toml`, which every other crate is built on, depend on this crate, so
//! every selection of packages has the same features.
//!
//! `cargo xtask features` fails if a selection has features that the workspace does not have, and names them.
