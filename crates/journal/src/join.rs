//! Adding a copy while the ring is in use.
//!
//! A region may hold the same ring as others went on with it, without the copies that are here: frames and headers that
//! are newer than those of this ring, and that a recovery would take for what was lost. So it is blanked first, and that is
//! stable before anything of this ring is written there.
//!
//! From then on every frame and header is written to it too. What was there before is copied frame by frame, verified on
//! the way; the tail is not persisted past the frame that is being copied, so that nothing new is ever written where the
//! copying still writes. When all is stable on the copy, a header is.
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
use crate::region::region_sectors;
use crate::ring::{Core, bad_region};
use crate::state::Live;
use crate::{Position, Region, Ring, RingError};

impl Ring {
    /// Makes `region` copy `copy` of the ring, in the place of one that is lost or as the next one, while appends go on.
    /// The region needs the size of the ring. Ends when the copy is equal to the others; dropping the future gives up.
    pub async fn add_copy(&self, copy: usize, region: Region) -> Result<(), RingError> {
        let core = &self.0;
        core.failure().map_or(Ok(()), Err)?;
        if region.blocks().is_none_or(|blocks| blocks < core.blocks) {
            return Err(bad_region(copy, &region, region_sectors(core.blocks)));
        }
        let joining = core.take_place(copy)?;
        joining.blank(&region).await?;
        joining.begin(&region);
        joining.copy_to(&region).await?;
        core.persist_now().await?;
        joining.check()?;
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

/// A copy's place while it joins; it is free again if the copy does not become complete.
struct Joining {
    core: Rc<Core>,
    copy: usize,
    /// The turn of the place, which another may have taken since.
    turn: u64,
}

impl Joining {
    /// Whether the copy still joins, and nothing of it has failed.
    fn check(&self) -> Result<(), RingError> {
        self.core.failure().map_or(Ok(()), Err)?;
        let copies = self.core.copies.borrow();
        let place = &copies[self.copy];
        match place.state {
            CopyState::Joining if place.turn == self.turn => Ok(()),
            _ => Err(self.failed(place.error.unwrap_or(IoError::Gone))),
        }
    }

    fn failed(&self, source: IoError) -> RingError {
        RingError::Drive { copy: self.copy, source }
    }

    /// Makes sure that nothing of a region's past ever counts.
    async fn blank(&self, region: &Region) -> Result<(), RingError> {
        region.blank(self.core.blocks).await.map_err(|source| self.failed(source))?;
        self.check()
    }

    /// What is written from now on goes to the region too.
    fn begin(&self, region: &Region) {
        self.core.copies.borrow_mut()[self.copy].region = Some(region.clone());
    }

    /// Copies what is live and was cut before now.
    async fn copy_to(&self, region: &Region) -> Result<(), RingError> {
        let core = &self.core;
        let end = core.state.borrow().sequence;
        while let Some(frame) = core.pin_next(end) {
            while core.state.borrow().stable_sequence() <= frame.sequence {
                self.check()?;
                core.changed.wait().await;
            }
            self.check()?;
            let image = core.read_frame(&frame).await?;
            let written = region.write(core.blocks, frame.block, image, false).await;
            written.map_err(|source| self.failed(source))?;
            self.check()?;
            core.state.borrow_mut().pin = Some(frame.sequence + 1);
        }
        // Frames that were released before were not copied, so no copy is known by one of them.
        core.state.borrow_mut().newest_stable.take_if(|newest| newest.sequence < end);
        region.drive.flush().await.map_err(|source| self.failed(source))
    }
}

impl Drop for Joining {
    fn drop(&mut self) {
        let joins = |place: &Place| place.state == CopyState::Joining;
        let (is_own, others_join) = {
            let copies = self.core.copies.borrow();
            let is_own = joins(&copies[self.copy]) && copies[self.copy].turn == self.turn;
            (is_own, !is_own && copies.iter().any(joins))
        };
        if is_own {
            self.core.set_copy_state(self.copy, CopyState::Lost);
        }
        // One that joins since this one was dropped has frames of its own pinned.
        if !others_join {
            self.core.unpin();
        }
    }
}

impl Core {
    /// Keeps a place for a copy, to which nothing is written yet.
    fn take_place(self: &Rc<Self>, copy: usize) -> Result<Joining, RingError> {
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
        copies[copy] = Place { region: None, state: CopyState::Joining, error: None, turn };
        drop(copies);
        // One that was dropped before may not have noticed yet.
        self.unpin();
        Ok(Joining { core: self.clone(), copy, turn })
    }

    fn unpin(self: &Rc<Self>) {
        {
            let mut state = self.state.borrow_mut();
            state.pin = None;
            state.trim();
        }
        self.persist_if_due();
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
