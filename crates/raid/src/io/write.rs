//! Writes: mirrors in parallel, parity by whichever way reads least.

use futures_util::future::{join, join_all};
use tier0_units::{Lba, SectorCount};
use tier0_world::{Buf, BufMut, IoError, PlantedBug, planted};

use crate::io::scratch::Scratch;
use crate::io::stripe::new_parity;
use crate::io::{Members, RaidIo};
use crate::layout::{Column, ColumnExtent, ColumnMask, Layout, Piece, Role, WritePlan};
use crate::set::SetIndex;

impl RaidIo {
    /// Writes `buf` into a set's data; `durable` makes it stable on every drive before it ends.
    ///
    /// # Errors
    /// [`IoError::RedundancyLost`] when more drives are lost than the level makes up for; the range then holds old or
    /// new content, sector by sector.
    pub async fn write(&self, set: SetIndex, first: Lba, buf: Buf, durable: bool) -> Result<(), IoError> {
        let layout = self.sets().layout(set);
        let mut pieces = layout.pieces(first, SectorCount(u64::from(buf.sectors())));
        let piece = pieces.next().expect("a write has sectors");
        if piece.sectors.0 == u64::from(buf.sectors()) {
            return self.write_piece(set, piece, buf, durable).await;
        }
        let pieces = std::iter::once(piece).chain(pieces).map(|piece| {
            let part = buf.slice((piece.lba - first).0 as u32, piece.sectors.0 as u32);
            self.write_piece(set, piece, part, durable)
        });
        join_all(pieces).await.into_iter().collect()
    }

    async fn write_piece(&self, set: SetIndex, piece: Piece, buf: Buf, durable: bool) -> Result<(), IoError> {
        let layout = self.sets().layout(set);
        if layout.parities() > 0 {
            return Box::pin(self.write_parity(set, piece, buf, durable)).await;
        }
        let _guard = match layout.copies_per_unit() {
            1 => None,
            _ => Some(self.0.locks.lock(set, piece.lba.0, piece.lba.0 + piece.sectors.0).await),
        };
        let mut extents = layout.extents(&piece);
        let first = extents.next().expect("a piece has extents");
        if first.sectors == piece.sectors {
            let columns = layout.copies(piece.row, first.unit);
            return self
                .write_copies(set, columns, layout.column_lba(piece.row, first.offset), buf, durable)
                .await;
        }
        let parts = layout.extents(&piece).map(|extent| {
            let at = layout.position_in(&piece, extent.unit, extent.offset);
            let part = buf.slice(at.0 as u32, extent.sectors.0 as u32);
            let columns = layout.copies(piece.row, extent.unit);
            self.write_copies(set, columns, layout.column_lba(piece.row, extent.offset), part, durable)
        });
        join_all(parts).await.into_iter().collect()
    }

    /// Writes all copies that are left; one of them must hold it, and the others but for those that are lost by it.
    async fn write_copies(
        &self,
        set: SetIndex,
        columns: ColumnMask,
        lba: Lba,
        buf: Buf,
        durable: bool,
    ) -> Result<(), IoError> {
        let left = columns - self.lost_columns(set, self.sets().layout(set).column_row(lba));
        let mut each = left.iter();
        match (each.next(), each.next(), each.next()) {
            (None, ..) => Err(IoError::RedundancyLost),
            (Some(only), None, _) => self.write_column(set, only, lba, buf, durable).await,
            (Some(one), Some(other), None) => {
                let first = self.write_column(set, one, lba, buf.clone(), durable);
                let second = self.write_column(set, other, lba, buf, durable);
                let (first, second) = join(first, second).await;
                if first.is_ok() && second.is_ok() {
                    return Ok(());
                }
                Members::written([first, second])
            }
            _ => {
                let writes =
                    left.iter().map(|column| self.write_column(set, column, lba, buf.clone(), durable));
                Members::written(join_all(writes).await)
            }
        }
    }

    async fn write_parity(
        &self,
        set: SetIndex,
        piece: Piece,
        buf: Buf,
        durable: bool,
    ) -> Result<(), IoError> {
        let layout = self.sets().layout(set);
        let _guard = self.lock_group(set, &piece).await;
        loop {
            let lost = self.lost_columns(set, piece.row);
            let plan = layout.plan_write(&piece, lost).map_err(|_| IoError::RedundancyLost)?;
            match Scratch::read(self, set, piece.row, plan.reads()).await {
                Ok(scratch) => return self.write_planned(set, &piece, &plan, &scratch, &buf, durable).await,
                // It is lost or has moved, and the next plan knows.
                Err((_, IoError::Gone)) => {}
                // A plan without the column leaves something stale on it, so its drive must never be believed again.
                Err((column, error)) => {
                    let (member, _) = self.sets().place_of_row(set, column, piece.row);
                    self.members().fail(member, error, true).await?;
                }
            }
        }
    }

