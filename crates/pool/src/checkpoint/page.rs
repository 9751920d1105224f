//! A page of the map: whose 252 neighbouring slots are; and beside it, where several extents have some of them, a block
//! that says which.
//!
//! Every block has a place on either side of the checkpoint area. The root of a checkpoint names the side that counts and
//! the block's checksum, so that no block is believed that the root does not mean, however valid it is in itself. A page
//! whose slots are all free is stored nowhere. Integers are little-endian; `docs/format.md` has every byte.

use tier0_units::{ExtentId, SlotRef};
use uuid::Uuid;

use crate::codec::{Reader, Writer, crc64};
use crate::state::{BitSet, Tenant};

/// Bytes of a block on a drive.
pub(crate) const PAGE_BYTES: usize = 4096;
/// Checksum, pool, generation, number, zeros.
const FRONT_BYTES: usize = 64;
/// Allocation, volume, extent; or a bit for each branch of a family.
const ENTRY_BYTES: usize = 16;
/// Slots of a page.
pub(crate) const PAGE_SLOTS: u64 = ((PAGE_BYTES - FRONT_BYTES) / ENTRY_BYTES) as u64;
/// The checksum of a block that is not stored.
pub(crate) const EMPTY: u64 = 0;
/// In the number of a block: it says which branches have the slots.
const OF_BRANCHES: u32 = 1 << 31;
/// Bytes of a checksum in the table.
const SUM_BYTES: u64 = 8;
const COUNT_BYTES: u64 = 4;
/// Bytes of the places of a page's blocks and of its second checksum, where there are families.
pub(crate) const PLACE_BYTES: u64 = 4 + 4 + SUM_BYTES;
/// The place of a block that has none.
const NO_PLACE: u32 = u32::MAX;

/// Pages of so many slots.
pub(crate) fn page_count(slots: u64) -> u64 {
    slots.div_ceil(PAGE_SLOTS)
}

/// Bytes of the table of so many pages in the body of a checkpoint without families.
pub(crate) fn table_bytes(pages: u64) -> u64 {
    COUNT_BYTES + pages * SUM_BYTES + pages.div_ceil(64) * 8
}

/// The most places that the blocks of so many pages take, and the bytes of their table.
pub(crate) fn most_places(pages: u64, has_families: bool) -> (u64, u64) {
    match has_families {
        true => (2 * pages, table_bytes(pages) + pages * PLACE_BYTES),
        false => (pages, table_bytes(pages)),
    }
}

/// Which pages there are, as a root has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PageTable {
    /// By page: its checksum, [`EMPTY`] where no slot of it has an extent.
    sums: Vec<u64>,
    /// The pages that lie on side 1; the others lie on side 0.
    sides: BitSet,
    /// Where there are families; elsewhere every page has the place of its number, and no block beside it.
    families: Option<Places>,
}

/// Where blocks lie that were not all there from the beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Places {
    /// By page: the place of its own block, the place of the block of branches, and the checksum of that one.
    pages: Vec<(u32, u32, u64)>,
    /// The first place that none has.
    end: u32,
}

/// A block that is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stored {
    pub(crate) side: u64,
    /// Places count from the end of the checkpoint slot.
    pub(crate) place: u64,
    pub(crate) sum: u64,
}

/// A page as a checkpoint writes it: the block itself, and that of branches, where there are any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PageBytes {
    pub(crate) tenants: Option<Vec<u8>>,
    pub(crate) branches: Option<Vec<u8>>,
}

