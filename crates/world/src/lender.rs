//! Memory on loan: data that lies in memory already, as a RAM drive's does, is read without a copy.

/// Lends memory to a buffer ([`BufMut::borrow`](crate::BufMut::borrow)).
///
/// A loan ends when the last buffer that refers to it is dropped, in any thread, and not before the kernel has sent what
/// it was given. Until then the memory must hold what it held.
pub trait Lender: Send + Sync {
    /// A loan has ended.
    fn take_back(&self, loan: u32);

    /// Bytes that a loan keeps from being used for something else, whatever of them was lent.
    fn loan_bytes(&self) -> usize;
}
