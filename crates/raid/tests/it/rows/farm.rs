//! One RAID set on drives in memory, with checksums, a flat model of what it must hold, and ways to do it harm.
//!
//! Beneath each drive that the engine sees lies the same drive without faults: there harm is done unnoticed and
//! redundancy is checked by the naive arithmetic of this file.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use tier0_drive::{Command, Drive, DriveHandle, DriveInfo, Fault, FaultDrive, FaultPlan, StoreDrive};
use tier0_pool::{ChunkletAddress, DATA_START_SECTORS};
use tier0_raid::checksum::page_checksum;
use tier0_raid::io::{
    Expect, Expected, FailureReport, LostDrives, Members, RaidIo, RepairEvent, RepairReport, Rest,
};
use tier0_raid::layout::{Column, ColumnMask, Group, Layout, PagePlace, RaidConfig, RaidLevel, Row, Unit};
use tier0_raid::parity;
use tier0_raid::set::{RaidSets, SetIndex, SetShape};
use tier0_units::{Lba, PAGE_SECTORS, SectorCount};
use tier0_world::{Buf, BufMut, Completion, IoError, PayloadWidth, Random, VirtualRuntime, World};

/// The set under test: one of another shape lies before it.
pub(crate) const SET: SetIndex = SetIndex(1);
pub(crate) const WIDTH: PayloadWidth = PayloadWidth::new(4);
pub(crate) const PAGE_BYTES: usize = 32;
/// Pages of a stripe unit.
pub(crate) const UNIT_PAGES: usize = 4;
const TABLE_SECTORS: u64 = 16;
const ROWS: u64 = 8;
const CHUNKLET_SECTORS: u64 = TABLE_SECTORS + ROWS * UNIT_PAGES as u64 * PAGE_SECTORS + 8;
/// Chunklets of every drive; the set takes the first, the others are spare.
const CHUNKLETS: u64 = 3;
/// Drives besides the set's.
pub(crate) const SPARE_DRIVES: usize = 3;

pub(crate) const SHAPES: [(RaidLevel, usize); 9] = [
    (RaidLevel::Raid0, 3),
    (RaidLevel::Raid1, 2),
    (RaidLevel::Raid1, 3),
    (RaidLevel::Raid10, 6),
    (RaidLevel::Raid5, 3),
    (RaidLevel::Raid5, 6),
    (RaidLevel::Raid50, 6),
    (RaidLevel::Raid6, 4),
    (RaidLevel::Raid6, 6),
];

/// Runs a test on a fresh farm of every shape.
pub(crate) fn on_each_shape<F: Future<Output = ()> + 'static>(
    seed: u64,
    test: impl Fn(Rc<Farm>, Random) -> F,
) {
    for shape in SHAPES {
        on(shape, seed, &test);
    }
}

/// Runs a test on a fresh farm of one shape.
pub(crate) fn on<F: Future<Output = ()> + 'static>(
    (level, columns): (RaidLevel, usize),
    seed: u64,
    test: impl Fn(Rc<Farm>, Random) -> F,
) {
    let runtime = VirtualRuntime::new(seed, WIDTH);
    let farm = Rc::new(Farm::new(runtime.world(), level, columns));
    let random = runtime.world().random(seed);
    runtime.run(test(farm, random));
}

/// Counts the commands that reach a drive.
struct CountingDrive {
    beneath: DriveHandle,
    counts: Rc<RefCell<Counts>>,
}

/// Commands, and the sectors of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) reads: u64,
    pub(crate) read_sectors: u64,
    pub(crate) writes: u64,
    pub(crate) written_sectors: u64,
}

impl Drive for CountingDrive {
    fn info(&self) -> &DriveInfo {
        self.beneath.info()
    }

    fn world(&self) -> &World {
        self.beneath.world()
    }

