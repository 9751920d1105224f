//! All entries of all rings, understood.

use std::collections::BTreeSet;

use tier0_integrity::{Intent, IntentPage};
use tier0_units::{ExtentId, PAGE_SECTORS};
use tier0_world::{Buf, BufMut};

use super::{RecoverError, RingEntries};
use crate::head::Head;
use crate::moved;

/// A data record of an extent of this shard.
pub(super) struct DataRecord<'a> {
    pub(super) ring: usize,
    pub(super) position: u64,
    pub(super) head: Head,
    pages: &'a [Buf],
}

/// An intent of an extent of this shard, and where it was found.
pub(super) struct FoundIntent {
    pub(super) ring: usize,
    pub(super) position: u64,
    pub(super) intent: Intent,
}

/// What the rings have for this shard.
pub(super) struct Decoded<'a> {
    pub(super) logs: &'a [RingEntries],
    /// In the order of rings and positions.
    pub(super) records: Vec<DataRecord<'a>>,
    /// In the order of rings and positions.
    pub(super) intents: Vec<FoundIntent>,
    /// The highest version in any ring, of whatever shard.
    pub(super) version_max: u64,
    /// Extents of other shards of which the own ring has something that is not void.
    pub(super) foreign: BTreeSet<ExtentId>,
}

impl<'a> Decoded<'a> {
    pub(super) fn new(
        logs: &'a [RingEntries],
        owns: impl Fn(ExtentId) -> bool,
    ) -> Result<Decoded<'a>, RecoverError> {
        let mut decoded = Decoded {
            logs,
            records: Vec::new(),
            intents: Vec::new(),
            version_max: 0,
            foreign: BTreeSet::new(),
        };
        for (ring, log) in logs.iter().enumerate() {
            for entry in &log.entries {
                let position = entry.position.0;
                if Intent::is_intent(&entry.head) {
                    let intent = Intent::decode(&entry.head, intent_buffers(&entry.head, &entry.pages))
                        .map_err(|source| RecoverError::Intent { ring, position, source })?;
                    if owns(intent.extent) {
                        decoded.intents.push(FoundIntent { ring, position, intent });
                    } else if log.own {
                        decoded.foreign.insert(intent.extent);
                    }
                    continue;
                }
                if moved::is_moved(&entry.head) {
                    let extents = moved::decode(&entry.head).map_err(|source| RecoverError::Head {
                        ring,
                        position,
                        source,
                    })?;
                    decoded.void(ring, &extents);
                    continue;
                }
                let head = Head::decode(&entry.head, entry.pages.len())
                    .map_err(|source| RecoverError::Head { ring, position, source })?;
                decoded.version_max = decoded.version_max.max(head.version);
                if owns(head.extent) {
                    decoded.records.push(DataRecord { ring, position, head, pages: &entry.pages });
                } else if log.own {
                    decoded.foreign.insert(head.extent);
                }
            }
        }
        Ok(decoded)
    }

    /// Another ring has taken over what this one has of some extents so far.
    fn void(&mut self, ring: usize, extents: &BTreeSet<ExtentId>) {
        self.records.retain(|record| record.ring != ring || !extents.contains(&record.head.extent));
        self.intents.retain(|found| found.ring != ring || !extents.contains(&found.intent.extent));
        if self.logs[ring].own {
            self.foreign.retain(|extent| !extents.contains(extent));
        }
    }

    /// The pages that an intent has from the log; none if some were released, so that the intent is no longer needed.
    pub(super) fn data_of(&self, found: &FoundIntent) -> Result<Option<Vec<Buf>>, RecoverError> {
        let entries = &self.logs[found.ring].entries;
        let missing = RecoverError::IntentData { ring: found.ring, position: found.position };
        let first = entries.first().map_or(found.position, |entry| entry.position.0);
        let mut pages = Vec::with_capacity(found.intent.pages.len());
        for (_, source) in &found.intent.pages {
            let IntentPage::Log(place) = source else { continue };
            let Some(index) = place.position.checked_sub(first) else { return Ok(None) };
            let entry = entries.get(index as usize).filter(|entry| entry.position.0 == place.position);
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

    /// Some of its data pages in one buffer.
    pub(super) fn data_pages(&self, pages: impl Iterator<Item = u32>) -> Option<Buf> {
        let pages: Vec<Buf> = pages.map(|page| self.pages[page as usize].clone()).collect();
        (!pages.is_empty()).then(|| join(&pages))
    }

    /// Its pages: number in the extent, and number among its data pages unless it is zeros.
    pub(super) fn pages(&self) -> impl Iterator<Item = (u32, Option<u32>)> + '_ {
        let mut index = 0;
        let numbered = self
            .head
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
    let Some(first) = pages.first() else {
        return BufMut::new(0, tier0_world::PayloadWidth::NONE).freeze();
    };
    let sectors: u32 = pages.iter().map(Buf::sectors).sum();
    debug_assert_eq!(u64::from(sectors) % PAGE_SECTORS, 0, "records have whole pages");
    let mut all = BufMut::new(sectors, first.width());
    let mut rest = all.as_mut_slice();
    for page in pages {
        let (front, back) = rest.split_at_mut(page.as_slice().len());
        front.copy_from_slice(page.as_slice());
        rest = back;
    }
    all.freeze()
}

/// The ring gives back single pages; an intent's parity pieces may have several.
fn intent_buffers(head: &[u8], pages: &[Buf]) -> Vec<Buf> {
    let Some(pieces) = Intent::buffer_sectors(head) else { return pages.to_vec() };
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
