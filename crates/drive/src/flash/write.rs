//! Writes, flushes and discards; programs and collection in the background.
//!
//! A write is acknowledged when all its pages have a place in the write buffer. A place is taken when a stripe
//! is begun and freed when it is programmed; stripes go to the groups and within them to the dies in turn, so
//! each die has its share of the places, and a writer waits where that share is used up.
//!
//! Invariant: a stripe is programmed after its data has come over the link and its die's channel.

use tier0_units::ByteCount;

use super::backlog::Passage;
use super::ftl::{HostStripe, Operation};
use super::geometry::Place;
use super::model::FlashModel;
use super::read::Source;

impl FlashModel {
    /// Where the completion of a host stripe is kept, in turn with those `buffer_stripes` before and after it.
    #[inline]
    fn buffer_place(&self, stripe: HostStripe) -> usize {
        let places = self.costs.buffer_stripes;
        stripe.group as usize * places as usize + (stripe.serial % places) as usize
    }

    /// When the stripe that was last programmed from the buffer place of `stripe` is on its die.
    #[inline]
    pub(super) fn programmed_at(&self, stripe: HostStripe) -> u64 {
        self.dies[stripe.die as usize].work_done_at(self.programmed[self.buffer_place(stripe)])
    }

    /// Takes a write that was admitted at `at`; returns when it is acknowledged.
    pub(super) fn write(&mut self, at: u64, lba: u64, sectors: u64) -> u64 {
        let served = self.cores.serve(at, self.costs.controller_write);
        let full_duplex = self.parameters.interface_full_duplex;
        let link = if full_duplex { &mut self.link_to_drive } else { &mut self.link_to_host };
        let mut sent = Passage::new(served);
        sent.pass(link, sectors * self.costs.write_sector_ps / 1_000);
        let mut done = sent.ready;
        let (shift, end) = (self.costs.page_shift, lba + sectors);
        let (first, last) = (lba >> shift, (end - 1) >> shift);
        let mut place = self.ftl.geometry.place(first);
        for page in first..=last {
            if page > first {
                place = self.ftl.geometry.next_place(place, page);
            }
            if lba > page << shift || end < (page + 1) << shift {
                self.read_before_partial_write(done, page, place);
            }
            done = done.max(self.write_page(done, place));
        }
        if self.parameters.write_buffer == ByteCount(0) { self.program_open_stripe(done) } else { done }
    }

    /// Puts one page into the write buffer; returns when there is a place for it.
    #[inline]
    fn write_page(&mut self, at: u64, place: Place) -> u64 {
        let written = self.ftl.write(place);
        let buffered = match written.opened {
            Some(stripe) if stripe.serial > self.costs.buffer_stripes => at.max(self.programmed_at(stripe)),
            _ => at,
        };
        if let Some(stripe) = written.closed {
            self.program(buffered, stripe);
        }
        buffered
    }

    /// Queues the read of a page of which the host writes a part: after the acknowledgement, from the buffer.
    fn read_before_partial_write(&mut self, at: u64, page: u64, place: Place) {
        let die = match self.source(page, place) {
            Source::Stripe { die, stripe } if !self.is_buffered(place, die, stripe, at) => die,
            Source::Die(die) => die,
            _ => return,
        };
        self.queue_read(at, die, 1);
    }

    /// Queues the program of a stripe and the collection it caused.
    fn program(&mut self, at: u64, stripe: HostStripe) {
        let place = self.buffer_place(stripe);
        self.programmed[place] = self.queue_program(at, stripe.die);
        for number in 0..self.ftl.operations.len() {
            match self.ftl.operations[number] {
                Operation::Read { die, pages } => self.queue_read(at, die, u64::from(pages)),
                Operation::Program { die } => {
                    self.queue_program(at, die);
                }
                Operation::Erase { group } => self.queue_erase(at, group),
            }
        }
    }

    /// Brings a stripe to its die and programs it; returns the die's work axis at the end.
    #[inline]
    fn queue_program(&mut self, at: u64, die: u32) -> u64 {
        let channel = &mut self.channels[(die % self.ftl.geometry.channels) as usize];
        let data_at = channel.background(at, self.costs.channel_stripe);
        self.dies[die as usize].queue(at, data_at, self.costs.die.program)
    }

    /// Reads pages in the background.
    #[inline]
    fn queue_read(&mut self, at: u64, die: u32, pages: u64) {
        self.dies[die as usize].queue(at, at, self.costs.read);
        let channel = &mut self.channels[(die % self.ftl.geometry.channels) as usize];
        channel.background(at, pages * self.costs.channel_slot);
    }

    /// Notes a modelled block as erased and charges an erase on each of its dies for every real block's worth.
    fn queue_erase(&mut self, at: u64, group: u32) {
        let per_group = self.ftl.geometry.dies_per_group;
        for die in &mut self.dies[(group * per_group) as usize..((group + 1) * per_group) as usize] {
            die.stripes_erased += self.costs.stripes_per_block / per_group;
            while die.stripes_erased >= self.costs.stripes_per_erase {
                die.stripes_erased -= self.costs.stripes_per_erase;
                die.queue_erase(at, self.costs.die.erase);
            }
        }
    }

    /// Takes a flush that was admitted at `at`; returns when what was acknowledged is safe.
    pub(super) fn flush(&mut self, at: u64) -> u64 {
        let served = self.cores.serve(at, self.costs.controller_write);
        if self.parameters.power_loss_protected { served } else { self.program_open_stripe(served) }
    }

    /// Programs what is buffered, the open stripe padded; returns when that is done.
    fn program_open_stripe(&mut self, at: u64) -> u64 {
        if let Some(stripe) = self.ftl.pad() {
            self.program(at, stripe);
        }
        (0..self.ftl.geometry.groups).map(|group| self.group_programmed_at(group)).fold(at, u64::max)
    }

    /// When the last host stripe of each die of a group is programmed.
    fn group_programmed_at(&self, group: u32) -> u64 {
        let (dies, last) = (self.ftl.geometry.dies_per_group, self.ftl.groups[group as usize].serial);
        let stripes = (last.saturating_sub(dies)..last).map(|before| {
            let die = group * dies + (before & (dies - 1));
            self.programmed_at(HostStripe { group, serial: before + 1, die })
        });
        stripes.fold(0, u64::max)
    }

    /// Takes a discard that was admitted at `at`; returns when it is acknowledged.
    pub(super) fn discard(&mut self, at: u64, lba: u64, sectors: u64) -> u64 {
        let sectors_per_page = 1 << self.costs.page_shift;
        let first = lba.div_ceil(sectors_per_page);
        let to_the_end = lba + sectors == self.capacity().0;
        let end =
            if to_the_end { self.ftl.geometry.host_pages } else { (lba + sectors) >> self.costs.page_shift };
        self.ftl.discard_range(first, end);
        self.cores.serve(at, self.costs.controller_write)
    }
}
