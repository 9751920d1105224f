//! The whole array is copied, and copy and original are served, each by its own hosts; then a drive of the copy lies in the
//! place of the original's.
//!
//! Both are the same array by everything but what they hold and the starts that they had: no start may take the one's drive
//! for the other's.

use std::collections::BTreeMap;

use crate::config::pick;
use crate::run::{Run, peace};
use crate::starts::Attempt;
use crate::system::System;

impl<S: System> Run<S> {
    /// Has the array served in two copies, if it is whole.
    pub(crate) fn copy_served_elsewhere(&mut self) -> Result<(), String> {
        let session = self.session.clone();
        let mut random = session.random(0xc0b1);
        let Some(present) = self.whole_array().filter(|present| present.len() > 1) else { return Ok(()) };
        if !session.config.has_incidents() || random.chance(0.8) {
            return Ok(());
        }
        session.count("copies that were served elsewhere");
        session.is_calm.set(true);
        let copied = session.shelf.borrow().images();
        let (auditor, atlas) = (session.auditor.borrow().clone(), session.atlas.borrow().clone());
        self.live(&peace(), async |_| Ok(()))?;
        let is_whole = |run: &Run<S>| run.whole_array().as_ref() == Some(&present);
        let was_whole = is_whole(self);
        let served_there = session.active.borrow().clone();
        let name = pick(&present, &mut random);
        let foreign = session.shelf.borrow().medium(&name).image();
        session.shelf.borrow().restore(&copied);
        session.auditor.replace(auditor);
        session.atlas.replace(atlas);
        session.known_lost.borrow_mut().clear();
        session.counted_lost.borrow_mut().clear();
        self.live(&peace(), async |_| Ok(()))?;
        // A drive that has left one of the two, or whose join there a power cut has undone, belongs to no array.
        let serves_in_both = served_there.contains(&name) && session.active.borrow().contains(&name);
        if !was_whole || !is_whole(self) || !serves_in_both {
            // Drives that still hung from before were lost to one of the two.
            session.is_calm.set(false);
            return Ok(());
        }
        let own = session.shelf.borrow().medium(&name).image();
        session.shelf.borrow().restore(&BTreeMap::from([(name.clone(), foreign)]));
        self.refused_start(&Attempt::of("starts refused with a drive of a copy", present))?;
        session.shelf.borrow().restore(&BTreeMap::from([(name, own)]));
        session.is_calm.set(false);
        Ok(())
    }
}
