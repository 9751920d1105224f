//! RAID sets of a pool: which chunklets they consist of, how extents lie in them, and where lost columns move.

mod formation;
mod grow_list;
mod rebuilding;
mod shape;
mod slots;
mod spare;
mod table;

pub use shape::SetShape;
pub use slots::{JoiningSets, SlotMap, SlotPlace};
pub use spare::{SpareMove, SparePlan, SpareRoom, plan_spares};
pub use table::{NOWHERE, RaidSets, SetIndex, TableError};
