//! The two legs of a mirror that run alone, one after the other, each with the administrator's consent.
//!
//! Both acknowledge writes, so there are two histories. With both present no start may choose between them; once the
//! administrator gives one up, the other's content is there, all of it and nothing of the first.

use tier0_raid::layout::RaidLevel;

use crate::heal::heal;
use crate::run::{Run, peace};
use crate::shelf::Whereabouts;
use crate::starts::Attempt;
use crate::system::System;

impl<S: System> Run<S> {
    /// Lets the legs of a mirror run alone, if the array is one and is whole.
    pub(crate) fn halves_alone(&mut self) -> Result<(), String> {
        let session = self.session.clone();
        let mut random = session.random(0x4a1f);
        let array = &session.config.array;
        let is_pair = array.level == RaidLevel::Raid1 && array.drives == 2 && array.spare_drives == 0;
        let Some(present) = self.whole_array().filter(|present| is_pair && present.len() == 2) else {
            return Ok(());
        };
        if !session.config.has_incidents() || random.chance(0.4) {
            return Ok(());
        }
        session.count("halves that ran alone");
        session.is_calm.set(true);
        let before = session.auditor.borrow().clone();
        let mut histories = Vec::new();
        for (own, other) in [(0, 1), (1, 0)] {
            session.auditor.replace(before.clone());
            self.alone(&present[own], &present[other])?;
            histories.push(session.auditor.borrow().clone());
        }
        session.shelf.borrow_mut().put(&present[0], Whereabouts::In);
        self.refused_start(&Attempt::of("starts refused with two histories", present.clone()))?;
        let kept = random.below(2) as usize;
        let given_up = present[1 - kept].clone();
        session.auditor.replace(histories.swap_remove(kept));
        session.known_lost.replace([given_up.clone()].into());
        session.counted_lost.replace([given_up.clone()].into());
        session.consents.borrow_mut().insert(given_up.clone());
        self.live(&peace(), async |life| heal(&life).await)?;
        session.is_calm.set(false);
        session.images.note_old(&given_up);
        session.consents.borrow_mut().clear();
        session.shelf.borrow_mut().put(&given_up, Whereabouts::Out);
        Ok(())
    }

    /// The drives of the array, if it has all of them, each knows of all, and nothing is wrong with what they hold.
    pub(crate) fn whole_array(&self) -> Option<Vec<String>> {
        let session = &self.session;
        let names = |whereabouts| session.shelf.borrow().names(whereabouts);
        let is_whole = session.places_known.get()
            && session.atlas.borrow().is_clear()
            && names(Whereabouts::Gone).is_empty()
            && names(Whereabouts::Out).is_empty()
            && session.known_lost.borrow().is_empty();
        is_whole.then(|| names(Whereabouts::In))
    }

    /// A life with one drive only.
    fn alone(&mut self, own: &str, other: &str) -> Result<(), String> {
        let session = self.session.clone();
        session.known_lost.borrow_mut().clear();
        session.counted_lost.borrow_mut().clear();
        session.atlas.borrow_mut().clear();
        session.shelf.borrow_mut().put(own, Whereabouts::In);
        session.shelf.borrow_mut().put(other, Whereabouts::Gone);
        self.live(&peace(), async |_| Ok(()))
    }
}