    async fn write_planned(
        &self,
        set: SetIndex,
        piece: &Piece,
        plan: &WritePlan,
        scratch: &Scratch,
        buf: &Buf,
        durable: bool,
    ) -> Result<(), IoError> {
        let parity = parity_buffers(self.sets().layout(set), piece, plan, scratch, buf);
        let source = |extent: &ColumnExtent| match self.sets().layout(set).role(piece.row, extent.column) {
            Role::Data(unit) | Role::Mirror(unit, _) => {
                let at = self.sets().layout(set).position_in(piece, unit, extent.offset);
                buf.slice(at.0 as u32, extent.sectors.0 as u32)
            }
            Role::P(_) | Role::Q(_) => {
                let own = parity.iter().find(|(parity, _)| parity == extent);
                own.expect("every parity that is written was computed").1.clone()
            }
        };
        let write_one = |extent: ColumnExtent| {
            let part = source(&extent);
            let lba = self.sets().layout(set).column_lba(piece.row, extent.offset);
            async move { (extent.column, self.write_column(set, extent.column, lba, part, durable).await) }
        };
        let results = join_all(plan.writes().map(write_one)).await;
        let failed: ColumnMask =
            results.iter().filter(|(_, result)| result.is_err()).map(|(c, _)| *c).collect();
        RaidIo::check_failed(&results)?;
        let lost = self.lost_columns(set, piece.row) | failed;
        if failed.is_empty() || self.sets().layout(set).survives(lost) {
            return Ok(());
        }
        Err(IoError::RedundancyLost)
    }

    /// The error of a column that has failed and whose drive is not lost, if there is one: a write that goes on without
    /// it leaves something stale behind that is recorded nowhere.
    pub(super) fn check_failed(results: &[(Column, Result<(), IoError>)]) -> Result<(), IoError> {
        let is_no_loss = |result: &&Result<(), IoError>| !matches!(result, Ok(()) | Err(IoError::Gone));
        let failed = results.iter().map(|(_, result)| result).find(is_no_loss);
        failed.copied().unwrap_or(Ok(()))
    }

    pub(super) async fn write_column(
        &self,
        set: SetIndex,
        column: Column,
        lba: Lba,
        buf: Buf,
        durable: bool,
    ) -> Result<(), IoError> {
        let row = self.sets().layout(set).column_row(lba);
        let (member, start) = match planted(PlantedBug::WritesGoToNewPlace) {
            true => self.sets().place(set, column),
            false => self.sets().place_of_row(set, column, row),
        };
        self.members().write(member, start + SectorCount(lba.0), buf, durable).await
    }
}

/// The new parity, one buffer for each extent of parity that the plan writes.
fn parity_buffers(
    layout: &Layout,
    piece: &Piece,
    plan: &WritePlan,
    scratch: &Scratch,
    buf: &Buf,
) -> Vec<(ColumnExtent, Buf)> {
    let parities = layout.parity_columns(piece.row, piece.group);
    let is_parity = |extent: &ColumnExtent| parities.mask().contains(extent.column);
    let fresh = |extent: ColumnExtent| (extent, BufMut::new(extent.sectors.0 as u32, buf.width()));
    let mut buffers: Vec<(ColumnExtent, BufMut)> = plan.writes().filter(is_parity).map(fresh).collect();
    for band in plan.bands() {
        let (mut p, mut q) = (None, None);
        for (extent, buffer) in &mut buffers {
            let inside = extent.offset <= band.offset && band.offset < extent.offset + extent.sectors;
            if !inside || !band.writes.contains(extent.column) {
                continue;
            }
            let width = buf.width().bytes();
            let first = (band.offset - extent.offset).0 as usize * width;
            let bytes = &mut buffer.as_mut_slice()[first..first + band.sectors.0 as usize * width];
            if parities.p == Some(extent.column) { p = Some(bytes) } else { q = Some(bytes) }
        }
        new_parity(layout, piece, band, scratch, buf, p, q);
    }
    buffers.into_iter().map(|(extent, buffer)| (extent, buffer.freeze())).collect()
}
