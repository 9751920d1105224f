//! Reads: straight from one drive where that is possible, recovered from the row where not.

use futures_util::future::join_all;
use tier0_units::{Lba, SectorCount};
use tier0_world::{BufMut, IoError, PlantedBug, planted};

use crate::io::RaidIo;
use crate::io::scratch::Scratch;
use crate::io::stripe::recover_lost;
use crate::layout::{Column, ColumnMask, Layout, Piece, ReadPlan, Row, Unit};
use crate::set::SetIndex;

impl RaidIo {
    /// Reads as many sectors of a set's data as `buf` holds. The buffer comes back in any case; after an error its
    /// content is arbitrary.
    ///
    /// # Errors
    /// [`IoError::RedundancyLost`] when more drives are lost than the level makes up for.
    pub async fn read(&self, set: SetIndex, first: Lba, buf: BufMut) -> (Result<(), IoError>, BufMut) {
        let layout = self.sets().layout(set);
        let at = layout.map(first);
        if at.offset.0 + u64::from(buf.sectors()) <= layout.stripe_unit().0 {
            return self.read_in_unit(set, first, buf).await;
        }
        let mut rest = buf;
        let mut parts = Vec::new();
        for piece in layout.pieces(first, SectorCount(u64::from(rest.sectors()))) {
            let part = rest.split_to(piece.sectors.0 as u32);
            parts.push(self.read_piece(set, piece, part));
        }
        join_reads(join_all(parts).await)
    }

    /// The common case: all of it in one stripe unit, and a drive that answers.
    async fn read_in_unit(&self, set: SetIndex, first: Lba, buf: BufMut) -> (Result<(), IoError>, BufMut) {
        let layout = self.sets().layout(set);
        let at = layout.map(first);
        let lost = self.lost_columns(set, at.row);
        let copies = layout.copies(at.row, at.unit) - lost;
        if !copies.is_empty() {
            let column = self.choose(set, at.row, copies);
            let (result, buf) =
                self.read_column(set, column, layout.column_lba(at.row, at.offset), buf).await;
            if result.is_ok() {
                return (result, buf);
            }
            return self.read_otherwise(set, first, buf, lost.with(column)).await;
        }
        self.read_otherwise(set, first, buf, lost).await
    }

    /// Out of line: the way around a failure is seldom taken and its future is large.
    async fn read_otherwise(
        &self,
        set: SetIndex,
        first: Lba,
        buf: BufMut,
        lost: ColumnMask,
    ) -> (Result<(), IoError>, BufMut) {
        let sectors = SectorCount(u64::from(buf.sectors()));
        let piece = self.sets().layout(set).pieces(first, sectors).next().expect("a read has sectors");
        Box::pin(self.read_piece_without(set, piece, buf, lost)).await
    }

    async fn read_piece(&self, set: SetIndex, piece: Piece, buf: BufMut) -> (Result<(), IoError>, BufMut) {
        let lost = self.lost_columns(set, piece.row);
        self.read_piece_without(set, piece, buf, lost).await
    }

    /// Reads a piece, each time a column fails once more without it.
    pub(super) async fn read_piece_without(
        &self,
        set: SetIndex,
        piece: Piece,
        mut buf: BufMut,
        mut lost: ColumnMask,
    ) -> (Result<(), IoError>, BufMut) {
        let layout = self.sets().layout(set);
        loop {
            let Ok(plan) = layout.plan_read(&piece, lost, |columns| self.choose(set, piece.row, columns))
            else {
                return (Err(IoError::RedundancyLost), buf);
            };
            let failed;
            (failed, buf) = if plan.bands().iter().all(|band| band.recover.is_empty()) {
                self.read_straight(set, &piece, lost, buf).await
            } else {
                // What is recovered while the row is written is neither old nor new.
                let _guard = self.lock_group(set, &piece).await;
                match Scratch::read(self, set, piece.row, plan.reads()).await {
                    Ok(scratch) => {
                        fill_from(layout, &scratch, &piece, &plan, &mut buf);
                        (Ok(()), buf)
                    }
                    Err(failed) => (Err(failed), buf),
                }
            };
            match failed {
                Ok(()) => return (Ok(()), buf),
                Err((column, error)) if lost.contains(column) => return (Err(error), buf),
                Err((column, _)) => lost = lost.with(column),
            }
        }
    }

