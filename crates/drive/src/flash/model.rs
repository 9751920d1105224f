//! The way of a command through the drive's resources, and the drive as its callers see it.
//!
//! Reads: queue, controller, then for each stripe touched die and channel, then the link. Writes: queue,
//! controller, link, write buffer, where they are acknowledged; a full stripe is programmed in the background.
//! A buffer place is taken when a stripe is begun and freed when it is programmed; stripes go to the groups and
//! within them to the dies in turn, so each die has its share of the places, and a writer waits where that share
//! is used up.
//!
//! Invariants: calls come in order of time; a command never completes before it is submitted.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;
use tier0_units::{ByteCount, Lba, Nanos, SECTOR_BYTES, SectorCount};

use super::admission::Admission;
use super::blocks::NONE;
use super::channel::Channel;
use super::cores::Cores;
use super::die::{Die, DieTimes};
use super::ftl::{Ftl, HostStripe, Operation};
use super::geometry::{Geometry, Place};
use super::parameters::{FlashParameters, FlashParametersError};
use super::statistics::FlashStatistics;
use super::timeline::Timeline;

/// Gaps remembered on the link, where the reads of all dies meet. Seven leave no measurable difference to
/// sixty-three (`tests/flash_timing.rs` has the loads).
const LINK_GAPS: usize = 7;

/// Least sectors that go over a channel: error correction works on pieces of this size.
const CHANNEL_SECTORS_MIN: u64 = 4;

/// What the host asks of the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlashCommand {
    /// Returns data.
    Read,
    /// Takes data; complete when it is in the write buffer.
    Write,
    /// Complete when all data acknowledged before is safe from power loss.
    Flush,
    /// Forgets data; whole logical pages only, the ragged ends of the range are ignored.
    Discard,
}

/// A modelled flash drive.
///
/// ```
/// use tier0_drive::flash::*;
/// use tier0_units::{ByteCount, Lba, Nanos, SectorCount};
///
/// let parameters = FlashParameters {
///     capacity: ByteCount::gb(1),
///     over_provisioning: 0.28,
///     channels: 4,
///     dies_per_channel: 2,
///     planes_per_die: 2,
///     page_bytes: 8192,
///     mapping_bytes: 4096,
///     pages_per_block: 256,
///     read_time: Nanos::from_micros(50),
///     read_time_spread: 0.0,
///     program_time: Nanos::from_micros(900),
///     erase_time: Nanos::from_millis(3),
///     channel_bytes_per_second: 400_000_000,
///     read_scheduling: ReadScheduling::BetweenOperations,
///     controller_cores: 4,
///     controller_read_time: Nanos::from_micros(20),
///     controller_write_time: Nanos::from_micros(20),
///     interface_bytes_per_second: 550_000_000,
///     interface_full_duplex: true,
///     controller_read_bytes_per_second: 550_000_000,
///     controller_write_bytes_per_second: 550_000_000,
///     write_buffer: ByteCount::mib(16),
///     power_loss_protected: true,
///     queue_depth: 32,
///     endurance_cycles: 3_000,
///     modelled_span: ByteCount::gib(2),
/// };
/// let mut drive = FlashModel::new(parameters, 42)?;
/// drive.precondition(Precondition::default());
/// let done = drive.submit(Nanos(1_000), FlashCommand::Read, Lba(800), SectorCount(16));
/// assert!(done > Nanos(1_000) + Nanos::from_micros(70));
/// # Ok::<(), FlashParametersError>(())
/// ```
#[derive(Clone, Debug)]
pub struct FlashModel {
    parameters: FlashParameters,
    pub(super) ftl: Ftl,
    pub(super) random: Pcg32,
    admission: Admission,
    cores: Cores,
    link_to_host: Timeline<LINK_GAPS>,
    /// Unused where the link is half duplex.
    link_to_drive: Timeline<LINK_GAPS>,
    dies: Vec<Die>,
    channels: Vec<Channel>,
    /// For each group, the work axis of the die at the end of its last `buffer_stripes` host programs.
    programmed: Vec<u64>,
    costs: Costs,
    latest: u64,
}