impl PageTable {
    /// So many empty pages, on this side.
    pub(crate) fn empty(pages: u64, side: u64) -> PageTable {
        let mut table = PageTable { sums: Vec::new(), sides: BitSet::new(0), families: None };
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

    /// The blocks of a page that are stored: its own, and that of branches.
    pub(crate) fn stored(&self, page: u64) -> (Option<Stored>, Option<Stored>) {
        let (side, at) = (u64::from(self.sides.contains(page)), page as usize);
        let (place, branches) = match &self.families {
            None => (page, None),
            Some(places) => {
                let (own, place, sum) = places.pages[at];
                let branches = (sum != EMPTY).then_some(Stored { side, place: u64::from(place), sum });
                (u64::from(own), branches)
            }
        };
        ((self.sums[at] != EMPTY).then_some(Stored { side, place, sum: self.sums[at] }), branches)
    }

    /// Appends empty pages until there are so many.
    pub(crate) fn grow(&mut self, pages: u64) {
        self.sums.resize(pages as usize, EMPTY);
        self.sides.grow(pages);
        if let Some(places) = &mut self.families {
            while (places.pages.len() as u64) < pages {
                places.pages.push((places.end, NO_PLACE, EMPTY));
                places.end += 1;
            }
        }
    }

    /// Pages can have a block of branches from now on.
    pub(crate) fn begin_families(&mut self) {
        let pages = self.sums.len() as u32;
        let own = || (0..pages).map(|page| (page, NO_PLACE, EMPTY)).collect();
        self.families.get_or_insert_with(|| Places { pages: own(), end: pages });
    }

    /// A page has these bytes from now on, on the other side if there are any: where they are to be written.
    pub(crate) fn turn<'a>(&mut self, page: u64, bytes: &'a PageBytes) -> Vec<(Stored, &'a [u8])> {
        if bytes.tenants.is_some() && !self.sides.remove(page) {
            self.sides.insert(page);
        }
        self.set(page, bytes)
    }

    /// A page has these bytes from now on, on the side on which it lies: where they are to be written.
    pub(crate) fn set<'a>(&mut self, page: u64, bytes: &'a PageBytes) -> Vec<(Stored, &'a [u8])> {
        let sum = |bytes: &Option<Vec<u8>>| bytes.as_deref().map_or(EMPTY, sum_of);
        self.sums[page as usize] = sum(&bytes.tenants);
        if let Some(places) = &mut self.families {
            let (_, place, known) = &mut places.pages[page as usize];
            *known = sum(&bytes.branches);
            if *known != EMPTY && *place == NO_PLACE {
                *place = places.end;
                places.end += 1;
            }
        }
        let (own, branches) = self.stored(page);
        let blocks = [(own, &bytes.tenants), (branches, &bytes.branches)];
        blocks.into_iter().filter_map(|(stored, bytes)| Some((stored?, bytes.as_deref()?))).collect()
    }

    pub(crate) fn encode(&self, writer: &mut Writer) {
        writer.count(self.sums.len());
        self.sums.iter().for_each(|sum| writer.u64(*sum));
        self.sides.words().iter().for_each(|word| writer.u64(*word));
        for (own, branches, sum) in self.families.iter().flat_map(|places| &places.pages) {
            writer.u32(*own);
            writer.u32(*branches);
            writer.u64(*sum);
        }
    }

    pub(crate) fn decode(reader: &mut Reader<'_>, has_families: bool) -> Option<PageTable> {
        let sums = reader.many(SUM_BYTES as usize, Reader::u64)?;
        let pages = sums.len() as u64;
        let bytes = reader.bytes(pages.div_ceil(64) as usize * 8)?;
        let words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let sides = BitSet::from_words(pages, words)?;
        let families = if has_families { Some(decode_places(reader, sums.len())?) } else { None };
        Some(PageTable { sums, sides, families })
    }
}

/// Places of which no two are the same, and none is behind those that as many pages can take.
fn decode_places(reader: &mut Reader<'_>, pages: usize) -> Option<Places> {
    let read = |reader: &mut Reader<'_>| Some((reader.u32()?, reader.u32()?, reader.u64()?));
    let pages: Vec<(u32, u32, u64)> = (0..pages).map(|_| read(reader)).collect::<Option<_>>()?;
    let mut taken = BitSet::new(2 * pages.len() as u64);
    for (own, branches, sum) in &pages {
        let has_place = *branches != NO_PLACE;
        let places = std::iter::once(*own).chain(has_place.then_some(*branches));
        let is_sound = places.map(u64::from).all(|place| place < taken.bound() && taken.insert(place));
        if !is_sound || (*sum != EMPTY && !has_place) {
            return None;
        }
    }
    let last = (0..taken.bound()).rev().find(|place| taken.contains(*place));
    let end = last.map_or(0, |last| last as u32 + 1);
    Some(Places { pages, end })
}

