//! The plan: everything is read and decided, nothing is written.

use std::collections::BTreeSet;

use tier0_drive::DriveHandle;
use tier0_plan::{PoolShape, ring_sectors_min};
use tier0_pool::metadata::{FoundPool, Inspected};
use tier0_pool::{DriveClass, LogPlacement, Member, MemberState, MetaRecord, PoolState};
use tier0_units::{ByteCount, SECTOR_BYTES};
use tier0_world::World;
use uuid::Uuid;

use super::choice::{self, Choice, Fate, Members};
use super::cut::Cut;
use super::log::{self, RingFate};
use super::{DriveRole, Recovery, Role, losses, roles};
use crate::ArrayError;
use crate::flash_cache::fresh_epochs;
use crate::open::consent::check_consent;

/// A drive that holds nothing and has a name in the array file.
#[derive(Clone)]
pub(super) struct Blank {
    pub(super) name: String,
    pub(super) drive: DriveHandle,
}

/// What is noted of a recovery that a crash has broken off.
const BROKEN_OFF: &str = "an earlier recovery of this pool was interrupted; it restarts from the beginning";

/// What is noted where drives are believed that were overwritten at the front.
const OVERWRITTEN: &str = "other parts may be overwritten too: run \"tier0 scrub\" to find damaged pages, \
                           and restore what it lists from a backup";

/// What is to be done with a pool.
pub(super) struct Plan {
    pub(super) recovery: Recovery,
    pub(super) steps: Option<Steps>,
}

/// How it is done.
pub(super) struct Steps {
    /// The pool as it would go on.
    pub(super) inspected: Inspected,
    pub(super) readmitted: BTreeSet<u32>,
    pub(super) rings: Vec<RingFate>,
    /// Where the log lies then; none where it stays as it is.
    pub(super) placement: Option<LogPlacement>,
    /// Drives that join before.
    pub(super) newcomers: Vec<(Member, DriveHandle)>,
}

/// What the superblocks tell of members.
struct Known {
    left_in: Vec<u64>,
    holds_until: Vec<u64>,
    candidates: BTreeSet<u32>,
}

impl Known {
    fn of(found: &FoundPool) -> Known {
        Known {
            left_in: (0..found.members.len() as u32).map(|place| found.left_in(place)).collect(),
            holds_until: (0..found.members.len() as u32).map(|place| found.holds_until(place)).collect(),
            candidates: found.unbelieved().into_iter().map(|member| member.place).collect(),
        }
    }
}

impl Members for Known {
    fn left_in(&self, member: u32) -> u64 {
        self.left_in.get(member as usize).copied().unwrap_or(1)
    }

    fn holds_until(&self, member: u32) -> u64 {
        self.holds_until.get(member as usize).copied().unwrap_or(1)
    }

    fn is_candidate(&self, member: u32) -> bool {
        self.candidates.contains(&member)
    }
}

