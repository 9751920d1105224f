//! How a request falls into extents, and which shard owns which extent.
//!
//! What it does not do: it knows no maps and no slots, no shards but by number, and no connections.

mod extent;

pub use extent::{ExtentPiece, Extents, owner};
