//! Random walks: writes, zeros, power cuts with replay, lost drives, moves, scrubs and drives that lie, in any order, never
//! more faults at one offset of a row than the level makes up for. What was written is read, and where no fault is left
//! parity agrees with the data at once.
//!
//! A fault is a column that is lost in the row, or whose page was harmed (rot, older content, unreadable) and has not been
//! written and flushed since; a parity that was harmed is one until it is right. A scrub that ends in a flush leaves none.
//! Nothing may lie where zeros are due once no fault is left. One known hole is walked around: a parity that was repaired comes
//! back from the log as it was, and recovery scrubs the row (as here), but a page that was harmed before is lost by then. So the
//! power is not cut while the log has a row that was harmed, unless `WALK_ALL` is set.
//!
//! `WALK_FIRST` and `WALK_COUNT` name other seeds than the few that are walked always, `WALK_COLUMNS` another width,
//! `WALK_TRACE` tells the steps of a walk that fails, and `WALK_SURVEY` goes on after it.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::farm::{Farm, PAGE_BYTES, RowPages, SET, WIDTH, on};
use tier0_pool::ChunkletAddress;
use tier0_raid::checksum::page_checksum;
use tier0_raid::io::{Expect, Expected, RepairSource, Rest};
use tier0_raid::layout::{Column, ColumnMask, Group, PagePlace, RaidLevel, Row};
use tier0_raid::parity;
use tier0_units::{Lba, PAGE_SECTORS};
use tier0_world::{Buf, BufMut, Random};

/// Few, so that much happens to each.
const ROWS: u64 = 2;
const OFFSETS: usize = 2;
const STEPS: usize = 60;

/// What the log holds of one row of a batch.
#[derive(Clone)]
struct Logged {
    row: Row,
    pages: RowPages,
    /// Once it is stable, unless the row has none.
    intent: Option<Intent>,
    /// A parity of the row was made anew since.
    repaired: bool,
    /// A page of the row was harmed then, or was since.
    tainted: bool,
}

#[derive(Clone)]
struct Intent {
    /// Stored pages, zeros that fill a row included.
    contents: BTreeMap<u64, Option<Vec<u8>>>,
    parity: Vec<(Column, Lba, Buf)>,
    whole: bool,
}

struct Walk {
    farm: Rc<Farm>,
    random: Random,
    /// Pages that were harmed, and when.
    bad: BTreeMap<(usize, u64), u64>,
    log: Vec<Logged>,
    /// The table as it lies on the drives.
    stable: Vec<Expected>,
    history: BTreeMap<(usize, u64), Vec<Vec<u8>>>,
    moving: Option<(Column, u64, u32)>,
    seed: u64,
    trace: Trace,
}

/// Tells the steps of a walk that fails.
struct Trace(String, Vec<String>);

impl Drop for Trace {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}:\n  {}", self.0, self.1.join("\n  "));
        }
    }
}

impl Walk {
    fn say(&mut self, step: String) {
        if asked_for("WALK_TRACE") {
            self.trace.1.push(step);
        }
    }

    fn place(&self, row: Row, offset: usize, column: Column) -> (usize, u64) {
        let (drive, start) = self.farm.sets.place_of_row(SET, column, row);
        (drive, start.0 + self.farm.layout.page_column_lba(row, offset).0)
    }

    fn columns(&self) -> Vec<Column> {
        (0..self.farm.layout.columns() as u8).map(Column).collect()
    }

    fn spots() -> impl Iterator<Item = (Row, usize)> {
        (0..ROWS).flat_map(|row| (0..OFFSETS).map(move |offset| (Row(row), offset)))
    }

    fn faults(&self, row: Row, offset: usize) -> ColumnMask {
        let lost = self.farm.io.lost_columns(SET, row);
        let is_bad = |column: &Column| {
            lost.contains(*column) || self.bad.contains_key(&self.place(row, offset, *column))
        };
        self.columns().into_iter().filter(is_bad).collect()
    }

    fn is_harmed(&self, row: Row) -> bool {
        let places = || (0..OFFSETS).flat_map(|o| self.columns().into_iter().map(move |column| (o, column)));
        places().any(|(offset, column)| self.bad.contains_key(&self.place(row, offset, column)))
    }