/// Parameters in the units of the data path.
#[derive(Clone, Copy, Debug)]
struct Costs {
    read: u64,
    /// Least read time and width of its spread.
    read_least: u64,
    read_width: u64,
    controller_read: u64,
    controller_write: u64,
    /// Sectors of a logical page, as a power of two.
    page_shift: u32,
    /// One logical page, one NAND page and one stripe over a channel.
    channel_slot: u64,
    channel_page: u64,
    channel_stripe: u64,
    /// Picoseconds per sector on a channel, and to and from the host.
    channel_sector_ps: u64,
    read_sector_ps: u64,
    write_sector_ps: u64,
    /// Stripes each group may have in the write buffer, a multiple of its dies.
    buffer_stripes: u32,
    /// Stripes of a modelled and of a real block.
    stripes_per_block: u32,
    stripes_per_erase: u32,
    die: DieTimes,
}

impl Costs {
    fn new(p: &FlashParameters, geometry: &Geometry) -> Costs {
        let channel = |bytes: u64| bytes * 1_000_000_000 / p.channel_bytes_per_second;
        let sector_ps = |rate: u64| SECTOR_BYTES * 1_000_000_000_000 / rate;
        let link = p.interface_bytes_per_second;
        let buffer_per_die = p.write_buffer.0 / p.stripe_bytes() / u64::from(p.dies());
        let spread = (p.read_time.0 as f64 * p.read_time_spread) as u64;
        Costs {
            read: p.read_time.0,
            read_least: p.read_time.0 - spread,
            read_width: 2 * spread,
            controller_read: p.controller_read_time.0,
            controller_write: p.controller_write_time.0,
            page_shift: p.mapping_bytes.ilog2() - SECTOR_BYTES.ilog2(),
            channel_slot: channel(u64::from(p.mapping_bytes)),
            channel_page: channel(u64::from(p.page_bytes)),
            channel_stripe: channel(p.stripe_bytes()),
            channel_sector_ps: sector_ps(p.channel_bytes_per_second),
            read_sector_ps: sector_ps(link.min(p.controller_read_bytes_per_second)),
            write_sector_ps: sector_ps(link.min(p.controller_write_bytes_per_second)),
            buffer_stripes: buffer_per_die.clamp(1, 1 << 20) as u32 * geometry.dies_per_group,
            stripes_per_block: geometry.slots_per_block / geometry.slots_per_stripe,
            stripes_per_erase: p.pages_per_block,
            die: DieTimes { program: p.program_time.0, erase: p.erase_time.0, scheduling: p.read_scheduling },
        }
    }

    fn channel(&self, sectors: u64) -> u64 {
        sectors.next_multiple_of(CHANNEL_SECTORS_MIN) * self.channel_sector_ps / 1_000
    }
}

/// What a die is taken to have erased at the start: dies erase in step within a group, and groups fill in step, so
/// they start at different parts of a real block.
fn stripes_erased_before(p: &FlashParameters, die: u32) -> u32 {
    (u64::from(p.pages_per_block) * u64::from(die) / u64::from(p.dies())) as u32
}

/// Consecutive pages of a read that lie in one stripe and are read together.
#[derive(Clone, Copy)]
struct Run {
    source: Source,
    sectors: u64,
}

/// Where a page is read from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    /// Never written or discarded: the controller answers alone.
    Unmapped,
    /// A stripe of a die.
    Stripe { die: u32, stripe: u32 },
    /// A die, where the model does not know more: another alias of the page was discarded.
    Die(u32),
}

impl FlashModel {
    /// A drive fresh from the factory. The seed determines everything that is random about it.
    ///
    /// # Errors
    /// [`FlashParametersError`] where a parameter is out of its range.
    pub fn new(parameters: FlashParameters, seed: u64) -> Result<FlashModel, FlashParametersError> {
        parameters.check()?;
        let p = &parameters;
        let geometry = Geometry::new(p);
        let costs = Costs::new(p, &geometry);
        Ok(FlashModel {
            programmed: vec![0; geometry.groups as usize * costs.buffer_stripes as usize],
            ftl: Ftl::new(geometry),
            random: Pcg32::seed_from_u64(seed),
            admission: Admission::new(p.queue_depth),
            cores: Cores::new(p.controller_cores),
            link_to_host: Timeline::new(),
            link_to_drive: Timeline::new(),
            dies: (0..p.dies()).map(|die| Die::new(stripes_erased_before(p, die))).collect(),
            channels: vec![Channel::new(); p.channels as usize],
            costs,
            latest: 0,
            parameters,
        })
    }

