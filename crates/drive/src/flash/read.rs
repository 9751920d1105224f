//! Reads: from the mapping to the host, one run of pages that lie together after the other.
//!
//! Invariant: the runs of a read leave the controller together and pass dies, channels and link side by side.

use rand_core::Rng;

use super::backlog::Passage;
use super::blocks::NONE;
use super::ftl::{HostStripe, Mapped};
use super::geometry::Place;
use super::model::FlashModel;

/// Consecutive pages of a read that lie in one stripe and are read together.
#[derive(Clone, Copy)]
struct Run {
    source: Source,
    /// The first page.
    place: Place,
    sectors: u64,
}

/// Where a page is read from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// Never written or discarded: the controller answers alone.
    Unmapped,
    /// A stripe of a die.
    Stripe { die: u32, stripe: u32 },
    /// A die, where the model does not know more: another alias of the page was discarded.
    Die(u32),
}

impl FlashModel {
    /// Takes a read that was admitted at `at`; returns when its last sector is at the host.
    pub(super) fn read(&mut self, at: u64, lba: u64, sectors: u64) -> u64 {
        let served = self.cores.serve(at, self.costs.controller_read);
        let (shift, end) = (self.costs.page_shift, lba + sectors);
        let (mut page, last) = (lba >> shift, (end - 1) >> shift);
        let mut place = self.ftl.geometry.place(page);
        let mut run = Run { source: self.source(page, place), place, sectors: 0 };
        let (mut done, mut run_from) = (served, lba);
        while page < last {
            page += 1;
            place = self.ftl.geometry.next_place(place, page);
            let source = self.source(page, place);
            if source != run.source {
                run.sectors = (page << shift) - run_from;
                done = done.max(self.read_run(served, run));
                (run.source, run.place) = (source, place);
                run_from = page << shift;
            }
        }
        run.sectors = end - run_from;
        done.max(self.read_run(served, run))
    }

    /// Reads a run from its die and sends it to the host.
    fn read_run(&mut self, served: u64, run: Run) -> u64 {
        let mut read = Passage::new(served);
        match run.source {
            Source::Stripe { die, stripe } if !self.is_buffered(run.place, die, stripe, served) => {
                self.read_die(&mut read, die, run.sectors);
            }
            Source::Die(die) => self.read_die(&mut read, die, run.sectors),
            _ => {}
        }
        read.pass(&mut self.link_to_host, run.sectors * self.costs.read_sector_ps / 1_000);
        read.ready
    }

    fn read_die(&mut self, read: &mut Passage, die: u32, sectors: u64) {
        let costs = &self.costs;
        let length = if costs.read_width == 0 {
            costs.read
        } else {
            costs.read_least + ((u64::from(self.random.next_u32()) * costs.read_width) >> 32)
        };
        let in_register = self.dies[die as usize].read(read.ready, length, &costs.die);
        read.hold(in_register - length, length);
        let channel = &mut self.channels[(die % self.ftl.geometry.channels) as usize];
        channel.read(read, costs.channel(sectors), costs.channel_page);
    }

    #[inline]
    pub(super) fn source(&self, host_page: u64, place: Place) -> Source {
        let geometry = &self.ftl.geometry;
        let Mapped { slot, owner } = self.ftl.pages[place.page as usize];
        if slot != NONE {
            let stripe = geometry.stripe_of(slot);
            return Source::Stripe { die: geometry.die_of_stripe(stripe), stripe };
        }
        if owner == NONE || owner == place.alias {
            Source::Unmapped
        } else {
            Source::Die((host_page % u64::from(geometry.dies)) as u32)
        }
    }

    /// Whether a page's stripe is not yet programmed, so that the write buffer still answers for it, and it is this
    /// alias of the page that was written.
    #[inline]
    pub(super) fn is_buffered(&self, place: Place, die: u32, stripe: u32, at: u64) -> bool {
        let slot = stripe * self.ftl.geometry.slots_per_stripe;
        let is_open = self.ftl.in_open_stripe(slot);
        if !is_open && self.dies[die as usize].background_until() <= at {
            return false;
        }
        self.ftl.pages[place.page as usize].owner == place.alias
            && (is_open || self.is_queued(slot, die, stripe, at))
    }

    /// Whether a stripe waits for its program or is being programmed.
    fn is_queued(&self, slot: u32, die: u32, stripe: u32, at: u64) -> bool {
        let serial = self.ftl.stripe_serial[stripe as usize];
        let group = self.ftl.geometry.group_of(slot);
        let age = self.ftl.groups[group as usize].serial.wrapping_sub(serial);
        let stripe = HostStripe { group, serial, die };
        serial != 0 && age < self.costs.buffer_stripes && self.programmed_at(stripe) > at
    }
}