    /// Whether the power is cut in this step. Not while the log has a row that was harmed, unless all is asked for.
    fn draw_cut(&mut self, chance: f64) -> bool {
        let all = asked_for("WALK_ALL");
        self.random.chance(chance) && (all || self.log.iter().all(|logged| !logged.tainted))
    }

    fn tolerated(&self) -> usize {
        self.farm.layout.tolerated_failures()
    }

    async fn stored(&self, (drive, lba): (usize, u64)) -> Vec<u8> {
        let buf = BufMut::new(PAGE_SECTORS as u32, WIDTH);
        let (result, buf) = self.farm.beneath[drive].read(Lba(lba), buf).await;
        result.expect("read beneath");
        buf.as_slice().to_vec()
    }

    async fn plant(&self, (drive, lba): (usize, u64), bytes: &[u8]) {
        let buf = BufMut::copy_from(bytes, WIDTH).freeze();
        self.farm.beneath[drive].write(Lba(lba), buf, false).await.expect("planted");
    }

    fn now(&self) -> u64 {
        self.farm.journal.borrow().next
    }

    fn expected(&self, row: Row, page: u64) -> Expected {
        self.farm.table.expect(SET, row.0 * self.farm.row_pages() + page)
    }

    fn set_expected(&self, row: Row, page: u64, expected: Expected) {
        let at = (row.0 * self.farm.row_pages() + page) as usize;
        self.farm.table.0.borrow_mut()[at] = expected;
    }

    /// Whether nothing is stored in a row.
    fn is_empty(&self, row: Row) -> bool {
        (0..self.farm.row_pages()).all(|page| !matches!(self.expected(row, page), Expected::Crc(_)))
    }

    /// The row's pages that are walked on.
    fn pages(&self) -> Vec<u64> {
        let place = |page: &u64| self.farm.layout.page_place(*page as usize).offset < OFFSETS;
        (0..self.farm.row_pages()).filter(place).collect()
    }

    fn draw_pages(&mut self) -> RowPages {
        let share = [0.1, 0.1, 0.3, 0.6, 1.0][self.random.below(5) as usize];
        let zeros = [0.0, 0.2, 0.6, 1.0][self.random.below(4) as usize];
        let mut pages = RowPages::new();
        for page in self.pages() {
            if self.random.chance(share) {
                let byte = 1 + self.random.below(255) as u8;
                let content: Vec<u8> = (0..PAGE_BYTES).map(|n| byte.wrapping_add(n as u8 * 7)).collect();
                pages.insert(page, (!self.random.chance(zeros)).then_some(content));
            }
        }
        pages
    }

    /// A host's writes are acknowledged and in the log.
    async fn write(&mut self) {
        let rows: Vec<Row> = (0..ROWS).map(Row).filter(|_| self.random.chance(0.6)).collect();
        let mut batch = Vec::new();
        for row in rows {
            let pages = self.draw_pages();
            for (page, bytes) in &pages {
                let at = (row.0 * self.farm.row_pages() + page) as usize * PAGE_BYTES;
                let zeros = vec![0; PAGE_BYTES];
                self.farm.model.borrow_mut()[at..at + PAGE_BYTES]
                    .copy_from_slice(bytes.as_ref().unwrap_or(&zeros));
            }
            let shown: Vec<String> = pages
                .iter()
                .map(|(page, bytes)| {
                    let place = self.farm.layout.page_place(*page as usize);
                    let column = self.farm.layout.data_column(row, place.unit).0;
                    format!(
                        "u{}o{}@c{column}={:02x?}",
                        place.unit.0,
                        place.offset,
                        bytes.as_ref().map(|b| b[0])
                    )
                })
                .collect();
            self.say(format!("write {row:?} {}", shown.join(" ")));
            if !pages.is_empty() {
                batch.push((row, pages));
            }
        }
        let first = self.log.len();
        let new = batch.iter().map(|(row, pages)| Logged {
            row: *row,
            pages: pages.clone(),
            intent: None,
            repaired: false,
            tainted: self.is_harmed(*row),
        });
        let new: Vec<Logged> = new.collect();
        self.log.extend(new);
        let crash = self.draw_cut(0.15);
        if !self.destage(batch, first, crash).await {
            self.recover().await;
        }
    }