/// A page of a pool with so many slots, as checkpoint `generation` writes it; nothing if no slot of it has an extent. `tenant`
/// says who has a slot.
pub(crate) fn encode_page(
    pool: Uuid,
    slots: u64,
    page: u64,
    generation: u64,
    tenant: impl Fn(u64) -> Option<Tenant>,
) -> PageBytes {
    let slots = page * PAGE_SLOTS..((page + 1) * PAGE_SLOTS).min(slots);
    let tenants: Vec<Option<Tenant>> = slots.map(tenant).collect();
    if tenants.iter().all(Option::is_none) {
        return PageBytes::default();
    }
    let block = |number: u32, entry: &dyn Fn(&mut Writer, Option<&Tenant>)| {
        let mut writer = Writer(Vec::with_capacity(PAGE_BYTES));
        writer.u64(0);
        writer.u64(pool_bits(pool));
        writer.u64(generation);
        writer.u32(number);
        writer.0.resize(FRONT_BYTES, 0);
        tenants.iter().for_each(|tenant| entry(&mut writer, tenant.as_ref()));
        writer.0.resize(PAGE_BYTES, 0);
        let sum = checksum(&writer.0);
        writer.0[..8].copy_from_slice(&sum.to_le_bytes());
        writer.0
    };
    let own = block(page as u32, &|writer, tenant| {
        let free = Tenant { allocation: 0, extent: ExtentId { volume: 0, index: 0 }, branches: 0 };
        let tenant = tenant.unwrap_or(&free);
        writer.u64(tenant.allocation);
        writer.u32(tenant.extent.volume);
        writer.u32(tenant.extent.index);
    });
    let is_shared = tenants.iter().flatten().any(|tenant| tenant.branches != 0);
    let branches = is_shared.then(|| {
        block(page as u32 | OF_BRANCHES, &|writer, tenant| {
            writer.0.extend_from_slice(&tenant.map_or(0, |tenant| tenant.branches).to_le_bytes());
        })
    });
    PageBytes { tenants: Some(own), branches }
}

/// The checksum that a block names.
fn sum_of(block: &[u8]) -> u64 {
    block.first_chunk::<8>().map_or(EMPTY, |bytes| u64::from_le_bytes(*bytes))
}

/// Whether these bytes are the block that has this checksum.
pub(crate) fn is_page(bytes: &[u8], sum: u64) -> bool {
    bytes.len() == PAGE_BYTES && sum_of(bytes) == sum && checksum(bytes) == sum
}

/// The slots of a page that have extents, with those; none if a block is damaged, another one or another pool's.
pub(crate) fn decode_page(
    tenants: &[u8],
    branches: Option<&[u8]>,
    pool: Uuid,
    page: u64,
) -> Option<Vec<(SlotRef, Tenant)>> {
    let entries = entries_of(tenants, pool, page as u32)?;
    let all_branches = match branches {
        Some(bytes) => Some(entries_of(bytes, pool, page as u32 | OF_BRANCHES)?),
        None => None,
    };
    let entry = |(place, bytes): (usize, &[u8; ENTRY_BYTES])| {
        let mut reader = Reader(bytes);
        let allocation = reader.u64()?;
        let extent = ExtentId { volume: reader.u32()?, index: reader.u32()? };
        let branches = all_branches.map_or(0, |entries| u128::from_le_bytes(entries[place]));
        let slot = SlotRef { slot: page * PAGE_SLOTS + place as u64, allocation };
        (allocation != 0).then_some((slot, Tenant { allocation, extent, branches }))
    };
    Some(entries.iter().enumerate().filter_map(entry).collect())
}

/// The entries of a block with this number.
fn entries_of(bytes: &[u8], pool: Uuid, number: u32) -> Option<&[[u8; ENTRY_BYTES]]> {
    if bytes.len() != PAGE_BYTES || !is_page(bytes, sum_of(bytes)) {
        return None;
    }
    let mut reader = Reader(&bytes[8..]);
    let (found_pool, _generation, found) = (reader.u64()?, reader.u64()?, reader.u32()?);
    (found_pool == pool_bits(pool) && found == number).then(|| bytes[FRONT_BYTES..].as_chunks().0)
}

/// 0 stands for a block that is not stored, so a checksum that happens to be 0 is 1.
fn checksum(block: &[u8]) -> u64 {
    crc64(&[&block[8..]]).max(1)
}

fn pool_bits(pool: Uuid) -> u64 {
    pool.as_u64_pair().0.swap_bytes()
}
