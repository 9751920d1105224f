//! Layout: the address arithmetic and the plans of RAID sets at levels 0, 1, 10, 5, 50 and 6.
//!
//! A *RAID set* consists of columns, each a chunklet of a different drive, and is cut into *rows* of one
//! *stripe unit* per column. A row holds data units and, by level, their copies or their parity.
//!
//! Invariants: every data sector has exactly one place per copy; a plan never touches a lost column; after a
//! plan is carried out, every unit of the row can be read or recovered with what is lost now. All values are
//! small and plain; nothing here allocates, does I/O, or knows buffers, drives or time. Parity is
//! computed in [`crate::parity`].

mod config;
mod geometry;
mod index;
mod level;
mod pages;
mod piece;
mod placement;
mod read;
mod source;
mod update;
mod write;

pub use config::{COLUMNS_MAX, ConfigError, RaidConfig, STRIPE_UNIT_MAX, STRIPE_UNIT_MIN};
pub use geometry::{Layout, Location, Role};
pub use index::{Column, ColumnMask, Group, Mask, MaskIndex, MaskIter, Row, Unit, UnitMask};
pub use level::{RaidLevel, UnknownLevel};
pub use pages::PagePlace;
pub use piece::{ColumnExtent, ColumnExtents, Piece, Pieces, UnitExtent, UnitExtents};
pub use placement::ParityColumns;
pub use read::{ReadBand, ReadPlan, RebuildPlan};
pub use source::Unrecoverable;
pub use update::UpdateBand;
pub use write::{WriteBand, WriteMethod, WritePlan};