    /// A copy with its own randomness: one preconditioned drive can stand for all of its kind in a study.
    pub fn clone_with_seed(&self, seed: u64) -> FlashModel {
        FlashModel { random: Pcg32::seed_from_u64(seed), ..self.clone() }
    }

    /// The parameters the drive was made with.
    pub fn parameters(&self) -> &FlashParameters {
        &self.parameters
    }

    /// What the drive holds, in sectors.
    pub fn capacity(&self) -> SectorCount {
        SectorCount::in_bytes(self.parameters.capacity)
    }

    /// Host pages that share one modelled page: 1 for a drive no larger than `modelled_span`.
    pub fn scale(&self) -> u32 {
        self.ftl.geometry.scale
    }

    /// Takes a command at `now` and returns when it completes. `lba` and `sectors` are ignored by a flush.
    ///
    /// # Panics
    /// If `now` is earlier than that of the call before, or the range is empty or ends beyond the capacity.
    pub fn submit(&mut self, now: Nanos, command: FlashCommand, lba: Lba, sectors: SectorCount) -> Nanos {
        assert!(now.0 >= self.latest, "submitted at {now} after {}", Nanos(self.latest));
        self.latest = now.0;
        let at = self.admission.admit(now.0);
        let done = match command {
            FlashCommand::Flush => self.flush(at),
            _ => {
                let fits = sectors.0 > 0 && lba.0 + sectors.0 <= self.capacity().0;
                assert!(fits, "{sectors} sectors at {lba} do not fit a drive of {}", self.capacity());
                match command {
                    FlashCommand::Read => self.read(at, lba.0, sectors.0),
                    FlashCommand::Write => self.write(at, lba.0, sectors.0),
                    _ => self.discard(at, lba.0, sectors.0),
                }
            }
        };
        self.admission.occupy(done);
        Nanos(done)
    }

    /// Counters, write amplification and wear.
    pub fn statistics(&self) -> FlashStatistics {
        let ftl = &self.ftl;
        let blocks = ftl.erases.len() as f64;
        // A modelled block is a part of a real one, and so is an erase of it: the mean over modelled blocks is
        // the mean over real ones, but for the scale of the span.
        let erases_mean = ftl.blocks_erased as f64 / blocks / f64::from(ftl.geometry.scale);
        FlashStatistics {
            host_pages_written: ftl.host_pages_written,
            nand_pages_written: ftl.nand_pages_written,
            pages_moved: ftl.pages_moved,
            blocks_erased: ftl.blocks_erased,
            erases_min: ftl.erases.iter().copied().min().unwrap_or(0),
            erases_max: ftl.erases.iter().copied().max().unwrap_or(0),
            erases_mean,
            wear_percent: 100.0 * erases_mean / f64::from(self.parameters.endurance_cycles),
            mapped_share: f64::from(ftl.mapped_pages) / f64::from(ftl.geometry.modelled_pages),
        }
    }

    /// Checks that pages and valid slots pair one to one and that all counts agree, in time proportional to
    /// the modelled span.
    ///
    /// # Panics
    /// If the model has a bug.
    pub fn assert_consistent(&self) {
        self.ftl.assert_consistent();
    }

    fn read(&mut self, at: u64, lba: u64, sectors: u64) -> u64 {
        let served = self.cores.serve(at, self.costs.controller_read);
        let (shift, end) = (self.costs.page_shift, lba + sectors);
        let (mut page, last) = (lba >> shift, (end - 1) >> shift);
        let mut place = self.ftl.geometry.place(page);
        let mut run = Run { source: self.source(page, place), sectors: 0 };
        let (mut done, mut run_from) = (served, lba);
        while page < last {
            page += 1;
            place = self.ftl.geometry.next_place(place, page);
            let source = self.source(page, place);
            if source != run.source {
                run.sectors = (page << shift) - run_from;
                done = done.max(self.read_run(served, run));
                run.source = source;
                run_from = page << shift;
            }
        }
        run.sectors = end - run_from;
        done.max(self.read_run(served, run))
    }

