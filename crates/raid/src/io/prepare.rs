//! The first half of a write in two: everything but touching the row. What parity needs is read and verified, the new
//! parity is computed, and the row stays locked, so that the parity can be logged before anything is written.
//!
//! Old content that is wrong must not flow into parity. Read-modify-write carries the difference between old and new
//! content into it, so it is taken only where the old content is verified; elsewhere parity is made from the whole
//! row, whose other pages are verified and, where they are wrong, repaired first.

use std::ops::Range;

use futures_util::future::join_all;
use tier0_units::PAGE_SECTORS;
use tier0_world::{Buf, BufMut, IoError};

use crate::io::RaidIo;
use crate::io::expect::{Expect, Expected};
use crate::io::grid::{Cell, ColumnRun, Grid, GroupRow};
use crate::io::heal::LostPage;
use crate::io::new_pages::{NewPages, Rest};
use crate::io::patience::Stake;
use crate::io::prepared::{ColumnWrite, Prepared};
use crate::io::report::{PageFault, RepairSource};
use crate::io::solve::{DataPage, Slice};
use crate::layout::{ColumnMask, Group, PagePlace, Row, Unit, WriteBand, WriteMethod};
use crate::parity;
use crate::set::SetIndex;

/// What a group needs besides the new data.
#[derive(Default)]
struct GroupUpdate {
    parity: Vec<ColumnWrite>,
    /// Zeros for pages that are lost for good and cannot even be read, and for those of which nothing is stored and whose
    /// drive holds something else: parity counts them as that.
    blanks: Vec<ColumnWrite>,
}

impl RaidIo {
    /// Prepares the write of `pages` to a row: (place in the row's data in pages, whole pages), no page twice. Waits
    /// for the row's lock and keeps it until what is returned is gone. A caller that keeps several rows takes them in
    /// the order of sets and rows.
    ///
    /// # Errors
    /// [`IoError::RedundancyLost`] when more drives are lost than the level makes up for; [`IoError::Medium`] when a page
    /// without a checksum is needed and cannot be had. A page with a checksum that is lost for good is no error here: it
    /// goes on failing its checksum.
    pub async fn prepare(
        &self,
        set: SetIndex,
        row: Row,
        pages: &[(u64, Buf)],
        rest: Rest,
        expect: &dyn Expect,
    ) -> Result<Prepared, IoError> {
        let guard = self.lock_row(set, row).await;
        let layout = self.sets().layout(set);
        let new = NewPages::new(layout, self.members().width(), pages, rest);
        if rest == Rest::Zeros {
            let given = |page| {
                pages.iter().any(|(first, buf)| {
                    (*first..*first + u64::from(buf.sectors()) / PAGE_SECTORS).contains(&page)
                })
            };
            let first = row.0 * layout.row_pages() as u64;
            let kept = (0..layout.row_pages() as u64).filter(|page| !given(*page));
            let blank = kept
                .map(|page| expect.expect(set, first + page))
                .all(|page| !matches!(page, Expected::Crc(_)));
            assert!(blank, "row {} of set {} is not unwritten", row.0, set.0);
        }
        let mut prepared = Prepared::new(self.clone(), set, row, guard);
        if layout.parities() > 0 {
            let groups = (0..layout.groups() as u8).map(Group).filter(|group| new.touches(layout, *group));
            let prepare_one = |group| self.prepare_group(GroupRow { set, row, group }, &new, expect);
            for update in join_all(groups.map(prepare_one)).await {
                let update = update?;
                prepared.parity.extend(update.parity);
                prepared.data.extend(update.blanks);
            }
        }
        prepared.add_data(&new)?;
        Ok(prepared)
    }

    async fn prepare_group(
        &self,
        at: GroupRow,
        new: &NewPages,
        expect: &dyn Expect,
    ) -> Result<GroupUpdate, IoError> {
        let layout = self.sets().layout(at.set);
        let mut grid = Grid::new(self, at);
        let mut distrusted = vec![false; layout.unit_pages()];
        let (bands, lost_pages) = loop {
            let lost = self.lost_columns(at.set, at.row);
            let bands = new.bands(layout, at.group, &distrusted);
            let bands = layout.plan_update(at.row, at.group, &bands, lost);
            let bands = bands.map_err(|_| IoError::RedundancyLost)?;
            grid.read(self, reads(&grid, &bands)).await;
            if self.distrust(&grid, &bands, expect, &mut distrusted) {
                continue;
            }
            let doubtful = doubtful(self, &grid, &bands, expect);
            let lost_pages = match doubtful.is_empty() {
                true => Vec::new(),
                false => self.complete(&mut grid, &doubtful, Stake::Content, expect).await,
            };
            if self.lost_columns(at.set, at.row) == lost {
                break (bands, lost_pages);
            }
        };
        let mut update = GroupUpdate::default();
        let mut modify: Vec<bool> = vec![false; layout.unit_pages()];
        for band in bands.iter().filter(|band| band.method == WriteMethod::ReadModifyWrite) {
            modify[offsets(band)].fill(true);
        }
        for lost in lost_pages {
            self.do_without(&mut grid, lost, new, expect, &mut modify, &mut update)?;
        }
        self.write_over_lies(&mut grid, &bands, expect, &modify, &mut update);
        update.parity = self.parity_writes(&grid, &bands, new, &modify);
        Ok(update)
    }

