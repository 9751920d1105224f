//! What must be true of a pool before it is opened. Everything is read and nothing is written: a loss that is recorded
//! cannot be taken back, so a start that is refused afterwards would have cost drives (decision 0008, "At a start").

use std::collections::BTreeSet;

use tier0_description::names::drives;
use tier0_journal::Ring;
use tier0_plan::{PoolShape, levels_of, sets_that_fail};
use tier0_pool::metadata::{FoundPool, Inspected};
use tier0_pool::{LogCopy, LogRing, Member, MemberState, PoolState};
use tier0_raid::set::{RaidSets, SetIndex};
use tier0_world::World;

use super::consent::Consents;
use crate::ArrayError;
use crate::log_lane::region;

/// Reads and proves a pool, and checks that it can go on with what is there.
///
/// # Errors
/// Why it cannot; nothing was written.
pub(crate) async fn examine(
    world: &World,
    found: FoundPool,
    consents: &Consents,
) -> Result<Inspected, ArrayError> {
    let inspected = found.inspect(world).await?;
    let state = inspected.state();
    let shape = PoolShape::new(state)?;
    check_survives(state, &shape.sets)?;
    check_log(state)?;
    consents.check(world, &inspected, &shape.sets).await?;
    if !inspected.newly_lost().is_empty() {
        let cause = "the missing drives may hold the missing part: connect them";
        read_log(world, &inspected, cause).await?;
    }
    Ok(inspected)
}

/// Every set must do without the members that do not serve.
fn check_survives(state: &PoolState, sets: &RaidSets) -> Result<(), ArrayError> {
    let lacks =
        |set: SetIndex, column, drive| !state.is_active(drive) || sets.lacking_columns(set).contains(column);
    let failed = sets_that_fail(sets, state.set_count(), lacks);
    let groups: BTreeSet<u32> = failed.map(|set| state.group_number_of(set.0)).collect();
    if groups.is_empty() {
        return Ok(());
    }
    let is_lost = |member: &&Member| member.state == MemberState::Lost && groups.contains(&member.group);
    let lost = state.members().iter().filter(is_lost);
    Err(ArrayError::Missing {
        pool: state.name().to_owned(),
        missing: drives(lost.map(|member| member.name.as_str())),
        level: levels_of(state, &groups),
    })
}

/// A copy of every ring of the write log must be there.
fn check_log(state: &PoolState) -> Result<(), ArrayError> {
    let is_gone = |ring: &&LogRing| !ring.copies.iter().any(|copy| state.is_active(copy.member));
    let Some(ring) = state.log().rings.iter().find(is_gone) else { return Ok(()) };
    let names = ring.copies.iter().filter_map(|copy| state.member(copy.member));
    let drives = drives(names.map(|member| member.name.as_str()));
    Err(ArrayError::NoLog { pool: state.name().to_owned(), drives })
}

/// Why a log cannot be recovered of which no drive is missing.
const CAUSE: &str = "another program has written to the drives, or they were restored to an older state: \
                     connect the right drives, or run \"tier0 pool recover\"";

/// Proves that the write log can be recovered, where [`examine`] has not: what others have written over it must be found
/// before the start writes anything.
///
/// # Errors
/// Why it cannot; nothing was written.
pub(crate) async fn prove_log(world: &World, inspected: &Inspected) -> Result<(), ArrayError> {
    match inspected.newly_lost().is_empty() {
        true => read_log(world, inspected, CAUSE).await,
        false => Ok(()),
    }
}

/// Reads all of the write log: where the only whole copy of a frame lies on a drive that is missing, recording its loss
/// would lose what was acknowledged.
async fn read_log(world: &World, inspected: &Inspected, cause: &str) -> Result<(), ArrayError> {
    let state = inspected.state();
    for ring in state.log().rings.iter().filter(|ring| !ring.is_void) {
        let region = |copy: &LogCopy| {
            let drive = inspected.drive(copy.member).filter(|_| state.is_active(copy.member))?;
            Some(region(copy, drive.clone()))
        };
        let regions = ring.copies.iter().map(region).collect();
        Ring::inspect(world, regions, ring.id).await.map_err(|error| ArrayError::Recovery {
            pool: state.name().to_owned(),
            fact: format!("{error}; nothing was written; {cause}"),
        })?;
    }
    Ok(())
}
