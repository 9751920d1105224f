//! A RAID set in memory, one byte per sector, driven by plans alone: the naive reference executor.
//!
//! It knows only what a plan had it read: computing with a sector that was not read, writing one that was
//! not computed, or touching a lost column fails the test. Lost columns hold garbage.

use tier0_raid::layout::{
    Column, ColumnExtent, ColumnMask, Group, Layout, Piece, Role, Row, Unit, UnitMask, WriteBand, WriteMethod,
};
use tier0_raid::parity;
use tier0_units::{Lba, SectorCount};

/// Lost sectors read as this, if a plan were to read them.
const GARBAGE: u8 = 0xee;

/// One stripe unit per column, as far as known.
type RowBuffer = Vec<Vec<Option<u8>>>;

/// The set.
pub(crate) struct SetModel {
    pub(crate) layout: Layout,
    pub(crate) lost: ColumnMask,
    columns: Vec<Vec<u8>>,
}

/// Offsets of a stripe unit as indices.
type Span = std::ops::Range<usize>;

fn span(offset: SectorCount, sectors: SectorCount) -> Span {
    offset.0 as usize..(offset.0 + sectors.0) as usize
}

fn index(column: Column) -> usize {
    usize::from(column.0)
}

impl SetModel {
    /// A set of zeros, whose parity is zeros.
    pub(crate) fn new(layout: Layout, rows: usize) -> SetModel {
        let column = vec![0; rows * layout.stripe_unit().0 as usize];
        SetModel { layout, lost: ColumnMask::EMPTY, columns: vec![column; layout.columns()] }
    }

    /// The sectors of data it holds.
    pub(crate) fn sectors(&self) -> usize {
        self.layout.data_sectors(SectorCount(self.columns[0].len() as u64)).0 as usize
    }

    /// Loses columns and what they hold.
    pub(crate) fn lose(&mut self, columns: ColumnMask) {
        self.lost = self.lost | columns;
        for column in columns {
            self.columns[index(column)].fill(GARBAGE);
        }
    }

    /// Writes `data` to the sectors from `lba` on.
    pub(crate) fn write(&mut self, lba: u64, data: &[u8]) {
        let pieces: Vec<Piece> = self.layout.pieces(Lba(lba), SectorCount(data.len() as u64)).collect();
        for piece in pieces {
            let from = (piece.lba.0 - lba) as usize;
            self.write_piece(&piece, &data[from..from + piece.sectors.0 as usize]);
        }
    }

    fn write_piece(&mut self, piece: &Piece, data: &[u8]) {
        let plan = self.layout.plan_write(piece, self.lost).expect("survivable");
        let old = self.fetch(piece.row, plan.reads());
        let mut new = self.blank();
        for band in plan.bands() {
            self.write_band(piece, band, data, &old, &mut new);
        }
        for ColumnExtent { column, offset, sectors } in plan.writes() {
            assert!(!self.lost.contains(column), "{column:?} is lost, but written: {plan:?}");
            let at = self.layout.column_lba(piece.row, SectorCount(0)).0 as usize;
            for i in span(offset, sectors) {
                let byte = new[index(column)][i];
                self.columns[index(column)][at + i] =
                    byte.unwrap_or_else(|| panic!("sector {i} of {column:?} is not computed: {plan:?}"));
            }
        }
    }

