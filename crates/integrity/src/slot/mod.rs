//! Verified I/O on slots.

mod request;

pub use request::{PageContent, SlotOutcome, SlotWrite};
