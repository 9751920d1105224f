//! Parity: P and Q over GF(2^8) with run-time dispatch to the CPU's vectors, recovery of what is lost, and
//! zero detection.
//!
//! P is the sum (XOR) of a row's data units; Q is the sum of g^i times unit i, with the field of Linux md and
//! ISA-L (polynomial 0x11d, generator 2). Source: H. Peter Anvin, "The mathematics of RAID-6".
//!
//! Invariants: every function works on slices of any one length (zero and odd ones too, at any alignment),
//! allocates nothing and gives the same bytes at every [`Level`]. Slices of unequal length are a broken
//! invariant of the caller and panic. Nothing here knows rows, columns or drives: see [`crate::layout`].

mod best;
mod generate;
mod gf;
mod isa;
mod kernel;
mod level;
mod recover;
mod units;
mod update;
#[cfg(target_arch = "x86_64")]
mod x86;
mod zero;

pub use best::{
    pq, q, recover, recover_data_and_p, recover_data_and_q, recover_from_p, recover_from_q, recover_pair,
    update_p, update_pq, update_q, xor_into, xor_many,
};
pub use level::Level;
pub use zero::is_zero;

#[cfg(test)]
mod tests;