    fn plan(&self, row: Row, pages: &RowPages) -> Option<Intent> {
        let stored: BTreeMap<u64, Option<Vec<u8>>> =
            pages.iter().filter(|(_, bytes)| bytes.is_some()).map(|(p, b)| (*p, b.clone())).collect();
        if stored.is_empty() {
            return None;
        }
        let mut intent = Intent { contents: stored, parity: Vec::new(), whole: false };
        if self.farm.layout.parities() == 0 {
            return Some(intent);
        }
        let becomes_zero = |page: &u64| match pages.get(page) {
            Some(bytes) => bytes.is_none(),
            None => !matches!(self.expected(row, *page), Expected::Crc(_)),
        };
        let zeros: Vec<u64> = (0..self.farm.row_pages()).filter(becomes_zero).collect();
        let stored = intent.contents.len();
        let completes = (stored + zeros.len()) as u64 == self.farm.row_pages() && zeros.len() <= stored;
        if self.is_empty(row) || completes {
            intent.whole = true;
            intent.contents.extend(zeros.into_iter().map(|page| (page, None)));
        }
        Some(intent)
    }

    fn buffers(intent: &Intent) -> Vec<(u64, Buf)> {
        let zeros = vec![0; PAGE_BYTES];
        let content = |(page, bytes): (&u64, &Option<Vec<u8>>)| {
            (*page, BufMut::copy_from(bytes.as_ref().unwrap_or(&zeros), WIDTH).freeze())
        };
        intent.contents.iter().map(content).collect()
    }

    fn settle(&self, row: Row, intent: &Intent) {
        for (page, bytes) in &intent.contents {
            let expected = bytes.as_ref().map_or(Expected::Zero, |b| Expected::Crc(page_checksum(b)));
            self.set_expected(row, *page, expected);
        }
    }

    /// Destages rows; their log records begin at `first`. False if the power was cut.
    async fn destage(&mut self, batch: Vec<(Row, RowPages)>, first: usize, crash: bool) -> bool {
        let began = self.now();
        let farm = self.farm.clone();
        let mut work = Vec::new();
        for (n, (row, pages)) in batch.iter().enumerate() {
            let Some(mut intent) = self.plan(*row, pages) else { continue };
            let buffers = Walk::buffers(&intent);
            let prepared = farm.io.prepare(SET, *row, &buffers, Rest::Kept, &*farm.table).await;
            let prepared = prepared.expect("prepared");
            if !intent.whole {
                intent.parity =
                    prepared.parity().map(|(column, lba, buf)| (column, lba, buf.clone())).collect();
            }
            work.push((first + n, *row, intent, prepared));
        }
        let logged = self.now();
        let mut intents = Vec::new();
        for (at, row, intent, prepared) in work {
            let written = prepared.write().await.expect("written");
            self.settle(row, &intent);
            drop(written);
            intents.push((at, intent));
        }
        for (row, pages) in &batch {
            for (page, _) in pages.iter().filter(|(_, bytes)| bytes.is_none()) {
                if matches!(self.expected(*row, *page), Expected::Crc(_)) {
                    self.set_expected(*row, *page, Expected::GivenUp);
                }
            }
        }
        let table_written = self.now();
        farm.io.flush().await.expect("flushed");
        let has_parity = farm.layout.parities() > 0;
        if !crash {
            if has_parity {
                intents.into_iter().for_each(|(at, intent)| self.log[at].intent = Some(intent));
            }
            self.stable = farm.table.0.borrow().clone();
            self.flushed().await;
            return true;
        }
        let cut = began + self.random.below(self.now() - began + 1);
        let new_table = cut >= table_written && self.random.chance(0.5);
        self.say(format!(
            "  power cut at {cut} of {began}..{logged}..{table_written}..{}, {} table",
            self.now(),
            if new_table { "new" } else { "old" }
        ));
        if cut >= logged && has_parity {
            intents.into_iter().for_each(|(at, intent)| self.log[at].intent = Some(intent));
        }
        if new_table {
            self.stable = farm.table.0.borrow().clone();
        }
        self.cut(cut).await;
        false
    }

