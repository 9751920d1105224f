//! Whether a copy still holds what was written to it: another program may write to its drive, or an administrator put an older image back.
//!
//! What it does not do: it reads the headers and the newest stable frame. Older frames may be damaged all the same;
//! recovery reads them from the other copies.

use std::rc::Rc;

use crate::bytes::long;
use crate::copies::CopyState;
use crate::frame;
use crate::header::{self, HeaderPlace};
use crate::region::{HEADER_PLACES, Region};
use crate::ring::{Core, Ring};
use crate::state::Live;

impl Ring {
    /// Whether both are the same ring, opened once.
    pub fn is(&self, other: &Ring) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }

    /// Whether copy `copy` lacks a header of this ring that is no older than the one known to be stable, or the newest
    /// stable frame. A copy that does not count, that cannot be read, or that has changed meanwhile, lacks nothing.
    pub async fn is_overwritten(&self, copy: usize) -> bool {
        let Some(target) = self.0.target(copy).filter(|_| self.0.copy_state(copy) == CopyState::Live) else {
            return false;
        };
        let generation = self.0.persisted_generation.get();
        let newest = self.0.state.borrow().newest_stable;
        let has_header = self.0.has_header(&target.region, generation).await;
        let has_frame = match newest {
            Some(newest) => self.0.has_frame(&target.region, &newest).await,
            None => true,
        };
        let is_same = self.0.copies.borrow()[copy].turn == target.turn;
        is_same && self.0.copy_state(copy) == CopyState::Live && !(has_header && has_frame)
    }
}

impl Core {
    async fn has_header(&self, region: &Region, generation: u64) -> bool {
        for place in 0..HEADER_PLACES {
            let Ok(buf) = region.read_header(place).await else { return true };
            if let HeaderPlace::Valid(found) = header::decode(buf.as_slice())
                && found.ring == self.id
                && found.generation >= generation
            {
                return true;
            }
        }
        false
    }

    async fn has_frame(&self, region: &Region, newest: &Live) -> bool {
        let Ok(buf) = region.read(self.blocks, newest.block, 1).await else { return true };
        let block = buf.as_slice();
        let is_same = frame::peek(block).is_some_and(|(link, _)| {
            link.ring == self.id
                && link.sequence == newest.sequence
                && long(block, frame::CHECKSUM_AT) == newest.checksum
        });
        // Its place may have been used again while it was read.
        is_same || self.state.borrow().block > newest.block + self.blocks
    }
}
