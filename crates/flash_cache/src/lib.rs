#![doc = include_str!("README.md")]

mod admission;
mod bring_in;
mod budget;
mod bytes;
mod cache;
mod checkpoint;
mod checks;
mod device;
mod doorkeeper;
mod entry;
mod error;
mod fill;
pub mod header;
mod home;
mod label;
mod line;
mod load;
mod log;
pub mod map_page;
mod model;
mod patience;
mod place;
mod read;
pub mod record;
mod resize;
mod state;
mod status;
mod table;

pub use cache::{Disown, FlashCache, FlashIdentity, FlashOptions, LocalFuture, Offer};
pub use entry::{Entry, Line};
pub use error::FlashError;
pub use label::announce_epoch;
pub use load::LoadReport;
pub use model::FlashModel;
pub use place::FlashPlace;
pub use status::{FlashCacheStatus, FlashRoom};
