//! The newest version of each page becomes dirty again.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use tier0_journal::Position;
use tier0_units::ExtentId;
use tier0_world::{PlantedBug, planted};

use super::decode::{DataRecord, Decoded};
use super::replay::FailedReplay;
use super::{RecoverError, RecoveryReport};
use crate::pages::{Page, RecordId};
use crate::write_back::{DestageFailure, Inner};

/// Which record has the newest content of a page, by its place in [`Decoded::records`], and which of its pages it is.
#[derive(Clone, Copy)]
struct Newest {
    record: usize,
    index: Option<u32>,
}

type NewestPages = BTreeMap<(ExtentId, u32), Newest>;

/// Loads the pages, and gives slots to extents that need one.
pub(super) async fn load(
    cache: &Rc<Inner>,
    decoded: &Decoded<'_>,
    failed: Vec<FailedReplay>,
    report: &mut RecoveryReport,
) -> Result<(), RecoverError> {
    let mut newest = newest_pages(decoded);
    allocate(cache, &mut newest, report).await?;
    report.pages = newest.len() as u64;
    load_records(cache, decoded, &newest, failed, report);
    Ok(())
}

/// The newest version of each page.
fn newest_pages(decoded: &Decoded<'_>) -> NewestPages {
    let mut order: Vec<usize> = (0..decoded.records.len()).collect();
    order.sort_by_key(|place| decoded.records[*place].header.version);
    let mut newest = NewestPages::new();
    for place in order {
        let record = &decoded.records[place];
        for (page, index) in record.pages() {
            newest.insert((record.header.extent, page), Newest { record: place, index });
        }
    }
    newest
}

/// Every extent with pages of data gets a slot; those without data and without a slot read as zeros already.
async fn allocate(
    cache: &Rc<Inner>,
    newest: &mut NewestPages,
    report: &mut RecoveryReport,
) -> Result<(), RecoverError> {
    let extents: BTreeSet<ExtentId> = newest.keys().map(|(extent, _)| *extent).collect();
    let with_data: BTreeSet<ExtentId> =
        newest.iter().filter(|(_, newest)| newest.index.is_some()).map(|((extent, _), _)| *extent).collect();
    let mut without = BTreeSet::new();
    for extent in extents {
        if let Some(slot) = cache.mapping.slot(extent) {
            if cache.mapping.is_shared(slot) && !planted(PlantedBug::RecoverIntoSharedSlot) {
                let allocated = cache.allocate_copy(extent).await;
                allocated.map_err(|source| RecoverError::Allocate { extent, source })?;
                report.allocated += 1;
            }
            continue;
        }
        if with_data.contains(&extent) {
            let slot = cache.allocate(extent).await;
            slot.map_err(|source| RecoverError::Allocate { extent, source })?;
            report.allocated += 1;
        } else {
            without.insert(extent);
        }
    }
    newest.retain(|(extent, _), _| !without.contains(extent));
    Ok(())
}

/// Loads the records.
fn load_records(
    cache: &Rc<Inner>,
    decoded: &Decoded<'_>,
    newest: &NewestPages,
    failed: Vec<FailedReplay>,
    report: &mut RecoveryReport,
) {
    let pinned = pinned_positions(decoded, &failed);
    let now = cache.world.now();
    let mut ids: BTreeMap<u64, RecordId> = BTreeMap::new();
    let mut state = cache.state.borrow_mut();
    for (place, record) in decoded.records.iter().enumerate() {
        let pages: Vec<(u32, Option<u32>)> = newest_of(record, place, newest).collect();
        let pin = u32::from(pinned.contains(&record.position));
        let needed = pages.len() as u32 + pin;
        if needed == 0 {
            continue;
        }
        let position = Position(record.position);
        let id = state.records.push(now, record.header.extent, record.data(), needed, position);
        state.records.settle(id, position);
        if pin > 0 {
            ids.insert(record.position, id);
        }
        for (page, index) in pages {
            let content = index.map_or(Page::zero(id), |index| Page::data(id, index));
            state.pages.insert_recovered(record.header.extent, page, content);
        }
    }
    for failure in failed {
        report.failures.push((failure.extent, failure.error));
        let intents = failure.intents.iter().map(|index| &decoded.intents[*index]);
        let floor = intents.map(|found| Position(found.position)).min();
        let named = failure.intents.iter().flat_map(|index| &decoded.intents[*index].intent.pages);
        let pages = named.map(|(page, _)| *page).collect();
        let pins = decoded
            .records
            .iter()
            .filter(|record| record.header.extent == failure.extent)
            .filter_map(|record| ids.remove(&record.position))
            .collect();
        let waiting = DestageFailure { due: now, failures: 1, error: failure.error, floor, pages, pins };
        state.failed.insert(failure.extent, waiting);
    }
}

/// Records that intents need which could not be replayed: all of their extents.
fn pinned_positions(decoded: &Decoded<'_>, failed: &[FailedReplay]) -> BTreeSet<u64> {
    let extents: BTreeSet<ExtentId> = failed.iter().map(|failure| failure.extent).collect();
    let needed = |record: &&DataRecord<'_>| extents.contains(&record.header.extent);
    decoded.records.iter().filter(needed).map(|record| record.position).collect()
}

/// The pages whose newest content a record has.
fn newest_of<'a>(
    record: &'a DataRecord<'_>,
    place: usize,
    newest: &'a NewestPages,
) -> impl Iterator<Item = (u32, Option<u32>)> + 'a {
    record.pages().filter(move |(page, _)| {
        newest.get(&(record.header.extent, *page)).is_some_and(|newest| newest.record == place)
    })
}
