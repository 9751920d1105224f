//! Verified I/O on slots: reads, and the steps of destaging that lie between the log and the drives.

mod changed;
mod heal;
mod lane;
mod locks;
mod plan;
mod read;
mod recall;
mod replay;
mod request;
mod unchecked;
mod write;

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use tier0_raid::checksum::page_checksum;
use tier0_raid::io::RaidIo;
use tier0_raid::set::SlotMap;
use tier0_stats::IoStats;
use tier0_units::{PAGE_SECTORS, SlotRef};
use tier0_world::{Buf, BufMut, IoError};

pub use heal::{SlotRebuilt, SlotScrub};
pub use lane::MemoryShare;
pub use replay::ReplayedRow;
pub use request::{PageContent, SlotOutcome, SlotWrite};

use crate::counts::IntegrityCounts;
use crate::slot::changed::ChangedSlots;
use crate::slot::lane::Lane;
use crate::slot::locks::SlotLocks;
use crate::slot::unchecked::Unchecked;
use crate::table::{Keeping, SlotTable, SlotTables, TableError, TableLookups};

/// How much a [`SlotIo`] may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotIoOptions {
    /// Memory for slot tables, bytes, 4 per page of a slot that holds data, together with what others have of it
    /// ([`SlotIo::leave_memory`]). Tables in use may exceed it.
    pub memory_bytes: usize,
    /// Rows and tables that batches read or write at once. What is under way stands before the log's writes in the
    /// queues of drives that have both, so more of it delays writers.
    pub rows_in_flight: usize,
    /// Whether slots have tables: without them nothing that is read is verified, and zeros are stored as any other data.
    pub checksums: bool,
    /// Whether the pool was born full: a slot that has no table holds pages of zeros that count as stored.
    pub born_full: bool,
}

impl Default for SlotIoOptions {
    /// 64 MiB of tables, enough for 64 GiB of data in use; 64 rows; with checksums.
    fn default() -> SlotIoOptions {
        SlotIoOptions { memory_bytes: 64 << 20, rows_in_flight: 64, checksums: true, born_full: false }
    }
}

/// Verified I/O on the slots of one shard and pool; clones share it.
///
/// The caller keeps reads away from pages that it is about to write (it has them in memory), and all I/O away from slots
/// that it frees.
#[derive(Clone)]
pub struct SlotIo {
    shared: Rc<Shared>,
    lane: Rc<Lane>,
}

struct Shared {
    raid: RaidIo,
    slots: Arc<SlotMap>,
    tables: SlotTables,
    locks: Rc<SlotLocks>,
    changed: ChangedSlots,
    /// Rows that recovery has replayed and that were not scrubbed since.
    replayed: RefCell<BTreeSet<ReplayedRow>>,
    counts: Rc<IntegrityCounts>,
    /// What unwritten pages are filled with.
    zero_page: Buf,
    /// Of the memory, what others have.
    left: Cell<usize>,
    /// What is remembered of slots without tables, in a pool without checksums.
    unchecked: Option<Unchecked>,
}

impl SlotIo {
    /// I/O on the slots of a pool whose short identity (the first 8 bytes of its UUID, little-endian) is `pool`.
    /// `counts` should be what `raid` reports repairs to.
    pub fn new(
        raid: RaidIo,
        slots: Arc<SlotMap>,
        pool: u64,
        options: SlotIoOptions,
        counts: Rc<IntegrityCounts>,
    ) -> SlotIo {
        let zero_page = BufMut::zeroed(PAGE_SECTORS as u32, raid.members().width()).freeze();
        let keeping = match (options.checksums, options.born_full) {
            (false, _) => Keeping::Nothing,
            (true, false) => Keeping::Tables,
            (true, true) => Keeping::TablesSince(page_checksum(zero_page.as_slice())),
        };
        let memory = options.memory_bytes;
        let tables = SlotTables::new(raid.clone(), slots.clone(), pool, memory, counts.clone(), keeping);
        let shared = Shared {
            raid,
            slots,
            tables,
            locks: Rc::default(),
            changed: ChangedSlots::default(),
            replayed: RefCell::default(),
            counts,
            zero_page,
            left: Cell::new(0),
            unchecked: (!options.checksums).then(Unchecked::default),
        };
        SlotIo { shared: Rc::new(shared), lane: Lane::new(options.rows_in_flight) }
    }

    /// The sets below.
    pub fn raid(&self) -> &RaidIo {
        &self.shared.raid
    }

    /// Where slots lie.
    pub fn slots(&self) -> &SlotMap {
        &self.shared.slots
    }

    /// What was verified and repaired.
    pub fn counts(&self) -> &IntegrityCounts {
        &self.shared.counts
    }

    /// Pages of a slot.
    pub fn pages_per_slot(&self, slot: u64) -> u32 {
        self.shared.tables.pages_per_slot(slot)
    }

    /// Pages of a row of a slot, at least 1: writing all of them at once needs no reads.
    pub fn row_pages(&self, slot: u64) -> u32 {
        self.raid().sets().layout(self.slots().place(slot).set).row_pages() as u32
    }

    /// What rows there are in the pool: parity columns and data pages. One kind may come several times. A lane's extents may lie
    /// in any group.
    pub fn row_kinds(&self) -> impl Iterator<Item = (u32, u32)> {
        let layouts = self.raid().sets().shapes().map(|shape| &shape.layout);
        layouts.map(|layout| (layout.parities() as u32, layout.row_pages() as u32))
    }

    /// Bytes that slot tables take in memory now.
    pub fn table_memory_bytes(&self) -> usize {
        self.shared.tables.memory_bytes()
    }

    /// How often a slot's table was asked for, and how often it had to be read from the drives.
    pub fn table_lookups(&self) -> TableLookups {
        self.shared.tables.lookups()
    }

    /// Slots' tables that were read from the drives: how many, and how long it took.
    pub fn table_loads(&self) -> IoStats {
        self.shared.tables.loads()
    }

    /// A slot was just allocated: all its pages read as zeros from now on. To be said before it is used; a slot whose
    /// mapping was found on the drives is not newly allocated, and its table must be there.
    pub fn allocate(&self, slot: SlotRef) {
        self.shared.tables.allocate(slot);
        self.set_unwiped(slot, true);
        self.shared.counts.forget_unrecoverable_slot(slot.slot);
    }

    /// A slot was freed: nothing of it is remembered.
    pub fn free(&self, slot: SlotRef) {
        self.shared.tables.forget(slot.slot);
        self.set_unwiped(slot, false);
        self.shared.counts.forget_unrecoverable_slot(slot.slot);
    }

    /// The table of a slot.
    async fn table(&self, slot: SlotRef) -> Result<Rc<SlotTable>, IoError> {
        if let Some(table) = self.shared.tables.cached(slot) {
            return Ok(table);
        }
        self.shared.tables.get(slot).await.map_err(told)
    }

    /// The table of a slot that is to be written; anew where it is lost.
    async fn table_to_write(&self, slot: SlotRef) -> Result<Rc<SlotTable>, IoError> {
        match self.shared.tables.cached(slot) {
            Some(table) => Ok(table),
            None => self.shared.tables.get_or_begin(slot).await.map_err(told),
        }
    }
}

/// What is wrong with a table is told where it is met.
fn told(error: TableError) -> IoError {
    tracing::error!("{error}");
    error.io_error()
}