    /// The power is cut: of what no flush has covered, any sector is there or not.
    async fn cut(&mut self, cut: u64) {
        let (writes, flushes) = {
            let mut journal = self.farm.journal.borrow_mut();
            (std::mem::take(&mut journal.writes), std::mem::take(&mut journal.flushes))
        };
        let mut pages: BTreeMap<(usize, u64), Vec<u8>> = BTreeMap::new();
        let share = [0.0, 0.3, 0.7, 1.0][self.random.below(4) as usize];
        for write in writes {
            self.remember((write.drive, write.lba), &write.old);
            let page = pages.entry((write.drive, write.lba)).or_insert(write.old);
            if write.at >= cut {
                continue;
            }
            let is_flushed =
                flushes.iter().any(|(at, drive)| *drive == write.drive && *at > write.at && *at < cut);
            let whole = self.random.chance(0.5).then(|| self.random.chance(share));
            for (old, new) in page.chunks_mut(PAGE_BYTES / 8).zip(write.new.chunks(PAGE_BYTES / 8)) {
                if is_flushed || whole.unwrap_or_else(|| self.random.chance(share)) {
                    old.copy_from_slice(new);
                }
            }
        }
        for (place, bytes) in pages {
            self.plant(place, &bytes).await;
        }
    }

    fn remember(&mut self, place: (usize, u64), bytes: &[u8]) {
        let known = self.history.entry(place).or_default();
        if known.last().is_none_or(|last| last != bytes) {
            known.push(bytes.to_vec());
        }
    }

    /// Started after a power cut: intents are replayed, what the log holds is destaged.
    async fn recover(&mut self) {
        loop {
            self.note_repairs();
            *self.farm.table.0.borrow_mut() = self.stable.clone();
            let began = self.now();
            self.replay().await;
            let table_written = self.now();
            self.farm.io.flush().await.expect("flushed");
            if self.random.chance(0.1) {
                let cut = began + self.random.below(self.now() - began + 1);
                self.say(format!("  cut in the replay at {cut} of {began}..{}", self.now()));
                if cut >= table_written && self.random.chance(0.5) {
                    self.stable = self.farm.table.0.borrow().clone();
                }
                self.cut(cut).await;
                continue;
            }
            self.stable = self.farm.table.0.borrow().clone();
            self.flushed_pages();
            let mut pending: BTreeMap<Row, RowPages> = BTreeMap::new();
            for logged in &self.log {
                pending.entry(logged.row).or_default().extend(logged.pages.clone());
            }
            let batch: Vec<(Row, RowPages)> = pending.into_iter().collect();
            let repaired: BTreeSet<Row> =
                self.log.iter().filter(|logged| logged.repaired).map(|logged| logged.row).collect();
            let first = self.log.len();
            let again = batch.iter().map(|(row, pages)| Logged {
                row: *row,
                pages: pages.clone(),
                intent: None,
                repaired: false,
                tainted: self.is_harmed(*row),
            });
            self.log.extend(again.collect::<Vec<_>>());
            let crash = self.draw_cut(0.1);
            self.say("  destaged again".into());
            // A repaired parity is not logged: the intent's comes back, until a scrub.
            if !self.destage_after_start(batch, first, crash, &repaired).await {
                continue;
            }
            return;
        }
    }

    async fn destage_after_start(
        &mut self,
        batch: Vec<(Row, RowPages)>,
        first: usize,
        crash: bool,
        repaired: &BTreeSet<Row>,
    ) -> bool {
        let farm = self.farm.clone();
        for row in repaired {
            self.say(format!("  scrub of {row:?}, whose parity was made anew since its intent"));
            let rows = *row..Row(row.0 + 1);
            farm.io.scrub_rows(SET, rows, &*farm.table).await.expect("a scrub");
        }
        farm.io.flush().await.expect("flushed");
        self.flushed_pages();
        repaired.iter().for_each(|row| self.scrubbed(*row));
        self.destage(batch, first, crash).await
    }

