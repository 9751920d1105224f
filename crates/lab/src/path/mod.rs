//! What lies between a host and an array's volumes, and between RAID and the drives: links, storage processors, the
//! protected write buffer, back-end buses. The engine between them is the product's own.
//!
//! ```text
//! host loop → port → processor → [write buffer] → volume → RAID → back-end bus → modelled drive
//! ```
//!
//! | file | concept |
//! |---|---|
//! | `resource` | servers that are busy until a time |
//! | `front_end` | ports and processors, with their costs from the catalogue |
//! | `buffer` | the saturated protected write buffer |
//! | `back_end` | buses and destaging around the drives |
//! | `group` | members that share one address space |
//! | `usage` | how busy each of them was |
//!
//! Only for worlds whose sectors carry no payload: the write buffer keeps no data.

mod back_end;
mod buffer;
mod front_end;
mod group;
mod resource;
mod usage;

pub use back_end::BackEnd;
pub use buffer::WriteBuffer;
pub use front_end::{FrontEnd, FrontEndCosts};
pub use group::{Group, Member};
pub use resource::{Resource, transfer_time};
pub use usage::{Usage, UsageRow};