    fn submit(&self, command: Command, completion: Completion) {
        let sectors = command.range().1;
        let mut counts = self.counts.borrow_mut();
        match command {
            Command::Read { .. } => {
                (counts.reads, counts.read_sectors) = (counts.reads + 1, counts.read_sectors + sectors)
            }
            Command::Write { .. } => {
                (counts.writes, counts.written_sectors) =
                    (counts.writes + 1, counts.written_sectors + sectors);
            }
            _ => {}
        }
        drop(counts);
        self.beneath.submit(command, completion);
    }
}

/// What drives have taken since they were asked to remember it, in order: for power cuts that are decided on afterwards.
#[derive(Default)]
pub(crate) struct Journal {
    pub(crate) is_kept: bool,
    /// Pages that were written: when, on which drive, where, what was there and what is now.
    pub(crate) writes: Vec<PageWrite>,
    /// When a drive was flushed.
    pub(crate) flushes: Vec<(u64, usize)>,
    /// The number of the next command.
    pub(crate) next: u64,
    /// Pages, by drive and first sector, that cannot be read before they are written.
    pub(crate) unreadable: std::collections::BTreeSet<(usize, u64)>,
}

#[derive(Clone, Debug)]
pub(crate) struct PageWrite {
    pub(crate) at: u64,
    pub(crate) drive: usize,
    pub(crate) lba: u64,
    pub(crate) old: Vec<u8>,
    pub(crate) new: Vec<u8>,
}

impl Journal {
    fn tick(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }
}

/// Remembers what its drive has taken.
struct JournalDrive {
    number: usize,
    above: DriveHandle,
    beneath: DriveHandle,
    journal: Rc<RefCell<Journal>>,
}

impl Drive for JournalDrive {
    fn info(&self) -> &DriveInfo {
        self.above.info()
    }

    fn world(&self) -> &World {
        self.above.world()
    }

    fn submit(&self, command: Command, completion: Completion) {
        if !self.journal.borrow().is_kept {
            return self.above.submit(command, completion);
        }
        let (number, above, beneath) = (self.number, self.above.clone(), self.beneath.clone());
        let journal = self.journal.clone();
        let work = async move {
            let (first, sectors) = command.range();
            let pages =
                || (first.0..first.0 + sectors).step_by(PAGE_SECTORS as usize).map(|lba| (number, lba));
            match &command {
                Command::Read { .. } if pages().any(|page| journal.borrow().unreadable.contains(&page)) => {
                    return command.refuse(IoError::Medium, completion);
                }
                Command::Write { buf, .. } => {
                    let (read, old) = beneath.read(first, BufMut::new(sectors as u32, WIDTH)).await;
                    read.expect("read beneath");
                    let mut journal = journal.borrow_mut();
                    let contents = old.as_slice().chunks(PAGE_BYTES).zip(buf.as_slice().chunks(PAGE_BYTES));
                    for ((drive, lba), (old, new)) in pages().zip(contents) {
                        journal.unreadable.remove(&(drive, lba));
                        let at = journal.tick();
                        journal.writes.push(PageWrite {
                            at,
                            drive,
                            lba,
                            old: old.to_vec(),
                            new: new.to_vec(),
                        });
                    }
                }
                Command::Flush => {
                    let at = journal.borrow_mut().tick();
                    journal.borrow_mut().flushes.push((at, number));
                }
                _ => {}
            }
            above.submit(command, completion);
        };
        self.world().spawn(work).detach();
    }
}

#[derive(Default)]
struct Losses;

impl FailureReport for Losses {
    fn report(&self, _: usize, _: IoError) -> Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(async {})
    }
}

/// Remembers every repair.
#[derive(Default)]
pub(crate) struct Events(pub(crate) RefCell<Vec<RepairEvent>>);

impl RepairReport for Events {
    fn report(&self, event: &RepairEvent) {
        self.0.borrow_mut().push(*event);
    }
}

/// What every page must be.
pub(crate) struct Table(pub(crate) RefCell<Vec<Expected>>);

impl Expect for Table {
    fn expect(&self, set: SetIndex, page: u64) -> Expected {
        assert_eq!(set, SET);
        self.0.borrow()[page as usize]
    }
}