    async fn replay(&mut self) {
        let farm = self.farm.clone();
        let log: Vec<(Row, Intent)> =
            self.log.iter().filter_map(|logged| Some((logged.row, logged.intent.clone()?))).collect();
        let mut without: BTreeMap<Row, ColumnMask> = BTreeMap::new();
        let mut stale = Vec::new();
        for (row, intent) in log.iter().rev() {
            let later = without.entry(*row).or_insert(ColumnMask::EMPTY);
            stale.push(*later);
            if !intent.whole {
                let parities = farm.layout.parity_columns(*row, Group(0)).mask();
                *later = *later | (parities - intent.parity.iter().map(|(column, ..)| *column).collect());
            }
        }
        stale.reverse();
        for ((row, intent), stale) in log.iter().zip(stale) {
            let buffers = Walk::buffers(intent);
            self.say(format!(
                "  replay {row:?} pages {:?} parity {:?} without {stale}",
                intent.contents.keys().collect::<Vec<_>>(),
                intent.parity.iter().map(|(column, ..)| column.0).collect::<Vec<_>>()
            ));
            let written = if intent.whole {
                let prepared = farm.io.prepare(SET, *row, &buffers, Rest::Kept, &*farm.table).await;
                let mut prepared = prepared.expect("prepared");
                prepared.leave_out_parity(stale);
                prepared.write().await
            } else {
                let kept: Vec<_> =
                    intent.parity.iter().filter(|(c, ..)| !stale.contains(*c)).cloned().collect();
                farm.io.replay_row(SET, *row, &buffers, &kept, Rest::Kept).await
            };
            let written = written.expect("replayed");
            self.settle(*row, intent);
            drop(written);
        }
    }

    /// All that was written is stable.
    fn flushed_pages(&mut self) {
        let writes = {
            let mut journal = self.farm.journal.borrow_mut();
            journal.flushes.clear();
            std::mem::take(&mut journal.writes)
        };
        let mut written = BTreeSet::new();
        for write in writes {
            let place = (write.drive, write.lba);
            self.remember(place, &write.old);
            if self.bad.get(&place).is_none_or(|harmed| write.at >= *harmed) {
                written.insert(place);
            }
        }
        for (row, offset) in Walk::spots() {
            let parities = self.farm.layout.parity_columns(row, Group(0)).mask();
            for column in self.columns() {
                let place = self.place(row, offset, column);
                if written.contains(&place) && !parities.contains(column) {
                    self.bad.remove(&place);
                }
            }
        }
    }

    async fn flushed(&mut self) {
        self.flushed_pages();
        self.check_parity().await;
    }

    /// Where no data is harmed or lost, parity is right, or was harmed itself.
    async fn check_parity(&mut self) {
        for (row, offset) in Walk::spots() {
            if (0..self.farm.row_pages()).all(|page| self.expected(row, page) == Expected::Zero) {
                continue;
            }
            let layout = self.farm.layout;
            let (lost, faults) = (self.farm.io.lost_columns(SET, row), self.faults(row, offset));
            let mut data = Vec::new();
            for unit in layout.group_unit_mask(Group(0)) {
                let page = layout.page_of_set(row, PagePlace { unit, offset });
                for column in layout.copies(row, unit) {
                    let stored = self.stored(self.place(row, offset, column)).await;
                    if let Expected::Crc(crc) = self.farm.table.expect(SET, page)
                        && !faults.contains(column)
                    {
                        assert_eq!(page_checksum(&stored), crc, "{row:?} offset {offset} {column:?}");
                    }
                    data.push(stored);
                }
            }
            let parities = layout.parity_columns(row, Group(0));
            self.forgive(row, offset, &data).await;
            if self.faults(row, offset).is_empty() && layout.parities() > 0 {
                self.check_zeros(row, offset).await;
            }
            let faults = self.faults(row, offset);
            if layout.parities() == 0 || !(faults - parities.mask()).is_empty() {
                continue;
            }
            let (mut p, mut q) = (vec![0; PAGE_BYTES], vec![0; PAGE_BYTES]);
            parity::pq(&mut p, &mut q, &data);
            for (column, right) in [(parities.p, p), (parities.q, q)] {
                let Some(column) = column.filter(|column| !lost.contains(*column)) else { continue };
                let place = self.place(row, offset, column);
                let is_right = self.stored(place).await == right;
                if is_right && !self.farm.journal.borrow().unreadable.contains(&place) {
                    self.bad.remove(&place);
                }
                assert!(
                    is_right || self.bad.contains_key(&place),
                    "parity {row:?} offset {offset} {column:?}"
                );
            }
        }
    }

    /// Nothing lies where zeros are due: a parity that counts it is poison once a drive forgets that too.
    async fn check_zeros(&self, row: Row, offset: usize) {
        let layout = self.farm.layout;
        for unit in layout.group_unit_mask(Group(0)) {
            let page = layout.page_of_set(row, PagePlace { unit, offset });
            let column = layout.data_column(row, unit);
            if self.farm.table.expect(SET, page) == Expected::Zero {
                let stored = self.stored(self.place(row, offset, column)).await;
                assert!(stored == [0; PAGE_BYTES], "a lie is kept: {row:?} offset {offset} {column:?}");
            }
        }
    }

