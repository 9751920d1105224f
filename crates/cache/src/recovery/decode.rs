//! All entries of a ring, understood.

use tier0_integrity::{Intent, IntentPage};
use tier0_journal::Entry;
use tier0_units::{ExtentId, PAGE_SECTORS};
use tier0_world::{Buf, BufMut, PayloadWidth};

use super::{Belongs, RecoverError};
use crate::record_header::RecordHeader;

/// A data record.
pub(super) struct DataRecord<'a> {
    pub(super) position: u64,
    pub(super) header: RecordHeader,
    pages: &'a [Buf],
}

/// An intent, and where it was found.
pub(super) struct FoundIntent {
    pub(super) position: u64,
    pub(super) intent: Intent,
}

/// What the ring has of extents that exist.
pub(super) struct Decoded<'a> {
    entries: &'a [Entry],
    /// In the order of positions.
    pub(super) records: Vec<DataRecord<'a>>,
    /// In the order of positions.
    pub(super) intents: Vec<FoundIntent>,
    /// The highest version in the ring.
    pub(super) version_max: u64,
}

impl<'a> Decoded<'a> {
    pub(super) fn new(
        entries: &'a [Entry],
        belongs: impl Fn(ExtentId) -> Belongs,
    ) -> Result<Decoded<'a>, RecoverError> {
        let mut decoded = Decoded { entries, records: Vec::new(), intents: Vec::new(), version_max: 0 };
        let is_here = |position: u64, extent: ExtentId| match belongs(extent) {
            Belongs::Here => Ok(true),
            Belongs::Nowhere => Ok(false),
            Belongs::Elsewhere => Err(RecoverError::Foreign { position, extent }),
        };
        for entry in entries {
            let position = entry.position.0;
            if Intent::is_intent(&entry.header) {
                let intent = Intent::decode(&entry.header, intent_buffers(&entry.header, &entry.pages))
                    .map_err(|source| RecoverError::Intent { position, source })?;
                // What is left of a volume that has changed its lane: its data was in place before, and intents of it that
                // follow records of other volumes are released with those.
                if matches!(belongs(intent.extent), Belongs::Here) {
                    decoded.intents.push(FoundIntent { position, intent });
                }
                continue;
            }
            let header = RecordHeader::decode(&entry.header, entry.pages.len())
                .map_err(|source| RecoverError::Header { position, source })?;
            decoded.version_max = decoded.version_max.max(header.version);
            if is_here(position, header.extent)? {
                decoded.records.push(DataRecord { position, header, pages: &entry.pages });
            }
        }
        Ok(decoded)
    }

    /// The pages that an intent has from the log; none if some were released, so that the intent is no longer needed.
    pub(super) fn data_of(&self, found: &FoundIntent) -> Result<Option<Vec<Buf>>, RecoverError> {
        let missing = RecoverError::IntentData { position: found.position };
        let first = self.entries.first().map_or(found.position, |entry| entry.position.0);
        let mut pages = Vec::with_capacity(found.intent.pages.len());
        for (_, source) in &found.intent.pages {
            let IntentPage::Log(place) = source else { continue };
            let Some(index) = place.position.checked_sub(first) else { return Ok(None) };
            let entry = self.entries.get(index as usize).filter(|entry| entry.position.0 == place.position);
            let page = entry.and_then(|entry| entry.pages.get(place.page as usize));
            pages.push(page.ok_or(missing)?.clone());
        }
        Ok(Some(pages))
    }
}

impl DataRecord<'_> {
    /// All data of the record in one buffer.
    pub(super) fn data(&self) -> Buf {
        join(self.pages)
    }

    /// Its pages: number in the extent, and number among its data pages unless it is zeros.
    pub(super) fn pages(&self) -> impl Iterator<Item = (u32, Option<u32>)> + '_ {
        let mut index = 0;
        let numbered = self
            .header
            .runs
            .iter()
            .flat_map(|run| (run.first..run.first + run.count).map(|page| (page, run.zero)));
        numbered.map(move |(page, zero)| {
            let place = (!zero).then_some(index);
            index += u32::from(!zero);
            (page, place)
        })
    }
}

/// Copies buffers of whole pages into one.
fn join(pages: &[Buf]) -> Buf {
    let width = pages.first().map_or(PayloadWidth::NONE, Buf::width);
    BufMut::concat(pages.iter(), width).freeze()
}

/// The ring gives back single pages; an intent's parity pieces may have several.
fn intent_buffers(header: &[u8], pages: &[Buf]) -> Vec<Buf> {
    let Some(pieces) = Intent::buffer_sectors(header) else { return pages.to_vec() };
    let mut rest = pages;
    let mut buffers = Vec::with_capacity(pages.len());
    for sectors in pieces {
        let count = (u64::from(sectors) / PAGE_SECTORS) as usize;
        let Some((piece, behind)) = rest.split_at_checked(count) else { return pages.to_vec() };
        buffers.push(join(piece));
        rest = behind;
    }
    if rest.is_empty() { buffers } else { pages.to_vec() }
}