pub(crate) struct Farm {
    pub(crate) world: World,
    pub(crate) layout: Layout,
    pub(crate) sets: Arc<RaidSets>,
    pub(crate) io: RaidIo,
    pub(crate) faults: Vec<FaultDrive>,
    pub(crate) beneath: Vec<DriveHandle>,
    /// What the drives have taken, once it is asked for.
    pub(crate) journal: Rc<RefCell<Journal>>,
    pub(crate) counts: Rc<RefCell<Counts>>,
    pub(crate) events: Rc<Events>,
    pub(crate) table: Rc<Table>,
    pub(crate) model: RefCell<Vec<u8>>,
}

/// New content of a row's pages: none for a page that becomes zeros and is not stored.
pub(crate) type RowPages = BTreeMap<u64, Option<Vec<u8>>>;

impl Farm {
    pub(crate) fn new(world: &World, level: RaidLevel, columns: usize) -> Farm {
        let unit = SectorCount(UNIT_PAGES as u64 * PAGE_SECTORS);
        let layout = Layout::new(&RaidConfig::new(level, columns, unit)).expect("valid");
        let other =
            Layout::new(&RaidConfig::new(RaidLevel::Raid1, 2, SectorCount(PAGE_SECTORS))).expect("valid");
        let runs = [
            (SetShape { layout: other, table_sectors: 0 }, 1),
            (SetShape { layout, table_sectors: TABLE_SECTORS }, 1),
        ];
        let last = CHUNKLETS as u32 - 1;
        let before = (0..2).map(|drive| ChunkletAddress { drive, index: last });
        let own = (0..columns as u32).map(|drive| ChunkletAddress { drive, index: 0 });
        let table: Vec<ChunkletAddress> = before.chain(own).collect();
        let sets = RaidSets::from_runs(&runs, CHUNKLET_SECTORS, &table).expect("valid");
        let sets = Arc::new(sets);
        assert_eq!(sets.rows(SET), ROWS);
        let drive_sectors = SectorCount(DATA_START_SECTORS + CHUNKLETS * CHUNKLET_SECTORS);
        let count = columns + SPARE_DRIVES;
        let beneath: Vec<DriveHandle> =
            (0..count).map(|_| DriveHandle::new(StoreDrive::new(world, "drive", drive_sectors))).collect();
        let counts = Rc::new(RefCell::new(Counts::default()));
        let counting = |drive: &DriveHandle| {
            DriveHandle::new(CountingDrive { beneath: drive.clone(), counts: counts.clone() })
        };
        let faults: Vec<FaultDrive> =
            beneath.iter().enumerate().map(|(n, drive)| FaultDrive::new(counting(drive), n as u64)).collect();
        let journal = Rc::new(RefCell::new(Journal::default()));
        let journaled = |(number, fault): (usize, &FaultDrive)| {
            let (above, beneath) = (DriveHandle::new(fault.clone()), beneath[number].clone());
            Some(DriveHandle::new(JournalDrive { number, above, beneath, journal: journal.clone() }))
        };
        let drives = faults.iter().enumerate().map(journaled).collect();
        let members = Members::new(drives, LostDrives::new(count), Rc::new(Losses));
        let events = Rc::new(Events::default());
        let io = RaidIo::with_report(sets.clone(), members, events.clone());
        let pages = (layout.row_pages() as u64 * ROWS) as usize;
        Farm {
            world: world.clone(),
            layout,
            sets,
            io,
            faults,
            beneath,
            journal,
            counts,
            events,
            table: Rc::new(Table(RefCell::new(vec![Expected::Zero; pages]))),
            model: RefCell::new(vec![0; pages * PAGE_BYTES]),
        }
    }

    /// Fills every drive with noise, as drives that served another system before.
    pub(crate) async fn fill_with_noise(&self, random: &mut Random) {
        for drive in &self.beneath {
            let sectors = drive.info().sectors.0 - DATA_START_SECTORS;
            let mut noise = BufMut::new(sectors as u32, WIDTH);
            noise.as_mut_slice().iter_mut().for_each(|byte| *byte = random.bits() as u8);
            drive.write(Lba(DATA_START_SECTORS), noise.freeze(), false).await.expect("written");
        }
    }

