//! Persisting the tail: the headers on all copies, so that space can be reused.

use std::rc::Rc;

use tier0_world::{Buf, BufMut, PayloadWidth};

use crate::RingError;
use crate::header::{self, Header};
use crate::region::{BLOCK_SECTORS, HEADER_PLACES};
use crate::ring::Core;

/// The share of the ring that may be released without being persisted: a quarter, so that a header is written four
/// times per round of the ring, which costs next to nothing even where the ring is small.
const UNPERSISTED_SHARE: u64 = 4;

impl Core {
    /// Persists the tail in the background if records wait for that, or if much has been released.
    pub(crate) fn persist_if_due(self: &Rc<Self>) {
        let due = {
            let state = self.state.borrow();
            let gain = state.tail().block - state.persisted;
            gain > 0 && (state.is_starved() || gain >= self.blocks / UNPERSISTED_SHARE)
        };
        if due && self.failure().is_none() && !self.persisting.get() {
            self.start_persisting();
        }
    }

    /// Persists the tail as it is now. Goes on even if this future is dropped.
    pub(crate) async fn persist_now(self: &Rc<Self>) -> Result<(), RingError> {
        self.until(|core| !core.persisting.get()).await?;
        let generation = self.start_persisting();
        self.until(|core| core.persisted_generation.get() >= generation).await
    }

    /// Waits until something is true, or the ring has failed.
    async fn until(&self, is_true: impl Fn(&Core) -> bool) -> Result<(), RingError> {
        loop {
            self.failure().map_or(Ok(()), Err)?;
            if is_true(self) {
                return Ok(());
            }
            self.changed.wait().await;
        }
    }

    /// Begins to write the next header, and returns its generation.
    fn start_persisting(self: &Rc<Self>) -> u64 {
        let (core, header) = (self.clone(), self.next_header());
        self.persisting.set(true);
        self.world.spawn(async move { core.persist(header).await }).detach();
        header.generation
    }

    async fn persist(self: Rc<Self>, header: Header) {
        self.write_header(&header).await;
        if self.failure().is_none() {
            self.state.borrow_mut().persisted = header.tail.block;
            self.persisted_generation.set(header.generation);
        }
        self.persisting.set(false);
        self.changed.notify_all();
        self.schedule_pump();
    }

    /// The header that says what is true now.
    pub(crate) fn next_header(&self) -> Header {
        let mut state = self.state.borrow_mut();
        state.generation += 1;
        Header {
            ring: self.id,
            generation: state.generation,
            incarnation: state.incarnation,
            blocks: self.blocks,
            tail: state.tail(),
            stable: state.stable_sequence(),
            fence: state.fence,
        }
    }

    /// Writes a header to one place after the other, so that a torn write leaves one of them.
    pub(crate) async fn write_header(&self, header: &Header) {
        let buf = self.header_block(header);
        for place in 0..HEADER_PLACES {
            self.on_every_copy(|region| {
                let buf = buf.clone();
                async move { region.write_header(place, buf).await }
            })
            .await;
        }
    }

    pub(crate) fn header_block(&self, header: &Header) -> Buf {
        let mut buf = BufMut::new(BLOCK_SECTORS, PayloadWidth::REAL);
        header::encode(header, buf.as_mut_slice());
        buf.freeze()
    }
}