    fn write_band(&self, piece: &Piece, band: &WriteBand, data: &[u8], old: &RowBuffer, new: &mut RowBuffer) {
        let (layout, row, group) = (&self.layout, piece.row, piece.group);
        let span = span(band.offset, band.sectors);
        let written: Vec<(Unit, &[u8])> = band
            .written
            .iter()
            .map(|unit| {
                let at = layout.position_in(piece, unit, band.offset).0 as usize;
                (unit, &data[at..at + span.len()])
            })
            .collect();
        for &(unit, bytes) in &written {
            for column in layout.copies(row, unit) {
                put(&mut new[index(column)], &span, bytes);
            }
        }
        let parity = layout.parity_columns(row, group);
        let (p, q) =
            (parity.p.filter(|&p| !self.lost.contains(p)), parity.q.filter(|&q| !self.lost.contains(q)));
        let known = |column: Column| take(&old[index(column)], &span);
        let (new_p, new_q) = match band.method {
            WriteMethod::DataOnly => {
                assert!(p.is_none() && q.is_none(), "parity is left, but not kept: {band:?}");
                return;
            }
            WriteMethod::ReadModifyWrite => {
                let (mut new_p, mut new_q) = (p.map(known), q.map(known));
                for (unit, bytes) in written {
                    let before = known(layout.data_column(row, unit));
                    match (&mut new_p, &mut new_q) {
                        (Some(p), Some(q)) => parity::update_pq(p, q, unit.0.into(), &before, bytes),
                        (Some(p), None) => parity::update_p(p, &before, bytes),
                        (None, Some(q)) => parity::update_q(q, unit.0.into(), &before, bytes),
                        (None, None) => panic!("nothing to modify: {band:?}"),
                    }
                }
                (new_p, new_q)
            }
            WriteMethod::FullStripe | WriteMethod::ReconstructWrite | WriteMethod::RecoverAndReconstruct => {
                let recovered = self.recover(row, group, band.recover, band.reads, old, &span);
                let now = |unit: Unit| {
                    let fresh =
                        written.iter().find(|(other, _)| *other == unit).map(|(_, bytes)| bytes.to_vec());
                    let before =
                        recovered.iter().find(|(other, _)| *other == unit).map(|(_, bytes)| bytes.clone());
                    fresh.or(before).unwrap_or_else(|| known(layout.data_column(row, unit)))
                };
                let row_now: Vec<Vec<u8>> = layout.group_unit_mask(group).iter().map(now).collect();
                let (mut new_p, mut new_q) = (vec![0; span.len()], vec![0; span.len()]);
                parity::pq(&mut new_p, &mut new_q, &row_now);
                (Some(new_p), Some(new_q))
            }
        };
        for (column, bytes) in [(p, new_p), (q, new_q)] {
            if let (Some(column), Some(bytes)) = (column, bytes) {
                put(&mut new[index(column)], &span, &bytes);
            }
        }
    }

    /// Reads `count` sectors from `lba` on; a mirror is read from the copy that `choose` picks.
    pub(crate) fn read(
        &self,
        lba: u64,
        count: usize,
        mut choose: impl FnMut(ColumnMask) -> Column,
    ) -> Vec<u8> {
        let mut out = Vec::new();
        for piece in self.layout.pieces(Lba(lba), SectorCount(count as u64)) {
            let plan = self.layout.plan_read(&piece, self.lost, &mut choose).expect("survivable");
            let seen = self.fetch(piece.row, plan.reads());
            let mut bytes = vec![None; piece.sectors.0 as usize];
            for band in plan.bands() {
                let span = span(band.offset, band.sectors);
                let recovered = self.recover(piece.row, piece.group, band.recover, band.reads, &seen, &span);
                for unit in band.wanted {
                    let found =
                        recovered.iter().find(|(other, _)| *other == unit).map(|(_, bytes)| bytes.clone());
                    let found = found.unwrap_or_else(|| {
                        let column =
                            (self.layout.copies(piece.row, unit) & band.reads).first().expect("a copy");
                        take(&seen[index(column)], &span)
                    });
                    let at = self.layout.position_in(&piece, unit, band.offset).0 as usize;
                    put(&mut bytes, &(at..at + span.len()), &found);
                }
            }
            out.extend(take(&bytes, &(0..bytes.len())));
        }
        out
    }

    /// Computes every row of a lost column from the others and brings it back.
    pub(crate) fn rebuild(&mut self, column: Column) {
        let unit_sectors = self.layout.stripe_unit();
        let span = span(SectorCount(0), unit_sectors);
        for row in (0..(self.columns[0].len() / span.len()) as u64).map(Row) {
            let plan = self.layout.plan_rebuild(row, column, self.lost).expect("survivable");
            let whole = |column| ColumnExtent { column, offset: SectorCount(0), sectors: unit_sectors };
            let seen = self.fetch(row, plan.reads.iter().map(whole));
            let known = |column: Column| take(&seen[index(column)], &span);
            let bytes = match plan.role {
                Role::Mirror(..) => known(plan.reads.first().expect("a copy")),
                Role::Data(unit) => {
                    let group = self.layout.group_of(unit);
                    let recovered = self.recover(row, group, plan.recover, plan.reads, &seen, &span);
                    recovered.into_iter().find(|(other, _)| *other == unit).expect("its own unit").1
                }
                Role::P(group) | Role::Q(group) => {
                    let recovered = self.recover(row, group, plan.recover, plan.reads, &seen, &span);
                    let now = |unit: Unit| {
                        let found = recovered.iter().find(|(other, _)| *other == unit);
                        found.map_or_else(
                            || known(self.layout.data_column(row, unit)),
                            |(_, bytes)| bytes.clone(),
                        )
                    };
                    let data: Vec<Vec<u8>> = self.layout.group_unit_mask(group).iter().map(now).collect();
                    let (mut p, mut q) = (vec![0; span.len()], vec![0; span.len()]);
                    parity::pq(&mut p, &mut q, &data);
                    if matches!(plan.role, Role::P(_)) { p } else { q }
                }
            };
            let at = self.layout.column_lba(row, SectorCount(0)).0 as usize;
            self.columns[index(column)][at..at + span.len()].copy_from_slice(&bytes);
        }
        self.lost = self.lost.without(column);
    }

