//! Reads: the newest content, whatever mix of memory and slot it is.

use futures_util::future::join_all;
use tier0_units::{ExtentId, PAGE_SECTORS, SlotRef};
use tier0_world::{Buf, BufMut, IoError};

use super::{Inner, WriteBack};

/// A dirty page as a read finds it: its number, and its data unless it is zeros.
type Overlay = Vec<(u32, Option<Buf>)>;

impl WriteBack {
    /// Reads as many sectors of an extent as `buf` holds; it must not reach beyond the extent. What is not mapped reads
    /// as zeros. The buffer comes back in any case; after an error its content is arbitrary.
    ///
    /// # Errors
    /// What the slot cannot be read for, or as [`WriteBack::refuse`] says.
    pub async fn read(
        &self,
        extent: ExtentId,
        first_sector: u64,
        buf: BufMut,
    ) -> (Result<(), IoError>, BufMut) {
        let (sectors, width) = (buf.sectors(), buf.width());
        if self.0.any_refused()
            && let Err(error) =
                Box::pin(self.0.until_readable(extent, first_sector, u64::from(sectors))).await
        {
            return (Err(error), buf);
        }
        let read = self.0.read_at(extent, self.0.slot(extent), first_sector, buf);
        // The buffer of a read that is refused stays with the drive.
        let refused = |error| (Err(error), BufMut::zeroed(sectors, width));
        self.0.unless_refused(read).await.unwrap_or_else(refused)
    }
}

impl Inner {
    /// As [`WriteBack::read`], of an extent whose slot was looked up just now.
    pub(crate) async fn read_at(
        &self,
        extent: ExtentId,
        slot: Option<SlotRef>,
        first_sector: u64,
        mut buf: BufMut,
    ) -> (Result<(), IoError>, BufMut) {
        debug_assert_eq!(slot, self.slot(extent), "the slot was looked up just now");
        let Some(slot) = slot else {
            buf.set_zero();
            return (Ok(()), buf);
        };
        let overlay = self.overlay(extent, first_sector, u64::from(buf.sectors()));
        if overlay.is_empty() {
            let _reading = self.readers.enter(slot.slot);
            return self.slots.read(slot, first_sector, buf).await;
        }
        Box::pin(self.read_mixed(slot, first_sector, buf, overlay)).await
    }

    /// The dirty pages in a range, with their content.
    fn overlay(&self, extent: ExtentId, first_sector: u64, sectors: u64) -> Overlay {
        let state = self.state.borrow();
        if state.pages.is_empty() {
            return Vec::new();
        }
        let end = first_sector + sectors;
        let pages = (first_sector / PAGE_SECTORS) as u32..end.div_ceil(PAGE_SECTORS) as u32;
        let content = |(number, page): (u32, crate::pages::Page)| {
            (number, page.index().map(|index| state.records.get(page.record).page(index)))
        };
        state.pages.range(extent, pages).map(content).collect()
    }

    /// Copies what is dirty, and reads the stretches between.
    async fn read_mixed(
        &self,
        slot: SlotRef,
        first_sector: u64,
        mut buf: BufMut,
        overlay: Overlay,
    ) -> (Result<(), IoError>, BufMut) {
        let end = first_sector + u64::from(buf.sectors());
        let mut parts: Vec<(Option<u64>, BufMut)> = Vec::with_capacity(2 * overlay.len() + 1);
        let mut at = first_sector;
        for (number, content) in &overlay {
            let start = u64::from(*number) * PAGE_SECTORS;
            let (from, to) = (start.max(first_sector), (start + PAGE_SECTORS).min(end));
            if at < from {
                parts.push((Some(at), buf.split_to((from - at) as u32)));
            }
            let mut piece = buf.split_to((to - from) as u32);
            match content {
                Some(page) => {
                    let page = page.slice((from - start) as u32, (to - from) as u32);
                    piece.as_mut_slice().copy_from_slice(page.as_slice());
                }
                None => piece.set_zero(),
            }
            parts.push((None, piece));
            at = to;
        }
        parts.push((Some(at), buf));
        drop(overlay);
        let _reading = self.readers.enter(slot.slot);
        let reads = parts.into_iter().map(|(clean, piece)| async move {
            match clean {
                Some(sector) if piece.sectors() > 0 => self.slots.read(slot, sector, piece).await,
                _ => (Ok(()), piece),
            }
        });
        let mut parts = join_all(reads).await.into_iter();
        let (mut result, mut whole) = parts.next().expect("a read has parts");
        for (other, piece) in parts {
            whole.append(piece);
            result = result.and(other);
        }
        (result, whole)
    }
}
