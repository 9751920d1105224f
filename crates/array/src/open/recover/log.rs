//! The write log: which of its copies count, and a new and empty one where none does.

use tier0_drive::DriveHandle;
use tier0_journal::{Region, Ring};
use tier0_pool::metadata::Inspected;
use tier0_pool::{ChunkletAddress, LogCopy, LogPlacement, LogRing, PoolState};
use tier0_units::SECTOR_BYTES;
use tier0_world::World;

use super::choice::Members;
use crate::log_lane::region;

/// What becomes of a ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RingFate {
    /// Copies that count are there, on these members.
    Kept(Vec<u32>),
    /// Copies are there, on these members, and cannot be read: a new ring takes their places.
    RenewedInPlace(Vec<u32>, String),
    /// No copy that counts is there: a new ring needs a place.
    Renewed,
}

impl RingFate {
    pub(super) fn is_kept(&self) -> bool {
        matches!(self, RingFate::Kept(_))
    }

    /// The members whose copies count.
    pub(super) fn kept(&self) -> impl Iterator<Item = u32> {
        let kept = if let RingFate::Kept(members) = self { members.as_slice() } else { &[] };
        kept.iter().copied()
    }

    /// The members whose copies are used as they are, or overwritten.
    fn members(&self) -> &[u32] {
        match self {
            RingFate::Kept(members) | RingFate::RenewedInPlace(members, _) => members,
            RingFate::Renewed => &[],
        }
    }
}

/// Looks at every ring. `drive` gives the drives of all members that are there, those that are not believed too.
pub(super) async fn look(
    world: &World,
    inspected: &Inspected,
    known: &impl Members,
    drive: impl Fn(u32) -> Option<DriveHandle>,
) -> Vec<RingFate> {
    let state = inspected.state();
    let mut fates = Vec::new();
    for ring in &state.log().rings {
        let holders = || ring.copies.iter().map(|copy| copy.member);
        let serving: Vec<u32> = holders().filter(|member| state.is_active(*member)).collect();
        // The log ended when its last copy left: nothing was acknowledged since.
        let end = holders().map(|member| known.left_in(member)).max().unwrap_or(0);
        let last = holders()
            .filter(|member| known.is_candidate(*member) && known.holds_until(*member) == end)
            .collect();
        let members: Vec<u32> = if serving.is_empty() { last } else { serving.clone() };
        if ring.is_void && !members.is_empty() {
            // There is nothing in it to be read, or to be lost.
            fates.push(RingFate::Kept(members));
            continue;
        }
        let region = |copy: &LogCopy| {
            let drive = drive(copy.member).filter(|_| members.contains(&copy.member))?;
            Some(region(copy, drive))
        };
        let regions: Vec<Option<Region>> = ring.copies.iter().map(region).collect();
        if regions.iter().all(Option::is_none) {
            fates.push(RingFate::Renewed);
            continue;
        }
        fates.push(match Ring::inspect(world, regions, ring.id).await {
            Ok(_) => RingFate::Kept(members),
            Err(error) if !serving.is_empty() => RingFate::RenewedInPlace(serving, error.to_string()),
            Err(_) => RingFate::Renewed,
        });
    }
    fates
}

/// The most that rings which are not kept can have held, bytes.
pub(super) fn bytes_gone(state: &PoolState, fates: &[RingFate]) -> u64 {
    let rings = state.log().rings.iter().zip(fates).filter(|(_, fate)| !fate.is_kept());
    rings.filter_map(|(ring, _)| ring.copies.iter().map(|copy| copy.sectors * SECTOR_BYTES).max()).sum()
}

/// The copies on members that are believed again which do not count: they are overwritten before a start believes them.
pub(super) fn stale_copies<'a>(
    state: &'a PoolState,
    fates: &'a [RingFate],
    readmitted: impl Fn(u32) -> bool + 'a,
) -> impl Iterator<Item = &'a LogCopy> {
    let rings = state.log().rings.iter().zip(fates);
    rings.flat_map(|(ring, fate)| ring.copies.iter().map(move |copy| (copy, fate))).filter_map(
        move |(copy, fate)| {
            let counts = fate.members().contains(&copy.member);
            (readmitted(copy.member) && !counts).then_some(copy)
        },
    )
}

/// Where rings that need one get a place: on as many members as they had copies, as far as there is room, and at least on
/// one. They keep the number of their copies. None where there is no room at all. `id` makes identities.
pub(super) fn place(
    state: &PoolState,
    fates: &[RingFate],
    sectors_min: u64,
    mut id: impl FnMut() -> uuid::Uuid,
) -> Option<LogPlacement> {
    let mut placement = state.log().clone();
    for (ring, fate) in placement.rings.iter_mut().zip(fates) {
        if !fate.is_kept() {
            ring.id = id();
        }
    }
    // A stale copy on a member that is believed again leaves its place to the new ring.
    let has_place = |ring: &LogRing| ring.copies.iter().any(|copy| state.is_active(copy.member));
    let homeless: Vec<usize> = (0..fates.len())
        .filter(|number| fates[*number] == RingFate::Renewed && !has_place(&placement.rings[*number]))
        .collect();
    let Some(first) = homeless.first().map(|number| &placement.rings[*number]) else {
        return Some(placement);
    };
    let copies = first.copies.len();
    let wanted = first.copies.iter().map(|copy| copy.sectors).min()?;
    let geometry = state.geometry();
    let rings = homeless.len() as u64;
    let mut members: Vec<u32> = (0u32..).zip(state.members()).map(|(place, _)| place).collect();
    members.retain(|place| state.is_active(*place));
    members.sort_by_key(|place| {
        let class = state.member(*place).map(|member| member.class);
        (class, std::cmp::Reverse(state.free_chunklets(*place)))
    });
    // As large as it was, or as large as it fits and works.
    let largest = (wanted * rings).div_ceil(geometry.chunklet_sectors);
    for chunklets in (1..=largest).rev() {
        let sectors = wanted.min(chunklets * geometry.chunklet_sectors / rings / 8 * 8);
        if sectors < sectors_min {
            return None;
        }
        let starts: Vec<ChunkletAddress> =
            members.iter().filter_map(|member| state.free_run(*member, chunklets)).take(copies).collect();
        if starts.is_empty() {
            continue;
        }
        for (part, number) in (0u64..).zip(&homeless) {
            let copy = |start: &ChunkletAddress| LogCopy {
                member: start.drive,
                first_sector: geometry.chunklet_start(*start) + part * sectors,
                sectors,
            };
            let ring = &mut placement.rings[*number];
            // Copies that have no room yet stay with members that do not serve: the control task makes them where there
            // is room later, and until then the log lacks them.
            let absent = ring.copies.iter().skip(starts.len()).map(|copy| LogCopy { sectors, ..*copy });
            ring.copies = starts.iter().map(copy).chain(absent).collect();
        }
        return Some(placement);
    }
    None
}

/// The copies of a renewed ring that can be written: those on members that serve.
pub(super) fn writable<'a>(state: &'a PoolState, ring: &'a LogRing) -> impl Iterator<Item = &'a LogCopy> {
    ring.copies.iter().filter(|copy| state.is_active(copy.member))
}
