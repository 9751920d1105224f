//! Adding a copy while the ring is in use.
//!
//! From the moment the copy joins, every frame and header is written to it too. What was there before is copied frame by
//! frame, verified on the way; the tail is not persisted past the frame that is being copied, so that nothing new is
//! ever written where the copying still writes. When all is stable on the copy, a header is.
//!
//! A region may hold the same ring as others went on with it, without the copies that are here: frames and headers that
//! are newer than those of this ring, and that a recovery would take for what was lost. So the ring gets an incarnation
//! first that exceeds whatever may lie there, with a fence at its end, and headers of a higher generation.
//!
//! | step | copy | what the owner does | if the copy fails |
//! |---|---|---|---|
//! | [`Ring::add_copy`] is called | joining | its durable record does not name the copy | the call ends with the error |
//! | it ends | unconfirmed | makes durable that the copy counts | reported and waited for like any other |
//! | [`Ring::confirm_copy`] | live | | reported and waited for |
//!
//! An unconfirmed copy is equal to the others and stays so, but the ring does not live on it alone: after a crash the
//! owner may not know of it.

use std::rc::Rc;

use tier0_world::{Buf, IoError};

use crate::copies::{COPIES_MAX, CopyState, Place, Target};
use crate::reader::{Found, Reader};
use crate::ring::{Core, bad_region, outdone, region_sectors};
use crate::state::Live;
use crate::{Position, Region, Ring, RingError};

/// By how many incarnations a ring goes ahead of what it knows when a copy joins: where the region's headers are gone, more
/// than the openings of a ring that others went on with, each of which is one.
const INCARNATIONS_AHEAD: u64 = 1 << 20;

impl Ring {
    /// Makes `region` copy `copy` of the ring, in the place of one that is lost or as the next one, while appends go on.
    /// The region needs the size of the ring. Ends when the copy is equal to the others; dropping the future gives up.
    pub async fn add_copy(&self, copy: usize, region: Region) -> Result<(), RingError> {
        let core = &self.0;
        core.failure().map_or(Ok(()), Err)?;
        if region.blocks().is_none_or(|blocks| blocks < core.blocks) {
            return Err(bad_region(copy, &region, region_sectors(core.blocks)));
        }
        core.take_place(copy, region.clone())?;
        let mut joining = JoinGuard { core: core.clone(), copy, complete: false };
        core.outdo(&region).await?;
        core.copy_to(copy, &region).await?;
        core.persist_now().await?;
        core.still_joining(copy)?;
        joining.complete = true;
        core.set_copy_state(copy, CopyState::Unconfirmed);
        Ok(())
    }

    /// The owner has made durable that `copy` counts.
    pub fn confirm_copy(&self, copy: usize) -> Result<(), RingError> {
        match self.copies().get(copy) {
            Some(CopyState::Unconfirmed) => {
                self.0.set_copy_state(copy, CopyState::Live);
                Ok(())
            }
            Some(CopyState::Live) => Ok(()),
            _ => Err(RingError::BadCopy { copy }),
        }
    }
}

/// Takes the copy out again if it does not become complete.
struct JoinGuard {
    core: Rc<Core>,
    copy: usize,
    complete: bool,
}

impl Drop for JoinGuard {
    fn drop(&mut self) {
        self.core.unpin();
        if !self.complete && self.core.copy_state(self.copy) == CopyState::Joining {
            self.core.set_copy_state(self.copy, CopyState::Lost);
        }
    }
}

impl Core {
    fn take_place(&self, copy: usize, region: Region) -> Result<(), RingError> {
        let mut copies = self.copies.borrow_mut();
        if copies.iter().any(|place| place.state == CopyState::Joining) {
            return Err(RingError::Joining);
        }
        let is_free = copies.get(copy).is_none_or(|place| place.state == CopyState::Lost);
        if !is_free || copy > copies.len() || copy >= COPIES_MAX {
            return Err(RingError::BadCopy { copy });
        }
        if copy == copies.len() {
            copies.push(Place::new(None));
        }
        let turn = copies[copy].turn + 1;
        copies[copy] = Place { region: Some(region), state: CopyState::Joining, error: None, turn };
        Ok(())
    }