    /// Reads a run from its die and sends it to the host.
    fn read_run(&mut self, at: u64, run: Run) -> u64 {
        let ready = match run.source {
            Source::Unmapped => at,
            Source::Stripe { die, stripe } if self.is_buffered(die, stripe, at) => at,
            Source::Stripe { die, .. } | Source::Die(die) => self.read_die(at, die, run.sectors),
        };
        self.link_to_host.reserve(ready, run.sectors * self.costs.read_sector_ps / 1_000)
    }

    fn read_die(&mut self, at: u64, die: u32, sectors: u64) -> u64 {
        let costs = &self.costs;
        let length = if costs.read_width == 0 {
            costs.read
        } else {
            costs.read_least + ((u64::from(self.random.next_u32()) * costs.read_width) >> 32)
        };
        let in_register = self.dies[die as usize].read(at, length, &costs.die);
        let channel = die % self.ftl.geometry.channels;
        self.channels[channel as usize].read(in_register, costs.channel(sectors), costs.channel_page)
    }

    #[inline]
    fn source(&self, host_page: u64, place: Place) -> Source {
        let geometry = &self.ftl.geometry;
        let mapping = self.ftl.map[place.page as usize];
        if mapping.slot != NONE {
            let stripe = geometry.stripe_of(mapping.slot);
            Source::Stripe { die: geometry.die_of_stripe(stripe), stripe }
        } else if mapping.alias == NONE || mapping.alias == place.alias {
            Source::Unmapped
        } else {
            Source::Die((host_page % u64::from(geometry.dies)) as u32)
        }
    }

    /// Whether a stripe is not yet programmed, so that the write buffer still answers for it.
    #[inline]
    fn is_buffered(&self, die: u32, stripe: u32, at: u64) -> bool {
        let slot = stripe * self.ftl.geometry.slots_per_stripe;
        if self.ftl.in_open_stripe(slot) {
            return true;
        }
        if self.dies[die as usize].background_until() <= at {
            return false;
        }
        let serial = self.ftl.stripe_serial[stripe as usize];
        let group = self.ftl.geometry.group_of(slot);
        let age = self.ftl.groups[group as usize].serial.wrapping_sub(serial);
        let stripe = HostStripe { group, serial, die };
        serial != 0 && age < self.costs.buffer_stripes && self.programmed_at(stripe) > at
    }

    /// Where the completion of a host stripe is kept, in turn with those `buffer_stripes` before and after it.
    #[inline]
    fn buffer_place(&self, stripe: HostStripe) -> usize {
        let places = self.costs.buffer_stripes;
        stripe.group as usize * places as usize + (stripe.serial % places) as usize
    }

    /// When the stripe that was last programmed from the buffer place of `stripe` is on its die.
    #[inline]
    fn programmed_at(&self, stripe: HostStripe) -> u64 {
        self.dies[stripe.die as usize].work_done_at(self.programmed[self.buffer_place(stripe)])
    }

    fn write(&mut self, at: u64, lba: u64, sectors: u64) -> u64 {
        let served = self.cores.serve(at, self.costs.controller_write);
        let full_duplex = self.parameters.interface_full_duplex;
        let link = if full_duplex { &mut self.link_to_drive } else { &mut self.link_to_host };
        let mut done = link.reserve(served, sectors * self.costs.write_sector_ps / 1_000);
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
            Source::Stripe { die, stripe } if !self.is_buffered(die, stripe, at) => die,
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

    fn flush(&mut self, at: u64) -> u64 {
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

    fn discard(&mut self, at: u64, lba: u64, sectors: u64) -> u64 {
        let sectors_per_page = 1 << self.costs.page_shift;
        let first = lba.div_ceil(sectors_per_page);
        let to_the_end = lba + sectors == self.capacity().0;
        let end =
            if to_the_end { self.ftl.geometry.host_pages } else { (lba + sectors) >> self.costs.page_shift };
        self.ftl.discard_range(first, end);
        self.cores.serve(at, self.costs.controller_write)
    }
}