    /// Marks the offsets whose old content must not be modified from; whether there is any new one.
    fn distrust(
        &self,
        grid: &Grid,
        bands: &[WriteBand],
        expect: &dyn Expect,
        distrusted: &mut [bool],
    ) -> bool {
        let mut found = false;
        for band in bands.iter().filter(|band| band.method == WriteMethod::ReadModifyWrite) {
            for offset in offsets(band) {
                let slice = Slice::new(self.sets().layout(grid.at().set), grid, offset, expect);
                if self.may_modify(&slice, band.written.iter()) {
                    continue;
                }
                for data in slice.data.iter().filter(|data| band.written.contains(data.unit)) {
                    if let Some(fault) = slice.fault(data) {
                        self.report_data(grid, offset, data, fault, Some(RepairSource::Overwritten));
                    }
                }
                let at = grid.at();
                for parity in slice.parity_columns() - self.lost_columns(at.set, at.row) {
                    if grid.page(parity, offset).is_none() {
                        let source = Some(RepairSource::Overwritten);
                        self.report_parity(grid, offset, parity, PageFault::Unreadable, source);
                    }
                }
                (distrusted[offset], found) = (true, true);
            }
        }
        found
    }

    /// Whether the old contents of `written` and every parity that is left are there and good.
    fn may_modify(&self, slice: &Slice<'_>, mut written: impl Iterator<Item = Unit>) -> bool {
        let at = slice.grid.at();
        let parities = slice.parity_columns() - self.lost_columns(at.set, at.row);
        let parity_there = parities.iter().all(|column| slice.grid.page(column, slice.offset).is_some());
        parity_there
            && written.all(|unit| {
                let data = slice.data.iter().find(|data| data.unit == unit).expect("a unit of the group");
                let content = slice.grid.page(data.column, slice.offset);
                content.is_some_and(|content| data.expected.vouches_for(content.as_slice()))
            })
    }

    /// Goes on although a page cannot be had: its own loss cannot be helped, but the new data must be safe.
    fn do_without(
        &self,
        grid: &mut Grid,
        lost: LostPage,
        new: &NewPages,
        expect: &dyn Expect,
        modify: &mut [bool],
        update: &mut GroupUpdate,
    ) -> Result<(), IoError> {
        let (layout, at) = (self.sets().layout(grid.at().set), grid.at());
        let written = new.written(layout, at.group, lost.offset);
        if written.contains(lost.data.unit) || modify[lost.offset] {
            return Ok(());
        }
        if lost.data.expected == Expected::Unknown {
            return Err(IoError::Medium);
        }
        let slice = Slice::new(layout, grid, lost.offset, expect);
        if self.may_modify(&slice, written.iter()) {
            modify[lost.offset] = true;
        } else if grid.page(lost.data.column, lost.offset).is_none() {
            let blank = self.blank_page();
            if !self.lost_columns(at.set, at.row).contains(lost.data.column) {
                let lba = layout.page_column_lba(at.row, lost.offset);
                update.blanks.push(ColumnWrite { column: lost.data.column, lba, buf: blank.clone() });
            }
            grid.set(lost.data.column, lost.offset, Cell::Page(blank));
        }
        Ok(())
    }

    /// Parity that is made from the row counts zeros where nothing is stored. A drive that holds something else there lied
    /// about a write: were that counted, a drive that forgot it would be believed to hold what was written.
    fn write_over_lies(
        &self,
        grid: &mut Grid,
        bands: &[WriteBand],
        expect: &dyn Expect,
        modify: &[bool],
        update: &mut GroupUpdate,
    ) {
        let (layout, at) = (self.sets().layout(grid.at().set), grid.at());
        for band in bands {
            for offset in offsets(band).filter(|offset| !modify[*offset]) {
                let lies = Slice::new(layout, grid, offset, expect).lies();
                let kept = lies.into_iter().filter(|data| !band.written.contains(data.unit)).collect();
                let lba = layout.page_column_lba(at.row, offset);
                let zeros = self.take_for_zeros(grid, offset, kept, RepairSource::Zeros);
                update.blanks.extend(zeros.into_iter().map(|(column, buf)| ColumnWrite { column, lba, buf }));
            }
        }
    }