    fn unpin(self: &Rc<Self>) {
        {
            let mut state = self.state.borrow_mut();
            state.pin = None;
            state.trim();
        }
        self.persist_if_due();
    }

    fn still_joining(&self, copy: usize) -> Result<(), RingError> {
        self.failure().map_or(Ok(()), Err)?;
        let copies = self.copies.borrow();
        match (copies[copy].state, copies[copy].error) {
            (CopyState::Joining, _) => Ok(()),
            (_, error) => Err(RingError::Drive { copy, source: error.unwrap_or(IoError::Gone) }),
        }
    }

    /// Makes sure that nothing of a region's past ever counts.
    async fn outdo(self: &Rc<Self>, region: &Region) -> Result<(), RingError> {
        let (generation, incarnation) = outdone(std::slice::from_ref(region), self.id).await;
        {
            let mut state = self.state.borrow_mut();
            state.generation = state.generation.max(generation);
            state.incarnation = state.incarnation.max(incarnation) + INCARNATIONS_AHEAD;
            state.fence = state.sequence;
        }
        self.persist_now().await
    }

    /// Copies what is live and was cut before now.
    async fn copy_to(self: &Rc<Self>, copy: usize, region: &Region) -> Result<(), RingError> {
        let end = self.state.borrow().sequence;
        while let Some(frame) = self.pin_next(end) {
            while self.state.borrow().stable_sequence() <= frame.sequence {
                self.still_joining(copy)?;
                self.changed.wait().await;
            }
            self.still_joining(copy)?;
            let image = self.read_frame(&frame).await?;
            let written = region.write(self.blocks, frame.block, image, false).await;
            written.map_err(|source| RingError::Drive { copy, source })?;
            self.state.borrow_mut().pin = Some(frame.sequence + 1);
        }
        region.drive.flush().await.map_err(|source| RingError::Drive { copy, source })
    }

    /// The next frame to copy, kept from being overwritten.
    fn pin_next(self: &Rc<Self>, end: u64) -> Option<Live> {
        let next = {
            let mut state = self.state.borrow_mut();
            let (from, released) = (state.pin.unwrap_or(0), state.released);
            let mut frames = state.live.iter().take_while(|frame| frame.sequence < end);
            let next = frames.find(|frame| frame.sequence >= from && frame.end > released).copied();
            state.pin = next.map(|frame| frame.sequence);
            state.trim();
            next
        };
        self.persist_if_due();
        next
    }

    /// A stable frame as it lies on the copies that count, verified.
    async fn read_frame(&self, frame: &Live) -> Result<Buf, RingError> {
        let mut failure = RingError::Damaged { from: Position(frame.end - 1) };
        for copy in self.live_copies() {
            let Some(Target { region, .. }) = self.target(copy) else { continue };
            match self.read_verified(copy, region, frame).await {
                Found::Valid(image) => return Ok(image),
                Found::Invalid => {}
                Found::Unreadable(source) => failure = RingError::Drive { copy, source },
            }
        }
        Err(failure)
    }

    async fn read_verified(&self, copy: usize, region: Region, frame: &Live) -> Found<Buf> {
        let mut reader = Reader::new(copy, region, self.blocks);
        let fits = |link: &crate::frame::Link| link.ring == self.id && link.sequence == frame.sequence;
        let section = match reader.section(frame.block, frame.blocks, fits).await {
            Found::Valid(section) if section.frame.checksum == frame.checksum => section,
            Found::Unreadable(error) => return Found::Unreadable(error),
            _ => return Found::Invalid,
        };
        let mut pages = Vec::new();
        for page in reader.pages(&section.frame).await {
            match page {
                Found::Valid(page) => pages.push(page),
                Found::Invalid => return Found::Invalid,
                Found::Unreadable(error) => return Found::Unreadable(error),
            }
        }
        Found::Valid(section.image(&pages))
    }
}
