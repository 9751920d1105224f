//! What must be true of a pool before it is opened. Everything is read and nothing is written: a loss that is recorded
//! cannot be taken back, so a start that is refused afterwards would have cost drives (decision 0008, "At a start").

use tier0_journal::{Region, Ring};
use tier0_pool::metadata::{FoundPool, Inspected};
use tier0_pool::{LogCopy, LogRing, MemberState, PoolState};
use tier0_raid::set::{RaidSets, SetIndex};
use tier0_units::Lba;
use tier0_world::{PlantedBug, World, planted};

use crate::ArrayError;
use crate::control::sets_survive;
use crate::plan::PoolShape;

/// Reads and proves a pool, and checks that it can go on with what is there. `without` names drives that somebody
/// consents to start without.
///
/// # Errors
/// Why it cannot; nothing was written.
pub(crate) async fn examine(
    world: &World,
    found: FoundPool,
    without: &[String],
) -> Result<Inspected, ArrayError> {
    let inspected = found.inspect(world).await?;
    let state = inspected.state();
    let shape = PoolShape::new(state)?;
    check_survives(state, &shape.sets)?;
    check_log(state)?;
    check_consent(&inspected, &shape.sets, without)?;
    if !inspected.newly_lost().is_empty() {
        read_log(world, &inspected).await?;
    }
    Ok(inspected)
}

/// Every set must do without the members that do not serve.
fn check_survives(state: &PoolState, sets: &RaidSets) -> Result<(), ArrayError> {
    let lacks =
        |set: SetIndex, column, drive| !state.is_active(drive) || sets.lacking_columns(set).contains(column);
    if sets_survive(sets, state.set_count(), lacks) {
        return Ok(());
    }
    let lost = state.members().iter().filter(|member| member.state == MemberState::Lost);
    Err(ArrayError::Missing {
        pool: state.name().to_owned(),
        missing: format!("drives {}", quoted(lost.map(|member| member.name.as_str()))),
        level: state.geometry().raid.level.clone(),
    })
}

/// A copy of every ring of the write log must be there.
fn check_log(state: &PoolState) -> Result<(), ArrayError> {
    let is_gone = |ring: &&LogRing| !ring.copies.iter().any(|copy| state.is_active(copy.member));
    let Some(ring) = state.log().rings.iter().find(is_gone) else { return Ok(()) };
    let names = ring.copies.iter().filter_map(|copy| state.member(copy.member));
    let drives = quoted(names.map(|member| member.name.as_str()));
    Err(ArrayError::NoLog { pool: state.name().to_owned(), drives })
}

/// Whether drives that are missing now could have gone on without those that are there, which may be stale then: if so,
/// somebody must have consented to do without each of them.
pub(super) fn check_consent(
    inspected: &Inspected,
    sets: &RaidSets,
    without: &[String],
) -> Result<(), ArrayError> {
    let state = inspected.state();
    let away = |member: u32| inspected.newly_lost().contains(&member);
    let lacks =
        |set: SetIndex, column, drive: u32| !away(drive) || sets.lacking_columns(set).contains(column);
    let has_log = state.log().rings.iter().all(|ring| ring.copies.iter().any(|copy| away(copy.member)));
    let has_metadata = inspected.carriers_before().iter().any(|member| away(*member));
    let could_go_on = has_log && has_metadata && sets_survive(sets, state.set_count(), lacks);
    let names = inspected.newly_lost().iter().filter_map(|place| state.member(*place));
    let unnamed: Vec<&str> = names
        .map(|member| member.name.as_str())
        .filter(|name| !without.iter().any(|one| one == name))
        .collect();
    if !could_go_on || unnamed.is_empty() || planted(PlantedBug::ServeWithoutConsent) {
        return Ok(());
    }
    Err(ArrayError::Consent {
        pool: state.name().to_owned(),
        drives: quoted(unnamed.iter().copied()),
        options: unnamed.iter().map(|name| format!("--without {name}")).collect::<Vec<_>>().join(" "),
    })
}

/// Reads all of the write log: where the only whole copy of a frame lies on a drive that is missing, recording its loss
/// would lose what was acknowledged.
async fn read_log(world: &World, inspected: &Inspected) -> Result<(), ArrayError> {
    let state = inspected.state();
    for ring in &state.log().rings {
        let region = |copy: &LogCopy| {
            let drive = inspected.drive(copy.member).filter(|_| state.is_active(copy.member))?;
            Some(Region { drive: drive.clone(), first: Lba(copy.first_sector), sectors: copy.sectors })
        };
        let regions = ring.copies.iter().map(region).collect();
        Ring::inspect(world, regions, ring.id).await.map_err(|error| ArrayError::Recovery {
            pool: state.name().to_owned(),
            fact: format!(
                "{error}; nothing was written, and the drives that are missing may hold what lacks: connect them"
            ),
        })?;
    }
    Ok(())
}

/// Names in a sentence.
fn quoted<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ")
}