    pub(crate) fn rows(&self) -> Range<Row> {
        Row(0)..Row(ROWS)
    }

    pub(crate) fn all_rows(&self) -> impl Iterator<Item = Row> + use<> {
        (0..ROWS).map(Row)
    }

    pub(crate) fn row_pages(&self) -> u64 {
        self.layout.row_pages() as u64
    }

    pub(crate) fn is_unwritten(&self, row: Row) -> bool {
        let table = self.table.0.borrow();
        let first = (row.0 * self.row_pages()) as usize;
        table[first..first + self.row_pages() as usize].iter().all(|page| *page == Expected::Zero)
    }

    /// What a write of this row says of the pages it does not give.
    pub(crate) fn rest(&self, row: Row) -> Rest {
        if self.is_unwritten(row) { Rest::Zeros } else { Rest::Kept }
    }

    /// Random new content for some of a row's pages, some of them zeros.
    pub(crate) fn some_pages(&self, random: &mut Random) -> RowPages {
        let share = [0.1, 0.4, 0.9, 1.0][random.below(4) as usize];
        let mut pages = RowPages::new();
        for page in 0..self.row_pages() {
            if random.chance(share) {
                let bytes = (0..PAGE_BYTES).map(|_| random.bits() as u8).collect();
                pages.insert(page, (!random.chance(0.1)).then_some(bytes));
            }
        }
        pages
    }

    /// The pages that are stored, in buffers of one or of several.
    pub(crate) fn buffers(&self, pages: &RowPages, random: &mut Random) -> Vec<(u64, Buf)> {
        let mut buffers: Vec<(u64, Vec<u8>)> = Vec::new();
        for (page, bytes) in pages.iter().filter_map(|(page, bytes)| Some((*page, bytes.as_ref()?))) {
            match buffers.last_mut() {
                Some((first, run))
                    if *first + (run.len() / PAGE_BYTES) as u64 == page && random.chance(0.5) =>
                {
                    run.extend(bytes);
                }
                _ => buffers.push((page, bytes.clone())),
            }
        }
        let freeze = |(first, bytes): (u64, Vec<u8>)| (first, BufMut::copy_from(&bytes, WIDTH).freeze());
        buffers.into_iter().map(freeze).collect()
    }

    /// Writes pages of a row as a destager does, and has the table and the model know it.
    pub(crate) async fn destage(
        &self,
        row: Row,
        pages: &RowPages,
        random: &mut Random,
    ) -> Result<(), IoError> {
        let buffers = self.buffers(pages, random);
        if !buffers.is_empty() {
            let rest = self.rest(row);
            let prepared = self.io.prepare(SET, row, &buffers, rest, &*self.table).await?;
            let written = prepared.write().await?;
            if rest == Rest::Zeros {
                let first = (row.0 * self.row_pages()) as usize;
                self.table.0.borrow_mut()[first..first + self.row_pages() as usize].fill(Expected::Zero);
            }
            self.accept(row, pages);
            drop(written);
        }
        self.accept(row, pages);
        Ok(())
    }

    /// The pages are what the row must hold from now on.
    pub(crate) fn accept(&self, row: Row, pages: &RowPages) {
        for (page, bytes) in pages {
            let page = (row.0 * self.row_pages() + page) as usize;
            let before = self.table.0.borrow()[page];
            let expected = match (bytes, before) {
                (Some(bytes), _) => Expected::Crc(page_checksum(bytes)),
                (None, Expected::Zero) => Expected::Zero,
                // Its place is left as it is.
                (None, _) => Expected::GivenUp,
            };
            self.table.0.borrow_mut()[page] = expected;
            let zeros = vec![0; PAGE_BYTES];
            let place = page * PAGE_BYTES..(page + 1) * PAGE_BYTES;
            self.model.borrow_mut()[place].copy_from_slice(bytes.as_ref().unwrap_or(&zeros));
        }
    }

