//! Failed drives and wrong data: the arbiter, pauses, rebuilds, scrubs, verification, lost pages.

pub(crate) mod arbiter;
pub(crate) mod guard_arbiter;
pub(crate) mod lost_pages;
pub(crate) mod page_errors;
pub(crate) mod pause;
pub(crate) mod placement;
pub(crate) mod rebuild;
pub(crate) mod scrub;
pub(crate) mod verification;
