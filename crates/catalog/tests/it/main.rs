//! The embedded catalogue and a user's own.

mod embedded;
mod user_dir;
