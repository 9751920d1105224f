//! How a request falls into extents, which shard owns which extent, and how much a volume with ceilings may do.
//!
//! What it does not do: it knows no maps and no slots, no shards but by number, and no connections.

mod budget;
mod extent;

pub use budget::{Budget, Rates};
pub use extent::{ExtentPiece, Extents, owner};