    /// The new parity of all bands, touching ones joined.
    fn parity_writes(
        &self,
        grid: &Grid,
        bands: &[WriteBand],
        new: &NewPages,
        modify: &[bool],
    ) -> Vec<ColumnWrite> {
        let (layout, at) = (self.sets().layout(grid.at().set), grid.at());
        let parities = layout.parity_columns(at.row, at.group);
        let lost = self.lost_columns(at.set, at.row);
        let [p, q] = [parities.p, parities.q].map(|parity| parity.filter(|column| !lost.contains(*column)));
        let mut runs: Vec<Range<usize>> = Vec::new();
        for offsets in bands.iter().map(offsets) {
            match runs.last_mut() {
                Some(run) if run.end == offsets.start => run.end = offsets.end,
                _ => runs.push(offsets),
            }
        }
        let mut writes = Vec::new();
        let width = self.members().width();
        let page_bytes = PAGE_SECTORS as usize * width.bytes();
        for run in runs {
            let fresh = |_| BufMut::new((run.len() as u64 * PAGE_SECTORS) as u32, width);
            let (mut p_buf, mut q_buf) = (p.map(fresh), q.map(fresh));
            for (n, offset) in run.clone().enumerate() {
                let [p_page, q_page] = [&mut p_buf, &mut q_buf].map(|buf| {
                    buf.as_mut().map(|buf| &mut buf.as_mut_slice()[n * page_bytes..][..page_bytes])
                });
                self.new_parity(grid, offset, new, modify[offset], p_page, q_page);
            }
            let lba = layout.page_column_lba(at.row, run.start);
            let write = |column, buf: BufMut| ColumnWrite { column, lba, buf: buf.freeze() };
            writes.extend(p.zip(p_buf).map(|(column, buf)| write(column, buf)));
            writes.extend(q.zip(q_buf).map(|(column, buf)| write(column, buf)));
        }
        writes
    }

    /// The new parity at one offset.
    fn new_parity(
        &self,
        grid: &Grid,
        offset: usize,
        new: &NewPages,
        modify: bool,
        p: Option<&mut [u8]>,
        q: Option<&mut [u8]>,
    ) {
        let (layout, at) = (self.sets().layout(grid.at().set), grid.at());
        let units = layout.group_unit_mask(at.group);
        let stored = |column| grid.page(column, offset).expect("what parity needs was read").as_slice();
        let old = |unit| stored(layout.data_column(at.row, unit));
        let fresh = |unit| new.bytes(PagePlace { unit, offset });
        if modify {
            let parities = layout.parity_columns(at.row, at.group);
            let base = units.first().map_or(0, Unit::index);
            let changes = || units.iter().filter_map(|unit| Some((unit, fresh(unit)?)));
            if let (Some(p), Some(column)) = (p, parities.p) {
                p.copy_from_slice(stored(column));
                changes().for_each(|(unit, new)| parity::update_p(p, old(unit), new));
            }
            if let (Some(q), Some(column)) = (q, parities.q) {
                q.copy_from_slice(stored(column));
                changes().for_each(|(unit, new)| parity::update_q(q, unit.index() - base, old(unit), new));
            }
            return;
        }
        let content = |unit| fresh(unit).unwrap_or_else(|| old(unit));
        match (p, q) {
            (Some(p), Some(q)) => parity::pq(p, q, &units.iter().map(content).collect::<Vec<_>>()),
            (Some(p), None) => parity::xor_many(p, &units.iter().map(content).collect::<Vec<_>>()),
            (None, Some(q)) => parity::q(q, &units.iter().map(content).collect::<Vec<_>>()),
            (None, None) => {}
        }
    }
}

/// The offsets of a band, in pages.
fn offsets(band: &WriteBand) -> Range<usize> {
    let page = |sectors: u64| (sectors / PAGE_SECTORS) as usize;
    page(band.offset.0)..page((band.offset + band.sectors).0)
}

/// What the bands need and is not read yet; runs of touching bands on one column joined.
fn reads(grid: &Grid, bands: &[WriteBand]) -> Vec<ColumnRun> {
    let all = bands.iter().map(|band| band.reads).fold(ColumnMask::EMPTY, |all, reads| all | reads);
    let of_column = |column| {
        let own = bands.iter().filter(move |band| band.reads.contains(column));
        grid.unread(ColumnMask::only(column), &own.flat_map(offsets).collect::<Vec<_>>())
    };
    all.iter().flat_map(of_column).collect()
}

/// The offsets at which parity is made from the row and a page that is kept is not there or fails its checksum.
fn doubtful(io: &RaidIo, grid: &Grid, bands: &[WriteBand], expect: &dyn Expect) -> Vec<usize> {
    let made_from_row = |band: &&WriteBand| {
        matches!(band.method, WriteMethod::ReconstructWrite | WriteMethod::RecoverAndReconstruct)
    };
    let mut doubtful = Vec::new();
    for band in bands.iter().filter(made_from_row) {
        for offset in offsets(band) {
            let slice = Slice::new(io.sets().layout(grid.at().set), grid, offset, expect);
            let kept_and_wrong =
                |data: &DataPage| !band.written.contains(data.unit) && slice.fault(data).is_some();
            if slice.data.iter().any(kept_and_wrong) {
                doubtful.push(offset);
            }
        }
    }
    doubtful
}