    /// Reads a piece whose units all have a column left, without a copy in memory.
    async fn read_straight(
        &self,
        set: SetIndex,
        piece: &Piece,
        lost: ColumnMask,
        mut rest: BufMut,
    ) -> (Result<(), (Column, IoError)>, BufMut) {
        let layout = self.sets().layout(set);
        let mut parts = Vec::new();
        for extent in layout.extents(piece) {
            let part = rest.split_to(extent.sectors.0 as u32);
            let column = self.choose(set, piece.row, layout.copies(piece.row, extent.unit) - lost);
            let lba = layout.column_lba(piece.row, extent.offset);
            parts.push(async move {
                let (result, part) = self.read_column(set, column, lba, part).await;
                (result.map_err(|error| (column, error)), part)
            });
        }
        join_reads(join_all(parts).await)
    }

    #[inline]
    pub(super) fn choose(&self, set: SetIndex, row: Row, columns: ColumnMask) -> Column {
        if columns.len() == 1 {
            return columns.first().expect("there is one");
        }
        self.members().idlest(self.sets(), set, row, columns)
    }

    /// Reads from an address within a column. A column that is not rebuilt there is as good as gone: it may have moved
    /// since it was chosen.
    pub(super) async fn read_column(
        &self,
        set: SetIndex,
        column: Column,
        lba: Lba,
        buf: BufMut,
    ) -> (Result<(), IoError>, BufMut) {
        let row = self.sets().layout(set).column_row(lba);
        let (member, start) = match planted(PlantedBug::ReadsGoToNewPlace) {
            true => self.sets().place(set, column),
            false => self.sets().place_of_row(set, column, row),
        };
        if self.sets().any_rebuilding() && self.sets().is_missing(set, column, row) {
            return (Err(IoError::Gone), buf);
        }
        self.members().read(member, start + SectorCount(lba.0), buf).await
    }
}

/// Copies and recovers what was wanted into the caller's buffer.
fn fill_from(layout: &Layout, scratch: &Scratch, piece: &Piece, plan: &ReadPlan, buf: &mut BufMut) {
    let width = buf.width().bytes();
    for band in plan.bands() {
        let recovered =
            recover_lost(layout, piece, band.offset, band.sectors, band.recover, band.reads, scratch);
        let bytes = band.sectors.0 as usize * width;
        for unit in band.wanted.iter() {
            let start = layout.position_in(piece, unit, band.offset).0 as usize * width;
            let source = match recovered.iter().find(|(lost, _)| *lost == unit) {
                Some((_, bytes)) => bytes,
                None => {
                    scratch.bytes(read_source(layout, piece, unit, band.reads), band.offset, band.sectors)
                }
            };
            buf.as_mut_slice()[start..start + bytes].copy_from_slice(source);
        }
    }
}

/// The column of a unit that the plan has read.
fn read_source(layout: &Layout, piece: &Piece, unit: Unit, reads: ColumnMask) -> Column {
    let columns = layout.copies(piece.row, unit) & reads;
    columns.first().expect("the plan reads every unit it does not recover")
}

/// The parts of one read, back in one buffer, with the first failure.
pub(super) fn join_reads<E>(parts: Vec<(Result<(), E>, BufMut)>) -> (Result<(), E>, BufMut) {
    let mut parts = parts.into_iter();
    let (mut result, mut buf) = parts.next().expect("a read has parts");
    for (other, part) in parts {
        buf.append(part);
        result = result.and(other);
    }
    (result, buf)
}
