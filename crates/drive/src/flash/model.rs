//! The way of a command through the drive's resources, and the drive as its callers see it.
//!
//! Reads: queue, controller, then for each stripe touched die and channel, then the link (`read`). Writes: queue,
//! controller, link, write buffer, where they are acknowledged; a full stripe is programmed in the background
//! (`write`).
//!
//! Invariants: calls come in order of time; a command never completes before it is submitted.

use rand_core::SeedableRng;
use rand_pcg::Pcg32;
use tier0_units::{Lba, Nanos, SectorCount};

use super::admission::Admission;
use super::backlog::Backlog;
use super::channel::Channel;
use super::cores::Cores;
use super::costs::Costs;
use super::die::Die;
use super::ftl::Ftl;
use super::geometry::Geometry;
use super::parameters::{FlashParameters, FlashParametersError};
use super::statistics::FlashStatistics;

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
    pub(super) parameters: FlashParameters,
    pub(super) ftl: Ftl,
    pub(super) random: Pcg32,
    pub(super) admission: Admission,
    pub(super) cores: Cores,
    pub(super) link_to_host: Backlog,
    /// Unused where the link is half duplex.
    pub(super) link_to_drive: Backlog,
    pub(super) dies: Vec<Die>,
    pub(super) channels: Vec<Channel>,
    /// For each group, the work axis of the die at the end of its last `buffer_stripes` host programs.
    pub(super) programmed: Vec<u64>,
    pub(super) costs: Costs,
    latest: u64,
}

/// What a die is taken to have erased at the start: dies erase in step within a group, and groups fill in step, so
/// they start at different parts of a real block.
fn stripes_erased_before(p: &FlashParameters, die: u32) -> u32 {
    (u64::from(p.pages_per_block) * u64::from(die) / u64::from(p.dies())) as u32
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
            link_to_host: Backlog::default(),
            link_to_drive: Backlog::default(),
            dies: (0..p.dies()).map(|die| Die::new(stripes_erased_before(p, die))).collect(),
            channels: vec![Channel::default(); p.channels as usize],
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
        if matches!(command, FlashCommand::Read | FlashCommand::Write) {
            self.ftl.prefetch(lba.0 >> self.costs.page_shift);
        }
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
}
