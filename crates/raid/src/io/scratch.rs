//! What was read of a row before it can be answered or written: buffers by column.

use futures_util::future::join_all;
use tier0_units::SectorCount;
use tier0_world::{BufMut, IoError};

use crate::io::RaidIo;
use crate::layout::{Column, ColumnExtent, ColumnExtents, Row};
use crate::set::SetIndex;

pub(crate) struct Scratch {
    width: usize,
    parts: Vec<(ColumnExtent, BufMut)>,
}

impl Scratch {
    /// Reads `extents` of a row; on failure says which column it was.
    pub(crate) async fn read(
        io: &RaidIo,
        set: SetIndex,
        row: Row,
        extents: ColumnExtents,
    ) -> Result<Scratch, (Column, IoError)> {
        let read_one = |extent: ColumnExtent| async move {
            let width = io.members().width();
            let buf = BufMut::new(extent.sectors.0 as u32, width);
            let lba = io.sets().layout(set).column_lba(row, extent.offset);
            let (result, buf) = io.read_column(set, extent.column, lba, buf).await;
            result.map(|()| (extent, buf)).map_err(|error| (extent.column, error))
        };
        let parts = join_all(extents.map(read_one)).await;
        let parts = parts.into_iter().collect::<Result<_, _>>()?;
        Ok(Scratch { width: io.members().width().bytes(), parts })
    }

    /// The bytes of `sectors` sectors from `offset` on, which were read.
    pub(crate) fn bytes(&self, column: Column, offset: SectorCount, sectors: SectorCount) -> &[u8] {
        let holds = |(extent, _): &&(ColumnExtent, BufMut)| {
            extent.column == column
                && extent.offset <= offset
                && offset + sectors <= extent.offset + extent.sectors
        };
        let (extent, buf) = self.parts.iter().find(holds).expect("the plan has read it");
        let first = (offset - extent.offset).0 as usize * self.width;
        &buf.as_slice()[first..first + sectors.0 as usize * self.width]
    }
}
