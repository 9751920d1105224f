//! Reads of slots: any sectors, verified in whole pages.

use futures_util::future::join_all;
use tier0_units::{Lba, PAGE_SECTORS, SlotRef};
use tier0_world::{BufMut, IoError};

use super::SlotIo;
use crate::table::SlotTable;

/// Part of a read: whole pages, or a piece of one page.
struct Part {
    /// Its first sector in the slot.
    first: u64,
    buf: BufMut,
}

impl SlotIo {
    /// Reads as many sectors of a slot as `buf` holds, from sector `first_sector` of the slot on. What comes back is
    /// what was written last, or zeros where nothing is stored. The buffer comes back in any case; after an error its
    /// content is arbitrary.
    ///
    /// # Errors
    /// [`IoError::DataLost`] when a page or the slot's table cannot be made right; [`IoError::RedundancyLost`] when too
    /// many drives are lost.
    ///
    /// # Panics
    /// When the range reaches behind the slot.
    pub async fn read(&self, slot: SlotRef, first_sector: u64, buf: BufMut) -> (Result<(), IoError>, BufMut) {
        let sectors = u64::from(buf.sectors());
        assert!(
            first_sector + sectors <= self.slots().slot_sectors(slot.slot),
            "sectors {first_sector}+{sectors} reach behind the slot"
        );
        if !self.is_checked() {
            return self.read_unchecked(slot, first_sector, buf).await;
        }
        let table = match self.table(slot).await {
            Ok(table) => table,
            Err(error) => return (Err(error), buf),
        };
        let whole = first_sector.is_multiple_of(PAGE_SECTORS) && sectors.is_multiple_of(PAGE_SECTORS);
        if whole {
            return self.read_pages(&table, first_sector, buf).await;
        }
        // Out of line: databases seldom ask for parts of pages.
        Box::pin(self.read_parts(&table, first_sector, buf)).await
    }

    /// Whole pages.
    async fn read_pages(&self, table: &SlotTable, first: u64, buf: BufMut) -> (Result<(), IoError>, BufMut) {
        let home = table.home();
        let (pages, at) = (u64::from(buf.sectors()) / PAGE_SECTORS, home.first_page * PAGE_SECTORS + first);
        let (result, buf) = self.raid().read_verified(home.set, Lba(at), buf, table).await;
        if result.is_ok() {
            let first = (first / PAGE_SECTORS) as u32;
            let stored = (first..first + pages as u32).filter(|page| table.is_stored(*page)).count();
            self.counts().count_verified(stored as u64);
        }
        (result, buf)
    }

    /// A range that begins or ends within a page: those pages are read into a buffer of their own.
    async fn read_parts(&self, table: &SlotTable, first: u64, buf: BufMut) -> (Result<(), IoError>, BufMut) {
        let parts = cut(first, buf).into_iter().map(|part| self.read_part(table, part));
        let mut parts = join_all(parts).await.into_iter();
        let (mut result, mut buf) = parts.next().expect("a read has parts");
        for (other, part) in parts {
            buf.append(part);
            result = result.and(other);
        }
        (result, buf)
    }

    async fn read_part(&self, table: &SlotTable, part: Part) -> (Result<(), IoError>, BufMut) {
        let Part { first, mut buf } = part;
        let inside = first % PAGE_SECTORS;
        if inside == 0 && u64::from(buf.sectors()).is_multiple_of(PAGE_SECTORS) {
            return self.read_pages(table, first, buf).await;
        }
        let page = BufMut::new(PAGE_SECTORS as u32, buf.width());
        let (result, page) = self.read_pages(table, first - inside, page).await;
        let start = inside as usize * buf.width().bytes();
        let bytes = buf.as_slice().len();
        buf.as_mut_slice().copy_from_slice(&page.as_slice()[start..start + bytes]);
        (result, buf)
    }
}

/// Cuts a range into the end of a page, whole pages, and the beginning of a page, as far as it has them.
fn cut(first: u64, mut buf: BufMut) -> Vec<Part> {
    let mut parts = Vec::with_capacity(3);
    let mut at = first;
    let mut take = |at: &mut u64, buf: &mut BufMut, sectors: u64| {
        let sectors = sectors.min(u64::from(buf.sectors()));
        if sectors > 0 {
            parts.push(Part { first: *at, buf: buf.split_to(sectors as u32) });
            *at += sectors;
        }
    };
    let to_boundary = first.next_multiple_of(PAGE_SECTORS) - first;
    take(&mut at, &mut buf, to_boundary);
    let whole = u64::from(buf.sectors()) / PAGE_SECTORS * PAGE_SECTORS;
    take(&mut at, &mut buf, whole);
    take(&mut at, &mut buf, PAGE_SECTORS);
    parts
}

#[cfg(test)]
mod tests {
    use tier0_world::PayloadWidth;

    use super::*;

    #[test]
    fn ranges_are_cut_at_pages() {
        let parts = |first, sectors| -> Vec<(u64, u32)> {
            let buf = BufMut::new(sectors, PayloadWidth::NONE);
            cut(first, buf).iter().map(|part| (part.first, part.buf.sectors())).collect()
        };
        assert_eq!(parts(3, 2), [(3, 2)]);
        assert_eq!(parts(3, 5), [(3, 5)]);
        assert_eq!(parts(3, 25), [(3, 5), (8, 16), (24, 4)]);
        assert_eq!(parts(8, 9), [(8, 8), (16, 1)]);
        assert_eq!(parts(0, 4), [(0, 4)]);
        assert_eq!(parts(7, 2), [(7, 1), (8, 1)]);
    }
}
