//! Slots on simulated drives, for all levels: what the tests of this crate share.
//!
//! A [`Rack`] is what outlives a world: the media, which drives are lost, where the sets lie. A [`Shard`] is the engine on
//! it in one world.

pub(crate) mod log;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use tier0_drive::sim::{PowerSwitch, SimMedium, SimOptions};
use tier0_integrity::table::ColumnPlan;
use tier0_integrity::{
    IntegrityCounts, Intent, IntentLog, LogPlace, PageContent, SlotIo, SlotIoOptions, SlotOutcome, SlotWrite,
};
use tier0_pool::{ChunkletAddress, Chunklets};
use tier0_raid::io::{FailureReport, LostDrives, Members, RaidIo};
use tier0_raid::layout::{Column, ColumnMask, Layout, RaidConfig, RaidLevel};
use tier0_raid::set::{RaidSets, SetIndex, SetShape, SlotMap};
use tier0_units::{ExtentId, SectorCount, SlotRef};
use tier0_world::{Buf, BufMut, IoError, PayloadWidth, PlantedBug, Random, World, plant};

pub(crate) const POOL: u64 = 0xfeed_0bad_cafe_0001;
/// Chunklets of each drive for sets, and behind them for rebuilds.
const CHUNKLETS: u32 = 2;
const SPARE_CHUNKLETS: u32 = 2;
const STRIPE_UNIT: u64 = 16;
/// Small extents are quick, and their tables' entries lie in one sector.
pub(crate) const SMALL: u64 = 128;
/// Tables of large extents may be torn: 128 entries of 4 bytes lie in two sectors.
const LARGE: u64 = 1024;

/// A level with its number of columns, and the sectors of an extent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape(pub(crate) RaidLevel, pub(crate) usize, pub(crate) u64);

pub(crate) const SHAPES: [Shape; 10] = [
    Shape(RaidLevel::Raid0, 3, SMALL),
    Shape(RaidLevel::Raid1, 2, SMALL),
    Shape(RaidLevel::Raid1, 2, LARGE),
    Shape(RaidLevel::Raid1, 3, SMALL),
    Shape(RaidLevel::Raid10, 4, SMALL),
    Shape(RaidLevel::Raid5, 3, SMALL),
    Shape(RaidLevel::Raid5, 3, LARGE),
    Shape(RaidLevel::Raid5, 5, SMALL),
    Shape(RaidLevel::Raid50, 6, SMALL),
    Shape(RaidLevel::Raid6, 5, SMALL),
];

/// What outlives a world; clones share it.
#[derive(Clone)]
pub(crate) struct Rack {
    pub(crate) layout: Layout,
    pub(crate) plan: ColumnPlan,
    extent_sectors: u64,
    pub(crate) chunklet_sectors: u64,
    pub(crate) media: Vec<SimMedium>,
    pub(crate) switch: PowerSwitch,
    pub(crate) lost: Rc<RefCell<BTreeSet<usize>>>,
    /// Drives without power, whether the engine knows it or not.
    pub(crate) unplugged: Rc<RefCell<BTreeSet<usize>>>,
    pub(crate) table: Rc<RefCell<Vec<ChunkletAddress>>>,
}

/// Runs `tell` with a bug; whether that is noticed.
pub(crate) fn is_noticed(
    bug: PlantedBug,
    tell: impl Fn() + std::panic::UnwindSafe + std::panic::RefUnwindSafe,
) -> bool {
    let _planted = plant(bug);
    std::panic::catch_unwind(tell).is_err()
}

/// Remembers losses as a pool's metadata do.
struct Losses(Rc<RefCell<BTreeSet<usize>>>);

impl FailureReport for Losses {
    fn report(&self, member: usize, _: IoError) -> Pin<Box<dyn Future<Output = ()>>> {
        self.0.borrow_mut().insert(member);
        Box::pin(async {})
    }
}

