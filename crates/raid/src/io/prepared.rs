//! The second half of a write in two: data and parity in place. Also what recovery does with a write whose first half
//! was logged.

use futures_util::future::join_all;
use tier0_units::Lba;
use tier0_world::{Buf, IoError, PlantedBug, planted};

use crate::io::RaidIo;
use crate::io::locks::RowGuard;
use crate::io::new_pages::{NewPages, Rest};
use crate::layout::{Column, ColumnMask, Row, Unit, UnitMask};
use crate::set::SetIndex;

/// One write to one column.
#[derive(Debug)]
pub(crate) struct ColumnWrite {
    pub(crate) column: Column,
    /// Within the column's rows.
    pub(crate) lba: Lba,
    pub(crate) buf: Buf,
}

/// A write that is worked out and not begun; its row is locked. Dropping it writes nothing. Its holder must not wait
/// for a read of the same row: a page that has to be repaired needs the lock.
#[must_use = "nothing is written before write is called"]
pub struct Prepared {
    io: RaidIo,
    set: SetIndex,
    row: Row,
    guard: RowGuard,
    written: UnitMask,
    pub(crate) data: Vec<ColumnWrite>,
    pub(crate) parity: Vec<ColumnWrite>,
}

/// Holds the row's lock after a write, until what pages must be ([`crate::io::Expect`]) is up to date. What was written
/// is not stable before the next flush.
#[must_use = "the row stays locked until this is dropped: bring the checksums up to date first"]
pub struct Written {
    _guard: RowGuard,
}

impl Prepared {
    pub(crate) fn new(io: RaidIo, set: SetIndex, row: Row, guard: RowGuard) -> Prepared {
        Prepared { io, set, row, guard, written: UnitMask::EMPTY, data: Vec::new(), parity: Vec::new() }
    }

    /// Adds the new pages to what is written, on all columns that are left.
    pub(crate) fn add_data(&mut self, new: &NewPages) -> Result<(), IoError> {
        let layout = *self.io.sets().layout(self.set);
        let lost = self.io.lost_columns(self.set, self.row);
        for unit in (0..layout.data_units_per_row() as u8).map(Unit) {
            let left = layout.copies(self.row, unit) - lost;
            for run in new.runs(unit) {
                self.written = self.written.with(unit);
                if left.is_empty() {
                    continue;
                }
                let lba = layout.page_column_lba(self.row, run.start);
                let buf = new.gather(unit, run);
                let writes = left.iter().map(|column| ColumnWrite { column, lba, buf: buf.clone() });
                self.data.extend(writes);
            }
        }
        if self.survives(lost) { Ok(()) } else { Err(IoError::RedundancyLost) }
    }

    /// Whether what is written can be read back without the `lost` columns.
    fn survives(&self, lost: ColumnMask) -> bool {
        let layout = self.io.sets().layout(self.set);
        if layout.parities() > 0 {
            return layout.survives(lost);
        }
        self.written.iter().all(|unit| !layout.copies(self.row, unit).is_subset(lost))
    }

    /// The set it writes to.
    pub fn set(&self) -> SetIndex {
        self.set
    }

    /// The row it writes.
    pub fn row(&self) -> Row {
        self.row
    }

    /// The new parity: column, address within the column's rows, content. None at levels without parity.
    pub fn parity(&self) -> impl Iterator<Item = (Column, Lba, &Buf)> {
        self.parity.iter().map(|write| (write.column, write.lba, &write.buf))
    }

    /// Leaves these columns' parity as it is: for a caller that knows that they hold newer parity than this.
    pub fn leave_out_parity(&mut self, columns: ColumnMask) {
        self.parity.retain(|write| !columns.contains(write.column));
    }

    /// Writes data and parity to all columns at once. After a power cut any part of it may be there.
    ///
    /// # Errors
    /// [`IoError::RedundancyLost`] when columns were lost and the others do not make up for them; what a drive fails with
    /// that is not lost: any part of it may have been written.
    pub async fn write(mut self) -> Result<Written, IoError> {
        if planted(PlantedBug::ForgetParityUpdate) {
            self.parity.clear();
        }
        let writes = std::mem::take(&mut self.data).into_iter().chain(std::mem::take(&mut self.parity));
        let (io, set) = (&self.io, self.set);
        let write_one = |ColumnWrite { column, lba, buf }| async move {
            (column, io.write_column(set, column, lba, buf, false).await)
        };
        let results = join_all(writes.map(write_one)).await;
        RaidIo::check_failed(&results)?;
        let failed: ColumnMask =
            results.iter().filter(|(_, result)| result.is_err()).map(|(column, _)| *column).collect();
        if failed.is_empty() || self.survives(self.io.lost_columns(self.set, self.row) | failed) {
            return Ok(Written { _guard: self.guard });
        }
        Err(IoError::RedundancyLost)
    }
}

impl RaidIo {
    /// Writes a row again whose write was logged and may be torn: its new data and the parity that
    /// [`Prepared::parity`] gave, with the same `rest`. Nothing is read, so it does not matter what the columns hold and
    /// which of them were lost meanwhile: afterwards parity and data agree.
    ///
    /// # Errors
    /// [`IoError::RedundancyLost`] when more drives are lost than the level makes up for.
    pub async fn replay_row(
        &self,
        set: SetIndex,
        row: Row,
        data: &[(u64, Buf)],
        parity: &[(Column, Lba, Buf)],
        rest: Rest,
    ) -> Result<Written, IoError> {
        let guard = self.lock_row(set, row).await;
        let new = NewPages::new(self.sets().layout(set), self.members().width(), data, rest);
        let mut prepared = Prepared::new(self.clone(), set, row, guard);
        prepared.add_data(&new)?;
        let lost = self.lost_columns(set, row);
        let left = parity.iter().filter(|(column, ..)| !lost.contains(*column));
        prepared.parity.extend(left.map(|(column, lba, buf)| ColumnWrite {
            column: *column,
            lba: *lba,
            buf: buf.clone(),
        }));
        prepared.write().await
    }
}
