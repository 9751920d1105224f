//! Patience with pages that several drives of a row cannot read at once.
//!
//! The guard of a drive soon gives up a page that the drive cannot read, because the rest of the row has it too. Where
//! the rest cannot be read either, the page is not lost yet: a path or an enclosure that fails for a second does that.
//! The page is read again for a while before a reader gets an error, and for longer before anything is written in its
//! place or it is recorded as lost.

use std::cell::Cell;

use tier0_units::Nanos;
use tier0_world::{PlantedBug, World, planted};

/// The first pause before a page is read again; it doubles.
const PAUSE_MIN: Nanos = Nanos::from_millis(20);
/// The longest.
const PAUSE_MAX: Nanos = Nanos::from_secs(1);
/// After a wait in vain, later ones for the same stake are short for so long: a stretch of bad sectors shall not cost a
/// wait for each.
const TIRED: Nanos = Nanos::from_secs(60);

/// What happens if a page stays unreadable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stake {
    /// Its reader gets an error, and may ask again.
    Answer,
    /// It is written over, or left out of a rebuilt column: it cannot be had again.
    Content,
}

impl Stake {
    fn patience(self, is_tired: bool) -> Nanos {
        match (self, is_tired) {
            (Stake::Answer, false) => Nanos::from_secs(5),
            (Stake::Answer, true) => Nanos::ZERO,
            (Stake::Content, false) => Nanos::from_secs(60),
            (Stake::Content, true) => Nanos::from_secs(10),
        }
    }
}

/// How the last waits of a shard ended. A reader's impatience says nothing of what content is worth.
#[derive(Default)]
pub(crate) struct Memory {
    /// When one for an answer ended in vain, unless a later one did not.
    answer: Cell<Option<Nanos>>,
    /// The same of those for content.
    content: Cell<Option<Nanos>>,
}

impl Memory {
    fn of(&self, stake: Stake) -> &Cell<Option<Nanos>> {
        match stake {
            Stake::Answer => &self.answer,
            Stake::Content => &self.content,
        }
    }
}

/// One wait for pages. It begins with the first pause.
pub struct Wait<'a> {
    /// None where there is no drive.
    world: Option<&'a World>,
    stake: Stake,
    /// When the last one for the same stake ended in vain.
    in_vain: &'a Cell<Option<Nanos>>,
    until: Option<Nanos>,
    pause: Nanos,
}

impl<'a> Wait<'a> {
    pub(crate) fn new(world: Option<&'a World>, memory: &'a Memory, stake: Stake) -> Wait<'a> {
        Wait { world, stake, in_vain: memory.of(stake), until: None, pause: PAUSE_MIN }
    }

    /// Waits before the next try; false where patience has run out. Time in which the runtime did not turn does not count.
    pub async fn again(&mut self) -> bool {
        let Some(world) = self.world else { return false };
        let now = world.turned();
        let until = *self.until.get_or_insert_with(|| {
            let is_tired = self.in_vain.get().is_some_and(|at| now < at + TIRED);
            match planted(PlantedBug::GiveUpUnreadable) {
                true => now,
                false => now + self.stake.patience(is_tired),
            }
        });
        if now >= until {
            self.in_vain.set(Some(now));
            return false;
        }
        world.sleep(self.pause).await;
        self.pause = Nanos(self.pause.0 * 2).min(PAUSE_MAX);
        true
    }

    /// What was wanted could be read in the end; nothing where no wait was needed.
    pub fn succeeded(&self) {
        if self.until.is_some() {
            self.in_vain.set(None);
        }
    }
}
