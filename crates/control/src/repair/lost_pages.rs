//! What of the volumes is lost, as ranges that people can restore. Which they are is in memory alone; that there are some is
//! on the drives, so that the next start says it.

use std::collections::BTreeSet;
use std::rc::Rc;

use tier0_api::finding::LostPagesWay;
use tier0_api::{FindingKind, IntegrityStatus, LostRange};
use tier0_pool::{Member, MemberState, PoolState};
use tier0_units::{Nanos, PAGE_SECTORS, SECTOR_BYTES};

use super::Repair;
use crate::message::command::{LostSectors, ShardCommand};
use crate::message::control::SlotRebuiltNote;
use crate::message::scrub::ScrubShared;
use crate::report::Findings;
use tier0_world::IoError;

/// Ranges that status lists.
const RANGES_MAX: usize = 4096;
/// How often is looked whether there are some.
const LOOK: Nanos = Nanos::from_secs(10);

/// What helps where no copy of pages is right: a drive that is lost, or was and has been taken back, may hold them. What has
/// come right meanwhile is known when the rebuild and the scrub have ended that are under way.
pub(crate) fn way_of_lost_pages(state: &PoolState, is_under_way: bool) -> LostPagesWay {
    let holds = |(place, member): &(u32, &Member)| {
        member.state == MemberState::Lost && state.returning(*place).next().is_some()
    };
    let may_hold = || state.members_by_place().filter(holds);
    let is_back = |place: u32| state.serves_as(place).is_some();
    let lost: Vec<&Member> =
        may_hold().filter(|(place, _)| !is_back(*place)).map(|(_, member)| member).collect();
    if !lost.is_empty() {
        let drives = lost.iter().map(|member| member.name.clone()).collect();
        return LostPagesWay::BringBack { drives, are_removed: lost.iter().any(|member| member.leaving) };
    }
    let back: BTreeSet<&String> = may_hold().map(|(_, member)| &member.name).collect();
    match (back.is_empty(), is_under_way) {
        (false, _) => LostPagesWay::WaitForReturned { drives: back.into_iter().cloned().collect() },
        (true, true) => LostPagesWay::WaitForRepair,
        (true, false) => LostPagesWay::Restore,
    }
}

impl Repair {
    /// Has the drives know of pages of which no copy is right, as long as the array runs.
    pub(crate) async fn watch_lost_pages(self: Rc<Self>, number: usize) {
        loop {
            self.world.sleep(LOOK).await;
            let core = self.core(number);
            if core.metadata.has_lost_pages() || core.pauses.since().is_some() {
                continue;
            }
            let reports = self.ask_all(|reply| ShardCommand::Report { pool: number, reply }).await;
            if reports.iter().flatten().any(|report| !report.lost.is_empty() || report.lost_left_off > 0) {
                self.remember_lost_pages(number, true).await;
            }
        }
    }

    /// A scrub that has looked at everything knows whether there are pages of which no copy is right; not where some were told
    /// since it began, `told` having been told by then: it may have been past them.
    pub(crate) async fn scrub_tells_lost_pages(
        self: &Rc<Self>,
        number: usize,
        shared: &ScrubShared,
        told: u64,
    ) {
        let is_told_since = self.core(number).rebuild.losses_told.get() != told;
        match (shared.unrecoverable(), shared.skipped()) {
            (0, 0) if is_told_since => {}
            (0, 0) => {
                let were_there = self.core(number).metadata.has_lost_pages();
                self.remember_lost_pages(number, false).await;
                if were_there {
                    // Drives that were kept for their sake are forgotten.
                    self.start_rebuilds(number);
                }
            }
            (0, _) => {}
            _ => {
                self.remember_lost_pages(number, true).await;
            }
        }
    }

