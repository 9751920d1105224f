//! A page of the map: whose 252 neighbouring slots are.
//!
//! Every page has a place on either side of the checkpoint area. The root of a checkpoint names the side that counts and
//! the page's checksum, so that no page is believed that the root does not mean, however valid it is in itself. A page
//! whose slots are all free is stored nowhere. Integers are little-endian; `docs/format.md` has every byte.

use tier0_units::{ExtentId, SlotRef};
use uuid::Uuid;

use crate::codec::{Reader, Writer, crc64};
use crate::state::BitSet;

/// Bytes of a page on a drive.
pub(crate) const PAGE_BYTES: usize = 4096;
/// Checksum, pool, generation, number, zeros.
const FRONT_BYTES: usize = 64;
/// Allocation, volume, extent.
const ENTRY_BYTES: usize = 16;
/// Slots of a page.
pub(crate) const PAGE_SLOTS: u64 = ((PAGE_BYTES - FRONT_BYTES) / ENTRY_BYTES) as u64;
/// The checksum of a page that is not stored.
pub(crate) const EMPTY: u64 = 0;
/// Bytes of a checksum in the table.
const SUM_BYTES: u64 = 8;
const COUNT_BYTES: u64 = 4;

/// Pages of so many slots.
pub(crate) fn page_count(slots: u64) -> u64 {
    slots.div_ceil(PAGE_SLOTS)
}

/// Bytes of the table of so many pages in a checkpoint's body.
pub(crate) fn table_bytes(pages: u64) -> u64 {
    COUNT_BYTES + pages * SUM_BYTES + pages.div_ceil(64) * 8
}

/// Which pages there are, as a root has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PageTable {
    /// By page: its checksum, [`EMPTY`] where no slot of it has an extent.
    pub(crate) sums: Vec<u64>,
    /// The pages that lie on side 1; the others lie on side 0.
    pub(crate) sides: BitSet,
}

impl PageTable {
    /// So many empty pages, on this side.
    pub(crate) fn empty(pages: u64, side: u64) -> PageTable {
        let mut table = PageTable { sums: Vec::new(), sides: BitSet::new(0) };
        table.grow(pages);
        if side == 1 {
            (0..pages).for_each(|page| _ = table.sides.insert(page));
        }
        table
    }

    /// How many pages there are.
    pub(crate) fn count(&self) -> u64 {
        self.sums.len() as u64
    }

    /// The side that a page lies on.
    pub(crate) fn side(&self, page: u64) -> u64 {
        u64::from(self.sides.contains(page))
    }

    /// Appends empty pages until there are so many.
    pub(crate) fn grow(&mut self, pages: u64) {
        self.sums.resize(pages as usize, EMPTY);
        self.sides.grow(pages);
    }

    /// A page lies on the other side from now on.
    pub(crate) fn turn(&mut self, page: u64, sum: u64) {
        self.sums[page as usize] = sum;
        if !self.sides.remove(page) {
            self.sides.insert(page);
        }
    }

    pub(crate) fn encode(&self, writer: &mut Writer) {
        writer.count(self.sums.len());
        self.sums.iter().for_each(|sum| writer.u64(*sum));
        self.sides.words().iter().for_each(|word| writer.u64(*word));
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Option<PageTable> {
        let sums = reader.many(SUM_BYTES as usize, Reader::u64)?;
        let pages = sums.len() as u64;
        let bytes = reader.bytes(pages.div_ceil(64) as usize * 8)?;
        let words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        Some(PageTable { sums, sides: BitSet::from_words(pages, words)? })
    }
}

/// A page of a pool with so many slots, as checkpoint `generation` writes it; none if no slot of it has an extent. `tenant`
/// says of a slot its allocation number and its extent.
pub(crate) fn encode_page(
    pool: Uuid,
    slots: u64,
    page: u64,
    generation: u64,
    tenant: impl Fn(u64) -> Option<(u64, ExtentId)>,
) -> Option<Vec<u8>> {
    let slots = page * PAGE_SLOTS..((page + 1) * PAGE_SLOTS).min(slots);
    let tenants: Vec<Option<(u64, ExtentId)>> = slots.map(tenant).collect();
    if tenants.iter().all(Option::is_none) {
        return None;
    }
    let mut writer = Writer(Vec::with_capacity(PAGE_BYTES));
    writer.u64(0);
    writer.u64(pool_bits(pool));
    writer.u64(generation);
    writer.u32(page as u32);
    writer.0.resize(FRONT_BYTES, 0);
    for tenant in tenants {
        let (allocation, extent) = tenant.unwrap_or((0, ExtentId { volume: 0, index: 0 }));
        writer.u64(allocation);
        writer.u32(extent.volume);
        writer.u32(extent.index);
    }
    writer.0.resize(PAGE_BYTES, 0);
    let sum = checksum(&writer.0);
    writer.0[..8].copy_from_slice(&sum.to_le_bytes());
    Some(writer.0)
}

/// The checksum that a page names.
pub(crate) fn sum_of(page: &[u8]) -> u64 {
    page.first_chunk::<8>().map_or(EMPTY, |bytes| u64::from_le_bytes(*bytes))
}

/// Whether these bytes are the page that has this checksum.
pub(crate) fn is_page(bytes: &[u8], sum: u64) -> bool {
    bytes.len() == PAGE_BYTES && sum_of(bytes) == sum && checksum(bytes) == sum
}

/// The slots of a page that have extents, with those; none if the page is damaged, another one or another pool's.
pub(crate) fn decode_page(bytes: &[u8], pool: Uuid, page: u64) -> Option<Vec<(ExtentId, SlotRef)>> {
    if bytes.len() != PAGE_BYTES || !is_page(bytes, sum_of(bytes)) {
        return None;
    }
    let mut reader = Reader(&bytes[8..]);
    let (found_pool, _generation, number) = (reader.u64()?, reader.u64()?, reader.u32()?);
    if found_pool != pool_bits(pool) || u64::from(number) != page {
        return None;
    }
    let entry = |(place, bytes): (u64, &[u8; ENTRY_BYTES])| {
        let mut reader = Reader(bytes);
        let allocation = reader.u64()?;
        let extent = ExtentId { volume: reader.u32()?, index: reader.u32()? };
        (allocation != 0).then_some((extent, SlotRef { slot: page * PAGE_SLOTS + place, allocation }))
    };
    Some((0..).zip(bytes[FRONT_BYTES..].as_chunks::<ENTRY_BYTES>().0).filter_map(entry).collect())
}

/// 0 stands for a page that is not stored, so a checksum that happens to be 0 is 1.
fn checksum(page: &[u8]) -> u64 {
    crc64(&[&page[8..]]).max(1)
}

fn pool_bits(pool: Uuid) -> u64 {
    pool.as_u64_pair().0.swap_bytes()
}
