//! The newest version of each page becomes dirty again.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use tier0_journal::Position;
use tier0_units::{ExtentId, SlotRef};

use super::decode::{DataRecord, Decoded};
use super::replay::FailedReplay;
use super::{RecoverError, RecoveryReport};
use crate::SlotStore;
use crate::head::Run;
use crate::pages::{Page, RecordId};
use crate::write_back::{Change, Inner, Trouble};

/// Which record has the newest content of a page, by its place in [`Decoded::records`], and which of its pages it is.
#[derive(Clone, Copy)]
struct Newest {
    record: usize,
    index: Option<u32>,
}

type NewestPages = BTreeMap<(ExtentId, u32), Newest>;

/// Loads the pages, gives slots to extents that need one, and logs anew what lies in other rings.
pub(super) async fn load<S: SlotStore>(
    cache: &Rc<Inner<S>>,
    decoded: &Decoded<'_>,
    failed: Vec<FailedReplay>,
    report: &mut RecoveryReport,
) -> Result<(), RecoverError> {
    let mut newest = newest_pages(decoded);
    let slots = allocate(cache, &mut newest, report).await?;
    report.pages = newest.len() as u64;
    load_own(cache, decoded, &newest, &slots, failed, report);
    relog(cache, decoded, &newest, &slots, report).await
}

/// The newest version of each page in any ring.
fn newest_pages(decoded: &Decoded<'_>) -> NewestPages {
    let mut order: Vec<usize> = (0..decoded.records.len()).collect();
    // Two rings may have the same version after a recovery that was cut off while pages were logged anew; then they have
    // the same content, and the own ring's comes last.
    order.sort_by_key(|place| {
        let record = &decoded.records[*place];
        (record.head.version, decoded.logs[record.ring].own)
    });
    let mut newest = NewestPages::new();
    for place in order {
        let record = &decoded.records[place];
        for (page, index) in record.pages() {
            newest.insert((record.head.extent, page), Newest { record: place, index });
        }
    }
    newest
}

/// The slot of every extent with pages. Extents without data and without a slot read as zeros already.
async fn allocate<S: SlotStore>(
    cache: &Rc<Inner<S>>,
    newest: &mut NewestPages,
    report: &mut RecoveryReport,
) -> Result<BTreeMap<ExtentId, SlotRef>, RecoverError> {
    let extents: BTreeSet<ExtentId> = newest.keys().map(|(extent, _)| *extent).collect();
    let with_data: BTreeSet<ExtentId> =
        newest.iter().filter(|(_, newest)| newest.index.is_some()).map(|((extent, _), _)| *extent).collect();
    let mut slots = BTreeMap::new();
    for extent in extents {
        if let Some(slot) = cache.mapping.slot(extent) {
            slots.insert(extent, slot);
        } else if with_data.contains(&extent) {
            let slot = cache.allocate(extent).await;
            slots.insert(extent, slot.map_err(|source| RecoverError::Allocate { extent, source })?);
            report.allocated += 1;
        }
    }
    newest.retain(|(extent, _), _| slots.contains_key(extent));
    Ok(slots)
}