impl Rack {
    /// One drive more than a set has columns.
    pub(crate) fn new(shape: Shape, seed: u64, width: PayloadWidth) -> Rack {
        let Shape(level, columns, extent_sectors) = shape;
        let chunklet_sectors = 4 * extent_sectors;
        let layout = Layout::new(&RaidConfig::new(level, columns, SectorCount(STRIPE_UNIT))).expect("valid");
        let plan = ColumnPlan::new(&layout, chunklet_sectors, extent_sectors);
        let (drives, switch) = (columns + 1, PowerSwitch::new());
        let sectors = SectorCount(u64::from(CHUNKLETS + SPARE_CHUNKLETS) * chunklet_sectors);
        let medium = |n: usize| {
            let options =
                SimOptions { width, ..SimOptions::new(&format!("d{n}"), sectors, seed << 8 | n as u64) };
            SimMedium::new(options, &switch)
        };
        let mut chunklets = Chunklets::of_ranges(chunklet_sectors, (0..drives).map(|_| 0..CHUNKLETS));
        let sets = RaidSets::form_with_tables(layout, &mut chunklets, plan.table_sectors);
        Rack {
            layout,
            plan,
            extent_sectors,
            chunklet_sectors,
            media: (0..drives).map(medium).collect(),
            switch,
            lost: Rc::default(),
            unplugged: Rc::default(),
            table: Rc::new(RefCell::new(sets.table())),
        }
    }

    fn sets(&self) -> RaidSets {
        let shape = SetShape { layout: self.layout, table_sectors: self.plan.table_sectors };
        let sets = RaidSets::from_table(shape, self.chunklet_sectors, &self.table.borrow());
        sets.expect("valid").with_data_start(0)
    }

    fn columns_on(&self, set: u32, drives: &BTreeSet<usize>) -> ColumnMask {
        let columns = (0..self.layout.columns() as u8).map(Column);
        let table = self.table.borrow();
        let drive =
            |column: Column| table[set as usize * self.layout.columns() + column.index()].drive as usize;
        columns.filter(|column| drives.contains(&drive(*column))).collect()
    }

    /// Whether everything survives the loss of one more drive.
    fn survives_loss_of(&self, drive: usize) -> bool {
        let mut lost: BTreeSet<usize> = self.lost.borrow().union(&self.unplugged.borrow()).copied().collect();
        lost.insert(drive);
        let sets = self.table.borrow().len() / self.layout.columns();
        (0..sets as u32).all(|set| self.layout.survives(self.columns_on(set, &lost)))
    }

    /// A drive that may be lost, drawn.
    pub(crate) fn draw_loss(&self, random: &mut Random) -> Option<usize> {
        let there =
            |drive: &usize| !self.lost.borrow().contains(drive) && !self.unplugged.borrow().contains(drive);
        let open: Vec<usize> =
            (0..self.media.len()).filter(|d| there(d) && self.survives_loss_of(*d)).collect();
        (!open.is_empty()).then(|| open[random.below(open.len() as u64) as usize])
    }

    /// Takes a drive away while the engine uses it.
    pub(crate) fn unplug(&self, drive: usize) {
        self.media[drive].unplug();
        self.unplugged.borrow_mut().insert(drive);
    }

    /// Before a new life: unplugged drives whose loss was not noticed may be back, with what they hold.
    pub(crate) fn replug(&self, random: &mut Random) {
        for drive in std::mem::take(&mut *self.unplugged.borrow_mut()) {
            if random.chance(0.5) {
                self.media[drive].reconnect();
            } else {
                self.lost.borrow_mut().insert(drive);
            }
        }
    }

    /// The engine on these drives.
    pub(crate) fn open(&self, world: &World, options: SlotIoOptions) -> Shard {
        let sets = Arc::new(self.sets());
        let slots = Arc::new(SlotMap::new(&sets, self.extent_sectors, self.media.len()));
        let lost = LostDrives::new(self.media.len());
        self.lost.borrow().iter().for_each(|drive| {
            lost.set_lost(*drive);
        });
        let drive = |n: usize| (!self.lost.borrow().contains(&n)).then(|| self.media[n].open(world));
        let drives = (0..self.media.len()).map(drive).collect();
        let members = Members::new(drives, lost, Rc::new(Losses(self.lost.clone())));
        let counts = Rc::new(IntegrityCounts::new(slots.clone()));
        let raid = RaidIo::with_report(sets, members, counts.clone());
        let io = SlotIo::new(raid, slots, POOL, options, counts);
        Shard { world: world.clone(), io }
    }

    /// A spare chunklet on a drive that a set does not use, which is from now on the column's.
    pub(crate) fn take_spare(&self, set: SetIndex, column: Column) -> ChunkletAddress {
        let mut table = self.table.borrow_mut();
        let columns = self.layout.columns();
        let own = set.0 as usize * columns..(set.0 as usize + 1) * columns;
        let drives = 0..self.media.len() as u32;
        let mut open = drives.filter(|drive| {
            !self.lost.borrow().contains(&(*drive as usize))
                && table[own.clone()].iter().all(|c| c.drive != *drive)
        });
        let drive = open.next().expect("one drive more than columns");
        let free = |index: &u32| table.iter().all(|c| *c != ChunkletAddress { drive, index: *index });
        let index = (CHUNKLETS..CHUNKLETS + SPARE_CHUNKLETS).find(free).expect("a spare");
        let spare = ChunkletAddress { drive, index };
        table[own.start + column.index()] = spare;
        spare
    }

