//! Rows of a RAID set: written in two phases, read verified, replayed, rebuilt and scrubbed, against a flat model.

mod concurrent;
mod farm;
mod lies;
mod model;
mod sequences;
mod torn;
mod walk;
mod zeros;