    /// Reads pages and compares them with the model.
    pub(crate) async fn check(&self, first: u64, pages: u64) {
        let buf = BufMut::new((pages * PAGE_SECTORS) as u32, WIDTH);
        let (result, buf) = self.io.read_verified(SET, Lba(first * PAGE_SECTORS), buf, &*self.table).await;
        result.unwrap_or_else(|error| panic!("{} pages from {first}: {error}", pages));
        let model = self.model.borrow();
        for (n, page) in buf.as_slice().chunks(PAGE_BYTES).enumerate() {
            let at = first as usize + n;
            assert!(page == &model[at * PAGE_BYTES..(at + 1) * PAGE_BYTES], "page {at} is wrong");
        }
    }

    pub(crate) async fn check_all(&self) {
        let pages = ROWS * self.row_pages();
        self.check(0, pages).await;
        for page in 0..pages {
            self.check(page, 1).await;
        }
    }

    /// A random walk: destages and reads.
    pub(crate) async fn live(&self, steps: usize, random: &mut Random) {
        for _ in 0..steps {
            if random.chance(0.5) {
                let (row, pages) = (Row(random.below(ROWS)), self.some_pages(random));
                self.destage(row, &pages, random).await.expect("a write succeeds");
            } else {
                let first = random.below(ROWS * self.row_pages());
                let pages = 1 + random.below((ROWS * self.row_pages() - first).min(20));
                self.check(first, pages).await;
            }
        }
    }

    fn place(&self, column: Column, row: Row, offset: usize) -> (usize, Lba) {
        let (drive, start) = self.sets.place(SET, column);
        (drive, Lba(start.0 + self.layout.page_column_lba(row, offset).0))
    }

    /// What a column's drive truly holds.
    pub(crate) async fn stored(&self, column: Column, row: Row, offset: usize) -> Vec<u8> {
        let (drive, lba) = self.place(column, row, offset);
        let (result, buf) = self.beneath[drive].read(lba, BufMut::new(PAGE_SECTORS as u32, WIDTH)).await;
        result.expect("read beneath");
        buf.as_slice().to_vec()
    }

    /// Puts something in a column's place, unnoticed.
    pub(crate) async fn plant(&self, column: Column, row: Row, offset: usize, bytes: &[u8]) {
        let (drive, lba) = self.place(column, row, offset);
        self.beneath[drive]
            .write(lba, BufMut::copy_from(bytes, WIDTH).freeze(), false)
            .await
            .expect("planted");
    }

    /// Flips bits of one page of one column.
    pub(crate) async fn rot(&self, column: Column, row: Row, offset: usize, random: &mut Random) {
        let mut bytes = self.stored(column, row, offset).await;
        let byte = random.below(PAGE_BYTES as u64) as usize;
        bytes[byte] ^= 1 << random.below(8);
        bytes[(byte + 7) % PAGE_BYTES] ^= 0x55;
        self.plant(column, row, offset, &bytes).await;
    }

    /// The sectors of one page of one column on its drive, and the drive.
    pub(crate) fn sectors_of(&self, column: Column, row: Row, offset: usize) -> (usize, Range<u64>) {
        let (drive, lba) = self.place(column, row, offset);
        (drive, lba.0..lba.0 + PAGE_SECTORS)
    }

    /// The drive of a column cannot read one page of it from now on.
    pub(crate) fn make_unreadable(&self, column: Column, row: Row, offset: usize) {
        let (drive, sectors) = self.sectors_of(column, row, offset);
        self.faults[drive].inject(FaultPlan::always_in(Fault::ReadError, sectors));
    }

    /// Moves a column, or rebuilds it where it is lost, to the n-th of the spare drives; the pages that are lost by that.
    pub(crate) async fn renew(&self, column: Column, spare: u32) -> Vec<u64> {
        let target = ChunkletAddress { drive: self.layout.columns() as u32 + spare, index: 0 };
        match self.io.lost_columns(SET, Row(0)).contains(column) {
            true => self.sets.start_rebuild(SET, column, target),
            false => self.sets.start_evacuation(SET, column, target),
        }
        let moved = self.io.rebuild_rows(SET, column, self.rows(), &*self.table).await.expect("moved");
        let lost = moved.lost_pages.clone();
        self.sets.set_rebuilt(SET, column, self.rows());
        drop(moved);
        self.sets.finish_rebuild(SET, column);
        lost
    }

