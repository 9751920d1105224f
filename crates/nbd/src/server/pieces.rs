//! A request that is carried out in pieces and answered once.

use std::cell::Cell;
use std::rc::Rc;

use tier0_world::IoError;

/// How far the pieces of a request are; clones share it.
#[derive(Clone)]
pub(super) struct Pieces(Rc<Inner>);

struct Inner {
    left: Cell<u32>,
    error: Cell<Option<IoError>>,
}

impl Pieces {
    /// Of a request of `length` bytes, in pieces of `piece_bytes`.
    pub(super) fn new(length: u32, piece_bytes: u32) -> Pieces {
        let left = Cell::new(length.div_ceil(piece_bytes));
        Pieces(Rc::new(Inner { left, error: Cell::new(None) }))
    }

    /// A piece has ended so. The last one learns how the whole did: its first error, if it had one.
    pub(super) fn ended(&self, result: Result<(), IoError>) -> Option<Result<(), IoError>> {
        let first_error = self.0.error.get().or(result.err());
        self.0.error.set(first_error);
        let left = self.0.left.get() - 1;
        self.0.left.set(left);
        (left == 0).then_some(first_error.map_or(Ok(()), Err))
    }

    /// Whether one of them failed, so that the others need not be begun.
    pub(super) fn have_failed(&self) -> bool {
        self.0.error.get().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_piece_tells_of_the_first_error() {
        let pieces = Pieces::new(2049, 512);
        assert_eq!(pieces.ended(Ok(())), None);
        assert_eq!(pieces.ended(Err(IoError::Medium)), None);
        assert!(pieces.have_failed());
        assert_eq!(pieces.ended(Err(IoError::NoSpace)), None);
        assert_eq!(pieces.ended(Ok(())), None);
        assert_eq!(pieces.ended(Ok(())), Some(Err(IoError::Medium)));
    }
}