    /// Where a column's tables start on its drive, and the drive.
    pub(crate) fn column_start(&self, set: SetIndex, column: Column) -> (usize, u64) {
        let chunklet = self.table.borrow()[set.0 as usize * self.layout.columns() + column.index()];
        (chunklet.drive as usize, u64::from(chunklet.index) * self.chunklet_sectors)
    }
}

/// Enough for some tables, too little for all: eviction is always at work.
pub(crate) const TIGHT: SlotIoOptions =
    SlotIoOptions { memory_bytes: 700, rows_in_flight: 4, checksums: true, born_full: false };

/// The engine in one world; clones share it.
#[derive(Clone)]
pub(crate) struct Shard {
    pub(crate) world: World,
    pub(crate) io: SlotIo,
}

/// A page whose every sector tells seed and version.
pub(crate) fn page(width: PayloadWidth, mark: u64) -> Buf {
    let mut random = Random::new(mark, 0x9a6e);
    let mut buf = BufMut::new(8, width);
    let bytes = random.bits().to_le_bytes();
    buf.as_mut_slice().iter_mut().enumerate().for_each(|(n, byte)| *byte = bytes[n % 8] ^ (n / 8) as u8);
    buf.freeze()
}

/// A page of a batch: zeros for mark 0.
pub(crate) fn content(width: PayloadWidth, mark: u64, log: LogPlace) -> PageContent {
    if mark == 0 { PageContent::Zero } else { PageContent::Data { buf: page(width, mark), log } }
}

/// Intents that no recovery will need.
pub(crate) struct NoLog;

impl IntentLog for NoLog {
    fn append(&self, intents: Vec<Intent>) -> Pin<Box<dyn Future<Output = Result<(), IoError>> + '_>> {
        for intent in intents {
            let header = intent.encode_header();
            let again = Intent::decode(&header, intent.buffers()).expect("an intent reads back");
            assert_eq!(again.encode_header(), header);
        }
        Box::pin(async { Ok(()) })
    }
}

/// What the slots must hold: the mark of each page, 0 for zeros.
pub(crate) struct Model {
    pub(crate) pages: u32,
    pub(crate) slots: Vec<(SlotRef, Vec<u64>)>,
    /// The slots that have ever held data, as a pool's map knows.
    pub(crate) mapped: BTreeSet<u64>,
    next_mark: u64,
}

impl Model {
    /// `count` slots, newly allocated.
    pub(crate) fn allocate(shard: &Shard, count: u64) -> Model {
        let pages = shard.io.pages_per_slot(0);
        let slot = |slot| {
            let slot = SlotRef { slot, allocation: slot + 1 };
            shard.io.allocate(slot);
            (slot, vec![0; pages as usize])
        };
        assert!(count <= shard.io.slots().count());
        Model { pages, slots: (0..count).map(slot).collect(), mapped: BTreeSet::new(), next_mark: 1 }
    }

    /// One slot, newly allocated, of which something is stored.
    pub(crate) async fn stored(shard: &Shard, random: &mut Random) -> Model {
        let mut model = Model::allocate(shard, 1);
        while model.slots[0].1.iter().all(|mark| *mark == 0) {
            model.write(shard, random).await.expect("a batch");
        }
        model
    }

    /// Another process on the same drives.
    pub(crate) fn reopen(&self, rack: &Rack, world: &World, options: SlotIoOptions) -> Shard {
        let shard = rack.open(world, options);
        let unmapped = self.slots.iter().filter(|(slot, _)| !self.mapped.contains(&slot.slot));
        unmapped.for_each(|(slot, _)| shard.io.allocate(*slot));
        shard
    }