    /// Where all can be read, passes and agrees, nothing is wrong any more.
    async fn forgive(&mut self, row: Row, offset: usize, data: &[Vec<u8>]) {
        let layout = self.farm.layout;
        let places: Vec<_> = self.columns().iter().map(|column| self.place(row, offset, *column)).collect();
        let is_unreadable = |place| self.farm.journal.borrow().unreadable.contains(place);
        if !self.farm.io.lost_columns(SET, row).is_empty() || places.iter().any(is_unreadable) {
            return;
        }
        let parities = layout.parity_columns(row, Group(0));
        let (mut p, mut q) = (vec![0; PAGE_BYTES], vec![0; PAGE_BYTES]);
        if layout.parities() > 0 {
            parity::pq(&mut p, &mut q, data);
        }
        for (column, right) in [(parities.p, p), (parities.q, q)] {
            if let Some(column) = column
                && self.stored(self.place(row, offset, column)).await != right
            {
                return;
            }
        }
        for (column, unit) in layout.group_unit_mask(Group(0)).iter().flat_map(|unit| {
            layout.copies(row, unit).iter().map(move |column| (column, unit)).collect::<Vec<_>>()
        }) {
            let page = layout.page_of_set(row, PagePlace { unit, offset });
            if let Expected::Crc(crc) = self.farm.table.expect(SET, page)
                && page_checksum(&self.stored(self.place(row, offset, column)).await) != crc
            {
                return;
            }
        }
        self.bad.retain(|place, _| !places.contains(place));
    }

    async fn check(&mut self) {
        let pages = ROWS * self.farm.row_pages();
        match self.random.chance(0.5) {
            true => self.farm.check(0, pages).await,
            false => {
                let page = self.random.below(pages);
                self.farm.check(page, 1).await;
            }
        }
        self.say("read".into());
    }

    async fn check_all(&mut self) {
        self.farm.check(0, ROWS * self.farm.row_pages()).await;
        for page in 0..ROWS * self.farm.row_pages() {
            self.farm.check(page, 1).await;
        }
    }

    async fn harm(&mut self) {
        let (row, offset) = (Row(self.random.below(ROWS)), self.random.below(OFFSETS as u64) as usize);
        let column = Column(self.random.below(self.farm.layout.columns() as u64) as u8);
        let faults = self.faults(row, offset);
        if self.farm.io.lost_columns(SET, row).contains(column)
            || faults.with(column).len() > self.tolerated()
        {
            return;
        }
        let place = self.place(row, offset, column);
        let now = self.stored(place).await;
        let older: Vec<Vec<u8>> = self.history.get(&place).into_iter().flatten().cloned().collect();
        let (what, bytes) = match self.random.below(8) {
            0 => ("unreadable", now.clone()),
            1 => ("rot", now.iter().map(|byte| byte ^ 0x5a).collect()),
            2 | 3 if !older.is_empty() => ("first", older[0].clone()),
            _ if !older.is_empty() => {
                ("older", older[self.random.below(older.len() as u64) as usize].clone())
            }
            _ => return,
        };
        if what == "unreadable" {
            self.farm.journal.borrow_mut().unreadable.insert(place);
        } else if bytes == now {
            return;
        }
        self.say(format!("{what} {row:?} offset {offset} c{} {:02x} -> {:02x}", column.0, now[0], bytes[0]));
        self.plant(place, &bytes).await;
        let now = self.now();
        self.bad.insert(place, now);
        self.log.iter_mut().filter(|logged| logged.row == row).for_each(|logged| logged.tainted = true);
    }

    fn lose(&mut self) {
        let drive = self.random.below(self.farm.faults.len() as u64) as usize;
        if self.farm.io.members().lost().is_lost(drive)
            || self.moving.is_some_and(|(_, _, target)| target as usize == drive)
        {
            return;
        }
        let dies = |row: Row, offset: usize| -> ColumnMask {
            self.columns().into_iter().filter(|column| self.place(row, offset, *column).0 == drive).collect()
        };
        let goes = Walk::spots()
            .all(|(row, offset)| (self.faults(row, offset) | dies(row, offset)).len() <= self.tolerated());
        let all_rows = self
            .farm
            .all_rows()
            .all(|row| (self.farm.io.lost_columns(SET, row) | dies(row, 0)).len() <= self.tolerated());
        if !goes || !all_rows {
            return;
        }
        self.say(format!("lose drive {drive}, columns {}", dies(Row(0), 0)));
        self.farm.faults[drive].set_gone(true);
        self.farm.io.members().lost().set_lost(drive);
    }

