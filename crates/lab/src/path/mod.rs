//! What lies between a host and an array's volumes, and between RAID and the drives: links, storage processors, back-end
//! buses. The engine between them is the product's own, its write cache included.
//!
//! ```text
//! host loop → port → processor → volume → write cache → RAID → back-end bus → modelled drive
//! ```
//!
//! | file | concept |
//! |---|---|
//! | `front_end` | ports and processors, with their costs from the catalogue |
//! | `back_end` | buses around the drives |
//! | `group` | members that share one address space |
//! | `usage` | how busy each of them was |

mod back_end;
mod front_end;
mod group;
mod usage;

pub use back_end::BackEnd;
pub use front_end::{FrontEnd, FrontEndCosts, LookupCost};
pub use group::{Group, Member};
pub use tier0_database::station::{Resource, transfer_time};
pub use usage::{Usage, UsageRow};