    /// The number among the set's data of a page of the first row.
    pub(crate) fn page_at(&self, unit: u8, offset: usize) -> u64 {
        self.layout.page_of_set(Row(0), PagePlace { unit: Unit(unit), offset })
    }

    /// The column of a unit of the first row.
    pub(crate) fn data_column(&self, unit: u8) -> Column {
        self.layout.data_column(Row(0), Unit(unit))
    }

    /// Loses the drive of a column.
    pub(crate) fn lose(&self, column: Column) {
        let drive = self.sets.place(SET, column).0;
        self.faults[drive].set_gone(true);
        self.io.members().lost().set_lost(drive);
    }

    /// Fails unless all that is left agrees: every page with a checksum passes it in each copy, and every parity is what
    /// the data make it. Columns that are lost are left out of the comparison, with the pages on them.
    pub(crate) async fn check_redundancy(&self) {
        for row in self.all_rows().filter(|row| !self.is_unwritten(*row)) {
            let lost = self.io.lost_columns(SET, row);
            for group in (0..self.layout.groups() as u8).map(Group) {
                for offset in 0..UNIT_PAGES {
                    self.check_offset(row, group, offset, lost).await;
                }
            }
        }
    }

    async fn check_offset(&self, row: Row, group: Group, offset: usize, lost: ColumnMask) {
        let mut data = Vec::new();
        let mut whole = true;
        for unit in self.layout.group_unit_mask(group) {
            let page = self.layout.page_of_set(row, PagePlace { unit, offset });
            for column in self.layout.copies(row, unit) {
                if lost.contains(column) {
                    whole = false;
                    continue;
                }
                let stored = self.stored(column, row, offset).await;
                if let Expected::Crc(crc) = self.table.expect(SET, page) {
                    assert_eq!(page_checksum(&stored), crc, "page {page} on {column:?}, {row:?} {offset}");
                }
                if self.layout.parities() > 0 {
                    data.push(stored);
                }
            }
        }
        if self.layout.parities() == 0 || !whole {
            return;
        }
        let parities = self.layout.parity_columns(row, group);
        let (mut p, mut q) = (vec![0; PAGE_BYTES], vec![0; PAGE_BYTES]);
        parity::pq(&mut p, &mut q, &data);
        for (column, right) in [(parities.p, p), (parities.q, q)] {
            if let Some(column) = column.filter(|column| !lost.contains(*column)) {
                assert!(
                    self.stored(column, row, offset).await == right,
                    "parity on {column:?}, {row:?} {offset}"
                );
            }
        }
    }
}

/// What the log has of a write: data, parity, and what the pages hold.
pub(crate) type Logged = (Vec<(u64, Buf)>, Vec<(Column, Lba, Buf)>, RowPages);

/// A write of the first row that is carried out, and what the log has of it.
pub(crate) async fn logged(farm: &Farm, pages: RowPages, random: &mut Random) -> Logged {
    let data = farm.buffers(&pages, random);
    let prepared = farm.io.prepare(SET, Row(0), &data, Rest::Kept, &*farm.table).await.expect("prepared");
    let parity = prepared.parity().map(|(column, lba, buf)| (column, lba, buf.clone())).collect();
    let written = prepared.write().await.expect("written");
    farm.accept(Row(0), &pages);
    drop(written);
    (data, parity, pages)
}

/// The same write, replayed.
pub(crate) async fn replay(farm: &Farm, (data, parity, pages): &Logged) {
    let written = farm.io.replay_row(SET, Row(0), data, parity, Rest::Kept).await.expect("replayed");
    farm.accept(Row(0), pages);
    drop(written);
}