    /// A rebuild has met pages of which nothing is right: what its columns' old chunklets hold may be needed. That must be
    /// known before the rebuild counts; whether it is. Drives that a pause waits for take no superblock.
    pub(crate) async fn rebuild_met_lost_pages(&self, number: usize) -> bool {
        let core = self.core(number);
        core.rebuild.met_lost_pages.set(true);
        core.pauses.since().is_none() && self.remember_lost_pages(number, true).await
    }

    /// Remembers that a slot is rebuilt. If it has lost pages, they must be known before; it is rebuilt again later if that cannot
    /// be remembered, and does not keep others from it.
    pub(crate) async fn slot_rebuilt(&self, note: &SlotRebuiltNote) -> Result<(), IoError> {
        match !note.has_lost_pages || self.rebuild_met_lost_pages(note.pool).await {
            true => self.core(note.pool).slot_rebuilt(note).await,
            false => Err(IoError::Timeout),
        }
    }

    async fn remember_lost_pages(&self, number: usize, are_there: bool) -> bool {
        if are_there {
            let told = &self.core(number).rebuild.losses_told;
            told.set(told.get() + 1);
        }
        let remembered = self.core(number).metadata.remember_lost_pages(are_there).await;
        if let Err(error) = &remembered {
            let pool = &self.pools[number].name;
            tracing::error!("pool {pool:?}: that pages are lost cannot be remembered: {error}");
        }
        remembered.is_ok()
    }
}

impl Findings {
    /// Pages that were lost before the start, of which this run has seen none.
    pub(crate) fn look_at_pages_lost_before(&mut self, are_remembered: bool, integrity: &IntegrityStatus) {
        if are_remembered && integrity.unrecoverable == 0 {
            self.add(FindingKind::PagesLostBefore);
        }
    }
}

/// What all shards know, by volume and address, and how many pages are left off; `name` is that of a volume. Neighbours
/// are one range, of whatever extents and shards.
pub(crate) fn lost_ranges(mut lost: Vec<LostSectors>, name: impl Fn(u32) -> String) -> (Vec<LostRange>, u64) {
    lost.sort_by_key(|one| (one.volume, one.sectors.start));
    let mut merged: Vec<LostSectors> = Vec::new();
    for one in lost {
        let joins =
            |last: &&mut LostSectors| last.volume == one.volume && last.sectors.end >= one.sectors.start;
        match merged.last_mut().filter(joins) {
            Some(last) => last.sectors.end = last.sectors.end.max(one.sectors.end),
            None => merged.push(one),
        }
    }
    let pages = |one: &LostSectors| (one.sectors.end - one.sectors.start) / PAGE_SECTORS;
    let left_off = merged.iter().skip(RANGES_MAX).map(pages).sum();
    merged.truncate(RANGES_MAX);
    let range = |one: LostSectors| LostRange {
        volume: name(one.volume),
        from: one.sectors.start * SECTOR_BYTES,
        to: one.sectors.end * SECTOR_BYTES,
        pages: pages(&one),
    };
    (merged.into_iter().map(range).collect(), left_off)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_of_all_shards_are_one_range() {
        let name = |number| format!("number {number}");
        let lost = |volume, from: u64, to: u64| LostSectors { volume, sectors: from * 8..to * 8 };
        let of_shards =
            vec![lost(9, 256, 300), lost(8, 0, 1), lost(9, 0, 256), lost(9, 301, 302), lost(8, 1, 2)];
        let (ranges, left_off) = lost_ranges(of_shards, name);
        let told: Vec<(&str, u64, u64, u64)> =
            ranges.iter().map(|one| (&*one.volume, one.from / 4096, one.to / 4096, one.pages)).collect();
        assert_eq!(told, [("number 8", 0, 2, 2), ("number 9", 0, 300, 300), ("number 9", 301, 302, 1)]);
        assert_eq!(left_off, 0);
        let scattered = (0..RANGES_MAX as u64 + 3).map(|page| lost(1, 2 * page, 2 * page + 1)).collect();
        let (ranges, left_off) = lost_ranges(scattered, name);
        assert_eq!((ranges.len(), left_off), (RANGES_MAX, 3));
    }
}