    /// Rebuilds every column that was on a lost drive, slot by slot, with batches in between.
    pub(crate) async fn rebuild(&mut self, rack: &Rack, shard: &Shard, lost: usize, random: &mut Random) {
        let sets = shard.io.raid().sets();
        for set in (0..sets.count()).map(SetIndex) {
            let mut columns = (0..rack.layout.columns() as u8).map(Column);
            let Some(column) = columns.find(|column| sets.place(set, *column).0 == lost) else { continue };
            sets.start_rebuild(set, column, rack.take_spare(set, column));
            for slot in shard.io.slots().slots_of(set) {
                let slot = self.slots[slot as usize].0;
                let rebuilt = shard.io.rebuild_slot(slot, column, None).await.expect("a rebuild");
                assert!(rebuilt.declare_present());
                if random.chance(0.3) {
                    self.write(shard, random).await.expect("a batch");
                }
            }
            sets.finish_rebuild(set, column);
        }
    }

    /// Writes a batch of random pages, a fifth of them zeros.
    pub(crate) async fn write(
        &mut self,
        shard: &Shard,
        random: &mut Random,
    ) -> Result<Vec<SlotOutcome>, IoError> {
        let mut batch = Vec::new();
        for (slot, marks) in &mut self.slots {
            if random.chance(0.5) {
                continue;
            }
            let dense = random.chance(0.3);
            let mut pages = Vec::new();
            for page in 0..self.pages {
                if !random.chance(if dense { 0.9 } else { 0.1 }) {
                    continue;
                }
                self.next_mark += 1;
                let mark = if random.chance(0.2) { 0 } else { self.next_mark };
                marks[page as usize] = mark;
                if mark != 0 {
                    self.mapped.insert(slot.slot);
                }
                pages.push((page, content(shard.world.width(), mark, LogPlace { position: 0, page })));
            }
            let extent = ExtentId { volume: 0, index: slot.slot as u32 };
            batch.push(SlotWrite { extent, slot: *slot, pages });
        }
        let outcomes = shard.io.write_batch(batch, &NoLog).await?;
        for outcome in &outcomes {
            let (_, marks) = &self.slots[outcome.slot.slot as usize];
            assert_eq!(outcome.all_zero, marks.iter().all(|mark| *mark == 0), "{outcome:?}");
        }
        Ok(outcomes)
    }

    /// The bytes of sectors of a slot.
    pub(crate) fn bytes(&self, width: PayloadWidth, slot: usize, first: u64, sectors: u64) -> Vec<u8> {
        let mut all = Vec::new();
        for sector in first..first + sectors {
            let mark = self.slots[slot].1[(sector / 8) as usize];
            if mark == 0 {
                all.extend(vec![0; width.bytes()]);
            } else {
                all.extend_from_slice(page(width, mark).slice((sector % 8) as u32, 1).as_slice());
            }
        }
        all
    }

    /// Reads a range and compares.
    pub(crate) async fn check_range(&self, shard: &Shard, slot: usize, first: u64, sectors: u64) {
        let buf = shard.world.buffer(sectors as u32);
        let (result, buf) = shard.io.read(self.slots[slot].0, first, buf).await;
        assert_eq!(result, Ok(()), "slot {slot} sectors {first}+{sectors}");
        assert_eq!(buf.sectors(), sectors as u32);
        let right = buf.as_slice() == self.bytes(shard.world.width(), slot, first, sectors);
        assert!(right, "wrong data in slot {slot} at sectors {first}+{sectors}");
    }

    /// Reads everything.
    pub(crate) async fn check(&self, shard: &Shard) {
        for slot in 0..self.slots.len() {
            self.check_range(shard, slot, 0, u64::from(self.pages) * 8).await;
        }
    }

    /// Reads some ranges of any alignment.
    pub(crate) async fn check_some(&self, shard: &Shard, random: &mut Random) {
        let end = u64::from(self.pages) * 8;
        for _ in 0..10 {
            let slot = random.below(self.slots.len() as u64) as usize;
            let first = random.below(end);
            let most = if random.chance(0.5) { 12 } else { end };
            let sectors = 1 + random.below((end - first).min(most));
            self.check_range(shard, slot, first, sectors).await;
        }
    }

    /// Scrubs every slot; the faults found and the table copies repaired.
    pub(crate) async fn scrub(&self, shard: &Shard) -> (u64, u64) {
        let (mut faults, mut tables) = (0, 0);
        for (slot, _) in &self.slots {
            let scrub = shard.io.scrub_slot(*slot).await.expect("a scrub succeeds");
            assert!(scrub.lost_pages.is_empty(), "{slot:?}: {scrub:?}");
            let rows = &scrub.rows;
            faults += rows.rotten + rows.unreadable + rows.copies_different + rows.parity_different;
            tables += scrub.tables_repaired;
        }
        (faults, tables)
    }
}