impl Plan {
    /// Reads a pool and decides. `id` makes identities.
    pub(super) async fn of(
        world: &World,
        mut found: FoundPool,
        blanks: &[Blank],
        id: &mut impl FnMut() -> Uuid,
    ) -> Result<Plan, ArrayError> {
        let roles = roles(&found);
        let overwritten = found.readmit_overwritten();
        let recovery = Recovery {
            pool: found.label.name.clone(),
            obstacle: None,
            is_needed: true,
            generation: found.generation,
            drives: roles,
            without: Vec::new(),
            volumes: Vec::new(),
            notes: found.is_half_recovered.then(|| BROKEN_OFF.to_owned()).into_iter().collect(),
        };
        let stopped = |recovery: Recovery, obstacle: String| {
            Ok(Plan { recovery: Recovery { obstacle: Some(obstacle), ..recovery }, steps: None })
        };
        if let Some(problem) = &found.problem {
            return stopped(recovery, problem.to_string());
        }
        let before = match found.clone().inspect(world).await {
            Ok(inspected) => inspected,
            Err(error) => return stopped(recovery, error.to_string()),
        };
        let shape = PoolShape::new(before.state())?;
        let known = Known::of(&found);
        // As a start would find them: what is believed again is known only to the pool that has it.
        let drive = |member| before.drive(member).cloned().or_else(|| found.unbelieved_drive(member));
        let rings = log::look(world, &before, &known, drive).await;
        let serving = |member: &u32| before.state().is_active(*member);
        let also: Vec<u32> = rings.iter().flat_map(RingFate::kept).filter(|one| !serving(one)).collect();
        let choice = choice::choose(before.state(), &shape.sets, &known, &also);
        let gone = log::bytes_gone(before.state(), &rings);
        let consent = check_consent(&before, &shape.sets, |_| false).err();
        let cut = Cut::of(before.state(), &shape, &choice, drive);
        let is_cut = |slot| cut.needs(before.state(), &shape, slot);
        let mut recovery = Recovery {
            is_needed: !choice.readmitted.is_empty()
                || !overwritten.is_empty()
                || gone > 0
                || !choice.fates.is_empty(),
            volumes: losses::losses(before.state(), &choice.fates, is_cut, gone, consent.is_some()),
            ..recovery
        };
        if recovery.volumes.iter().any(|volume| !volume.cut.is_empty()) {
            recovery.notes.extend(cut.notes(before.state()));
        }
        recovery.notes.extend(consent.map(|error| error.to_string()));
        recovery.notes.extend(notes_on_log(&rings));
        if choice.fates.values().any(|fate| *fate == Fate::Dead) {
            let dead = choice.fates.values().filter(|fate| **fate == Fate::Dead).count();
            let (all, level) = (before.state().set_count(), tier0_plan::levels(before.state()));
            let obstacle = format!(
                "{dead} of {all} RAID sets lack more drives than {level} tolerates, and stale drives cannot \
                 stand in; connect the missing drives"
            );
            return stopped(recovery, obstacle);
        }
        if !recovery.is_needed {
            return Ok(Plan { recovery, steps: None });
        }
        let inspected = readmitted(world, found, &choice).await?;
        let sectors_min = ring_sectors_min(inspected.state().groups());
        let Some((placement, newcomers)) = place_log(inspected.state(), &rings, sectors_min, blanks, id)?
        else {
            let size = ByteCount(sectors_min * SECTOR_BYTES);
            let obstacle = format!(
                "no drive has space for a new write log of at least {size} per core; connect a blank drive \
                 under a name and path of the array file, and it is added"
            );
            return stopped(recovery, obstacle);
        };
        if !overwritten.is_empty() {
            recovery.notes.push(OVERWRITTEN.to_owned());
        }
        for place in choice.readmitted.iter().chain(&overwritten) {
            recovery.drives[*place as usize].role = Role::Readmitted;
        }
        let joining = newcomers.iter().map(|(member, _)| member.name.clone());
        recovery.drives.extend(joining.map(|name| DriveRole { name, role: Role::Joins, generation: None }));
        let readmitted = choice.readmitted;
        let placement = (gone > 0).then_some(placement);
        let steps = Steps { inspected, readmitted, rings, placement, newcomers };
        Ok(Plan { recovery, steps: Some(steps) })
    }
}

/// The pool with those members believed again.
async fn readmitted(world: &World, mut found: FoundPool, choice: &Choice) -> Result<Inspected, ArrayError> {
    choice.readmitted.iter().for_each(|place| _ = found.readmit(*place));
    let mut inspected = found.inspect(world).await?;
    inspected.finish_rebuilds()?;
    inspected.believe_columns(&choice.believed)?;
    inspected.rebuild_in_place(&choice.rebuilt)?;
    inspected.disown_flash_cache(fresh_epochs(world))?;
    Ok(inspected)
}

type Placed = (LogPlacement, Vec<(Member, DriveHandle)>);

/// Where the log lies, on drives that join where it has no room on the others.
fn place_log(
    state: &PoolState,
    rings: &[RingFate],
    sectors_min: u64,
    blanks: &[Blank],
    id: &mut impl FnMut() -> Uuid,
) -> Result<Option<Placed>, ArrayError> {
    if let Some(placement) = log::place(state, rings, sectors_min, &mut *id) {
        return Ok(Some((placement, Vec::new())));
    }
    let copies = state.log().rings.iter().map(|ring| ring.copies.len()).max().unwrap_or(0);
    let mut larger = state.clone();
    let mut newcomers = Vec::new();
    for Blank { name, drive } in blanks.iter().take(copies) {
        let namesake = state.members().iter().find(|member| member.name == *name);
        let member = Member {
            id: id(),
            name: name.clone(),
            sectors: drive.info().sectors.0,
            class: namesake.map_or(DriveClass::Disk, |member| member.class),
            state: MemberState::Active,
            path: String::new(),
            leaving: false,
            role: namesake.map(|member| member.role).unwrap_or_default(),
            group: 0,
        };
        // One that is too small, or has the name of a drive that serves, cannot join.
        if larger.apply_all(&[MetaRecord::MemberAdded(member.clone())]).is_ok() {
            newcomers.push((member, drive.clone()));
        }
    }
    Ok(log::place(&larger, rings, sectors_min, id).map(|placement| (placement, newcomers)))
}

fn notes_on_log(rings: &[RingFate]) -> Vec<String> {
    let note = |(number, ring): (usize, &RingFate)| match ring {
        RingFate::Kept(_) => None,
        RingFate::RenewedInPlace(_, fact) => {
            Some(format!("part {number} of the write log will be empty: {fact}"))
        }
        RingFate::Renewed => Some(format!(
            "part {number} of the write log will be empty: none of its last copies is connected"
        )),
    };
    rings.iter().enumerate().filter_map(note).collect()
}