    /// Fails unless every parity and every copy is what the data says.
    pub(crate) fn check_redundancy(&self) {
        let unit_sectors = self.layout.stripe_unit().0 as usize;
        for row in 0..self.columns[0].len() / unit_sectors {
            let (at, row) = (row * unit_sectors, Row(row as u64));
            let stored = |column: Column| &self.columns[index(column)][at..at + unit_sectors];
            for group in (0..self.layout.groups() as u8).map(Group) {
                let units = self.layout.group_unit_mask(group);
                let data: Vec<&[u8]> =
                    units.iter().map(|unit| stored(self.layout.data_column(row, unit))).collect();
                for unit in units {
                    for copy in self.layout.copies(row, unit) {
                        assert_eq!(
                            stored(copy),
                            stored(self.layout.data_column(row, unit)),
                            "a copy of {unit:?}"
                        );
                    }
                }
                let (mut p, mut q) = (vec![0; unit_sectors], vec![0; unit_sectors]);
                parity::pq(&mut p, &mut q, &data);
                let columns = self.layout.parity_columns(row, group);
                columns.p.inspect(|&column| assert_eq!(stored(column), p, "P of {group:?} in {row:?}"));
                columns.q.inspect(|&column| assert_eq!(stored(column), q, "Q of {group:?} in {row:?}"));
            }
        }
    }

    fn blank(&self) -> RowBuffer {
        vec![vec![None; self.layout.stripe_unit().0 as usize]; self.layout.columns()]
    }

    /// Reads extents of a row.
    fn fetch(&self, row: Row, extents: impl Iterator<Item = ColumnExtent>) -> RowBuffer {
        let mut seen = self.blank();
        let at = self.layout.column_lba(row, SectorCount(0)).0 as usize;
        for ColumnExtent { column, offset, sectors } in extents {
            assert!(!self.lost.contains(column), "{column:?} is lost, but read");
            assert!(sectors.0 > 0, "an empty read of {column:?}");
            for i in span(offset, sectors) {
                let slot = &mut seen[index(column)][i];
                assert!(slot.is_none(), "sector {i} of {column:?} is read twice");
                *slot = Some(self.columns[index(column)][at + i]);
            }
        }
        seen
    }

    /// The units of `lost` from what was read.
    fn recover(
        &self,
        row: Row,
        group: Group,
        lost: UnitMask,
        reads: ColumnMask,
        seen: &RowBuffer,
        span: &Span,
    ) -> Vec<(Unit, Vec<u8>)> {
        if lost.is_empty() {
            return Vec::new();
        }
        let known = |column: Column| take(&seen[index(column)], span);
        let data: Vec<Option<Vec<u8>>> = self
            .layout
            .group_unit_mask(group)
            .iter()
            .map(|unit| (!lost.contains(unit)).then(|| known(self.layout.data_column(row, unit))))
            .collect();
        let parity = self.layout.parity_columns(row, group);
        let read = |column: Option<Column>| column.filter(|&column| reads.contains(column)).map(known);
        let (p, q) = (read(parity.p), read(parity.q));
        let mut found: Vec<(Unit, Vec<u8>)> = lost.iter().map(|unit| (unit, vec![0; span.len()])).collect();
        let mut outputs: Vec<&mut [u8]> = found.iter_mut().map(|(_, bytes)| &mut bytes[..]).collect();
        parity::recover(&mut outputs, &data, p.as_deref(), q.as_deref());
        found
    }
}

/// The bytes of a span, every one of which must be known.
fn take(from: &[Option<u8>], span: &Span) -> Vec<u8> {
    from[span.clone()].iter().map(|byte| byte.expect("a sector that the plan had read")).collect()
}

fn put(to: &mut [Option<u8>], span: &Span, bytes: &[u8]) {
    for (slot, &byte) in to[span.clone()].iter_mut().zip(bytes) {
        assert!(slot.is_none(), "a sector is computed twice");
        *slot = Some(byte);
    }
}