/// Loads the records of the own ring.
fn load_own<S: SlotStore>(
    cache: &Rc<Inner<S>>,
    decoded: &Decoded<'_>,
    newest: &NewestPages,
    slots: &BTreeMap<ExtentId, SlotRef>,
    failed: Vec<FailedReplay>,
    report: &mut RecoveryReport,
) {
    let pinned = pinned_positions(decoded, &failed);
    let now = cache.world.now();
    let mut ids: BTreeMap<u64, RecordId> = BTreeMap::new();
    let mut state = cache.state.borrow_mut();
    for (place, record) in decoded.records.iter().enumerate() {
        if !decoded.logs[record.ring].own {
            continue;
        }
        let pages: Vec<(u32, Option<u32>)> = newest_of(record, place, newest).collect();
        let pin = u32::from(pinned.contains(&record.position));
        let needed = pages.len() as u32 + pin;
        if needed == 0 {
            continue;
        }
        let position = Position(record.position);
        let id = state.records.push(now, record.head.extent, record.data(), needed, position);
        state.records.settle(id, position);
        if pin > 0 {
            ids.insert(record.position, id);
        }
        for (page, index) in pages {
            let content = index.map_or(Page::zero(id), |index| Page::data(id, index));
            state.pages.insert(slots[&record.head.extent].slot, page, content);
        }
    }
    for failure in failed {
        report.failures.push((failure.extent, failure.error));
        let own = |index: &&usize| decoded.logs[decoded.intents[**index].ring].own;
        let intents = failure.intents.iter().filter(own).map(|index| &decoded.intents[*index]);
        let floor = intents.map(|found| Position(found.position)).min();
        let named = failure.intents.iter().flat_map(|index| &decoded.intents[*index].intent.pages);
        let pages = named.map(|(page, _)| *page).collect();
        let pins = decoded
            .records
            .iter()
            .filter(|record| record.head.extent == failure.extent)
            .filter_map(|record| ids.remove(&record.position))
            .collect();
        let trouble = Trouble { due: now, failures: 1, error: failure.error, floor, pages, pins };
        state.troubled.insert(failure.extent, trouble);
    }
}

/// Records of the own ring that intents need which could not be replayed: all of their extents.
fn pinned_positions(decoded: &Decoded<'_>, failed: &[FailedReplay]) -> BTreeSet<u64> {
    let extents: BTreeSet<ExtentId> = failed.iter().map(|failure| failure.extent).collect();
    let own =
        |record: &&DataRecord<'_>| decoded.logs[record.ring].own && extents.contains(&record.head.extent);
    decoded.records.iter().filter(own).map(|record| record.position).collect()
}

/// The pages whose newest content a record has.
fn newest_of<'a>(
    record: &'a DataRecord<'_>,
    place: usize,
    newest: &'a NewestPages,
) -> impl Iterator<Item = (u32, Option<u32>)> + 'a {
    record.pages().filter(move |(page, _)| {
        newest.get(&(record.head.extent, *page)).is_some_and(|newest| newest.record == place)
    })
}

/// Takes over what lies in other rings.
async fn relog<S: SlotStore>(
    cache: &Rc<Inner<S>>,
    decoded: &Decoded<'_>,
    newest: &NewestPages,
    slots: &BTreeMap<ExtentId, SlotRef>,
    report: &mut RecoveryReport,
) -> Result<(), RecoverError> {
    let mut changes = Vec::new();
    let (mut pages, mut blocks) = (0, 0);
    for (place, record) in decoded.records.iter().enumerate() {
        if decoded.logs[record.ring].own {
            continue;
        }
        let taken: Vec<(u32, Option<u32>)> = newest_of(record, place, newest).collect();
        if taken.is_empty() {
            continue;
        }
        report.pages_relogged += taken.len() as u64;
        pages += taken.iter().filter(|(_, index)| index.is_some()).count() as u64;
        blocks += taken.len() as u64 + 1;
        changes.push((record.head.extent, change(cache, record, &taken)));
    }
    if changes.is_empty() {
        return Ok(());
    }
    if cache.level(pages, blocks) > 1.0 {
        return Err(RecoverError::LogTooSmall { pages });
    }
    let logging: Vec<_> = changes
        .into_iter()
        .map(|(extent, change)| cache.log(extent, slots[&extent], change, cache.reserve(0, 0)))
        .collect();
    for record in logging {
        record.finish().await.map_err(RecoverError::Log)?;
    }
    Ok(())
}

/// Some pages of a record as a change.
fn change<S: SlotStore>(
    cache: &Rc<Inner<S>>,
    record: &DataRecord<'_>,
    taken: &[(u32, Option<u32>)],
) -> Change {
    let follows =
        |a: &(u32, Option<u32>), b: &(u32, Option<u32>)| a.0 + 1 == b.0 && a.1.is_some() == b.1.is_some();
    let runs = taken
        .chunk_by(follows)
        .map(|run| Run { first: run[0].0, count: run.len() as u32, zero: run[0].1.is_none() })
        .collect();
    let data = record.data_pages(taken.iter().filter_map(|(_, index)| *index));
    Change { runs, data: data.unwrap_or_else(|| cache.world.buffer(0).freeze()) }
}