    fn start_move(&mut self, rebuild_only: bool) {
        let lost = self.farm.io.lost_columns(SET, Row(0));
        let column = match lost.first() {
            Some(column) => column,
            None if rebuild_only => return,
            None => Column(self.random.below(self.farm.layout.columns() as u64) as u8),
        };
        let used: BTreeSet<u32> =
            self.columns().iter().map(|column| self.farm.sets.chunklet(SET, *column).drive).collect();
        let free: Vec<u32> = (0..self.farm.faults.len() as u32)
            .filter(|drive| !used.contains(drive) && !self.farm.io.members().lost().is_lost(*drive as usize))
            .collect();
        if free.is_empty() {
            return;
        }
        let drive = free[self.random.below(free.len() as u64) as usize];
        let target = ChunkletAddress { drive, index: 0 };
        self.say(format!("move {column:?} to drive {drive}, lost {lost}"));
        // What was bad of an earlier use says nothing of the next.
        self.bad.retain(|(at, _), _| *at != drive as usize);
        self.farm.journal.borrow_mut().unreadable.retain(|(at, _)| *at != drive as usize);
        match lost.is_empty() {
            true => self.farm.sets.start_evacuation(SET, column, target),
            false => self.farm.sets.start_rebuild(SET, column, target),
        }
        self.moving = Some((column, 0, drive));
    }

    async fn go_on_moving(&mut self) {
        let Some((column, first, drive)) = self.moving else { return };
        let farm = self.farm.clone();
        let end = if first + 1 < ROWS { first + 1 } else { farm.rows().end.0 };
        let rows = Row(first)..Row(end);
        let began = self.now();
        let crash = self.draw_cut(0.1);
        let rebuilt = farm.io.rebuild_rows(SET, column, rows.clone(), &*farm.table).await.expect("rebuilt");
        assert!(rebuilt.lost_pages.is_empty(), "lost {:?}", rebuilt.lost_pages);
        farm.io.flush().await.expect("flushed");
        self.say(format!("moved {rows:?} of {column:?}, cut: {crash}"));
        if crash {
            let cut = began + self.random.below(self.now() - began + 1);
            drop(rebuilt);
            self.cut(cut).await;
            self.recover().await;
            return;
        }
        let spots: Vec<(Row, usize)> = Walk::spots().filter(|(row, _)| rows.contains(row)).collect();
        let was_bad =
            |(row, offset): &&(Row, usize)| self.bad.contains_key(&self.place(*row, *offset, column));
        let bad: BTreeSet<(Row, usize)> = spots.iter().filter(was_bad).copied().collect();
        farm.sets.set_rebuilt(SET, column, rows.clone());
        drop(rebuilt);
        for (row, offset) in spots {
            let place = self.place(row, offset, column);
            match bad.contains(&(row, offset)) {
                // What no checksum vouches for may have been taken along.
                true => self.bad.insert(place, u64::MAX),
                false => self.bad.remove(&place),
            };
        }
        self.moving = Some((column, end, drive));
        if end == farm.rows().end.0 {
            farm.sets.finish_rebuild(SET, column);
            self.moving = None;
        }
        self.flushed().await;
    }

    fn scrubbed(&mut self, row: Row) {
        if self.is_empty(row) {
            return;
        }
        for offset in 0..OFFSETS {
            for column in self.columns() {
                let place = self.place(row, offset, column);
                self.bad.remove(&place);
            }
        }
    }

