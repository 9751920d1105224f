//! Which intents are replayed, and their replay.
//!
//! An intent is left out when its slot is no longer the extent's: the slot was freed, and whatever is torn there
//! belongs to no extent. It is also left out when data that it names was released, because that happens only after its
//! batch has ended; then the extent's earlier batches have ended too, and their intents must be left out with it: they
//! would bring back older parity beside newer data.
//!
//! Intents of one extent are replayed one after the other, different extents side by side.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use tier0_integrity::{Intent, SlotIo};
use tier0_units::ExtentId;
use tier0_world::{Buf, IoError, PlantedBug, planted};

use super::decode::{Decoded, FoundIntent};
use super::{RecoverError, RecoveryReport};
use crate::Mapping;

/// Extents that are replayed at once.
const EXTENTS_AT_ONCE: usize = 32;

/// An extent whose replay failed, and the intents that are still needed.
pub(super) struct FailedReplay {
    pub(super) extent: ExtentId,
    pub(super) error: IoError,
    /// Indices into [`Decoded::intents`].
    pub(super) intents: Vec<usize>,
}

struct Replay<'a> {
    index: usize,
    found: &'a FoundIntent,
    pages: Vec<Buf>,
}

/// Replays what must be, and makes it stable.
pub(super) async fn replay(
    slots: &SlotIo,
    mapping: &dyn Mapping,
    decoded: &Decoded<'_>,
    report: &mut RecoveryReport,
) -> Result<Vec<FailedReplay>, RecoverError> {
    let wanted = select(mapping, decoded)?;
    let count: usize = wanted.values().map(Vec::len).sum();
    report.intents_skipped = (decoded.intents.len() - count) as u64;
    report.intents_replayed = count as u64;
    if count == 0 {
        return Ok(Vec::new());
    }
    let groups: Vec<(ExtentId, Vec<Replay<'_>>)> = wanted.into_iter().collect();
    let mut failed = Vec::new();
    for some in groups.chunks(EXTENTS_AT_ONCE) {
        let results = join_all(some.iter().map(|(_, replays)| replay_extent(slots, replays))).await;
        for ((extent, replays), result) in some.iter().zip(results) {
            let Err(error) = result else { continue };
            tracing::error!("{extent}: rows that a power cut may have torn cannot be made whole: {error}");
            let intents = replays.iter().map(|replay| replay.index).collect();
            failed.push(FailedReplay { extent: *extent, error, intents });
        }
    }
    slots.sync().await.map_err(RecoverError::Sync)?;
    Ok(failed)
}

async fn replay_extent(slots: &SlotIo, replays: &[Replay<'_>]) -> Result<(), IoError> {
    let intents: Vec<(&Intent, &[Buf])> =
        replays.iter().map(|replay| (&replay.found.intent, replay.pages.as_slice())).collect();
    slots.replay_intents(&intents).await
}

/// The intents to be replayed, by extent, in order.
fn select<'a>(
    mapping: &dyn Mapping,
    decoded: &'a Decoded<'_>,
) -> Result<BTreeMap<ExtentId, Vec<Replay<'a>>>, RecoverError> {
    let mut wanted: BTreeMap<ExtentId, Vec<Replay<'a>>> = BTreeMap::new();
    for (index, found) in decoded.intents.iter().enumerate() {
        let extent = found.intent.extent;
        let is_freed = mapping.slot(extent) != Some(found.intent.slot);
        if is_freed && !planted(PlantedBug::ReplayReleasedLog) {
            continue;
        }
        match decoded.data_of(found)? {
            Some(pages) => wanted.entry(extent).or_default().push(Replay { index, found, pages }),
            None if planted(PlantedBug::ReplayReleasedLog) => {}
            None => {
                wanted.remove(&extent);
            }
        }
    }
    Ok(wanted)
}