    async fn scrub(&mut self) {
        let farm = self.farm.clone();
        let began = self.now();
        let rows = Row(0)..Row(ROWS);
        let outcome = farm.io.scrub_rows(SET, rows.clone(), &*farm.table).await.expect("a scrub");
        assert_eq!(outcome.lost_pages, [0; 0]);
        farm.io.flush().await.expect("flushed");
        let crash = self.draw_cut(0.1);
        self.say(format!("scrub {outcome:?}, cut: {crash}"));
        if crash {
            let cut = began + self.random.below(self.now() - began + 1);
            self.cut(cut).await;
            self.recover().await;
            return;
        }
        self.flushed_pages();
        (0..ROWS).for_each(|row| self.scrubbed(Row(row)));
        self.check_parity().await;
        let again = farm.io.scrub_rows(SET, rows, &*farm.table).await.expect("a scrub");
        assert_eq!(again.repaired, 0, "{again:?}");
    }

    fn release(&mut self) {
        let count = self.random.below(self.log.len() as u64 + 1) as usize;
        self.log.drain(..count);
        self.say(format!("release {count} records"));
    }

    /// A repaired parity is not logged (decision 0005): what the log has of its row brings back the old one.
    fn note_repairs(&mut self) {
        let events = std::mem::take(&mut *self.farm.events.0.borrow_mut());
        for event in events {
            let row = Row(event.column_page / super::farm::UNIT_PAGES as u64);
            let is_parity = event.page.is_none() && event.source == Some(RepairSource::Data);
            for logged in self.log.iter_mut().filter(|logged| logged.row == row && is_parity) {
                logged.repaired = true;
            }
        }
    }

    async fn step(&mut self) {
        self.note_repairs();
        // Some walks write more, some harm more, some move more.
        let weights = match self.seed % 3 {
            0 => [30, 55, 65, 70, 74, 85, 93],
            1 => [18, 62, 66, 72, 78, 90, 95],
            _ => [20, 45, 50, 55, 65, 92, 95],
        };
        let drawn = self.random.below(100);
        match weights.iter().position(|end| drawn < *end) {
            Some(0) => self.write().await,
            Some(1) => self.harm().await,
            Some(2) => self.check().await,
            Some(3) => self.lose(),
            Some(4) if self.moving.is_none() => self.start_move(false),
            Some(4 | 5) => {
                if self.moving.is_none() {
                    self.start_move(true);
                }
                self.go_on_moving().await;
            }
            Some(6) => self.scrub().await,
            _ => self.release(),
        }
    }

    async fn run(&mut self) {
        let farm = self.farm.clone();
        farm.fill_with_noise(&mut self.random).await;
        farm.journal.borrow_mut().is_kept = true;
        for _ in 0..STEPS {
            self.step().await;
        }
        self.say(format!("the end, harmed {:?}", self.bad));
        self.check_all().await;
        while self.moving.is_some() {
            self.go_on_moving().await;
        }
        self.scrub().await;
        self.check_all().await;
        self.say(format!(
            "harmed {:?}",
            Walk::spots().map(|(r, o)| self.faults(r, o).to_string()).collect::<Vec<_>>()
        ));
        for _ in 0..20 {
            self.lose();
        }
        self.check_all().await;
    }
}

fn asked_for(name: &str) -> bool {
    std::env::var_os(name).is_some()
}

fn walk(level: RaidLevel, columns: usize, seeds: std::ops::Range<u64>) {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let columns = number("WALK_COLUMNS").map_or(columns, |columns| columns as usize);
    let seeds = match (number("WALK_FIRST"), number("WALK_COUNT")) {
        (Some(first), count) => first..first + count.unwrap_or(1),
        _ => seeds,
    };
    for seed in seeds {
        let one = || {
            on((level, columns), seed, move |farm, random| async move {
                let stable = farm.table.0.borrow().clone();
                let mut walk = Walk {
                    farm,
                    random,
                    bad: BTreeMap::new(),
                    log: Vec::new(),
                    stable,
                    history: BTreeMap::new(),
                    moving: None,
                    seed,
                    trace: Trace(format!("{level} of {columns}, seed {seed}"), Vec::new()),
                };
                walk.run().await;
            });
        };
        match asked_for("WALK_SURVEY") {
            true => drop(std::panic::catch_unwind(std::panic::AssertUnwindSafe(one))),
            false => one(),
        }
    }
}

#[test]
fn raid_1() {
    walk(RaidLevel::Raid1, 2, 0..300);
}

#[test]
fn raid_5() {
    walk(RaidLevel::Raid5, 6, 0..300);
}

#[test]
fn raid_6() {
    walk(RaidLevel::Raid6, 8, 0..300);
}
