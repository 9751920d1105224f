//! Looking at drives: which pools they belong to, and which of them are to be believed. Nothing is written.
//!
//! Which superblock says who serves is told by [`lineage`]. A drive that was away and is not called lost by it only missed
//! generations that nothing was acknowledged on, and is believed, unless it was put back to an older image.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use tier0_drive::DriveHandle;
use tier0_world::{PlantedBug, planted};
use uuid::Uuid;

use super::lineage::{self, Choice};
use super::readmission::NEVER_LOST;
use super::superblock::{self, GivenUp, Newest, PoolLabel, Superblock};
use crate::error::names;
use crate::foreign::is_blank;
use crate::state::MemberState;
use crate::{History, Member, PoolError};

/// What drives turned out to be.
#[derive(Debug)]
pub struct Survey {
    /// The pools, by identity.
    pub pools: Vec<FoundPool>,
    /// Drives that are in no pool.
    pub others: Vec<OtherDrive>,
}

/// A drive that is in no pool.
#[derive(Debug)]
pub enum OtherDrive {
    /// Nothing at all: its front and its end are zeros ([`crate::foreign::is_blank`]).
    Blank(DriveHandle),
    /// It holds something that is not tier0's.
    Foreign(DriveHandle),
    /// It fails, is damaged, or has a format that is not read.
    Unreadable(DriveHandle, PoolError),
}

/// A pool as its drives' superblocks tell.
#[derive(Clone, Debug)]
pub struct FoundPool {
    /// The highest generation of all superblocks.
    pub generation: u64,
    /// That of the superblock that counts.
    pub(super) counting: u64,
    /// What it says.
    pub label: PoolLabel,
    /// By place.
    pub members: Vec<FoundMember>,
    /// Why the pool cannot be opened, as far as the superblocks tell.
    pub problem: Option<PoolError>,
    /// Whether a crash came while members were being believed again.
    pub is_half_recovered: bool,
    /// Whether some believed drive has an older superblock than the one that counts, or only one copy of it.
    pub(super) is_uneven: bool,
    /// Drives that the superblock that counts does not know, with who they say they are. They joined if the metadata know
    /// them.
    pub(super) newcomers: Vec<(Uuid, StaleMember)>,
    /// What those are called by themselves.
    pub foreign_drives: Vec<String>,
    /// Drives that are given up, and that the superblock that counts does not know: what they are called by themselves, and
    /// where they lie.
    pub given_up: Vec<(String, String)>,
    without: Without,
}

/// What the administrator does without.
#[derive(Clone, Debug)]
struct Without {
    /// As he said it: names of drives, and where drives lie.
    asked: Vec<String>,
    /// Whether that is every drive that is there.
    is_all: bool,
    /// The places among that at which drives of this pool lie, and whose those are.
    there: Vec<(String, Uuid)>,
}

/// A member of a pool that was found.
#[derive(Clone, Debug)]
pub struct FoundMember {
    /// What the superblock that counts says of it.
    pub member: Member,
    /// Whether it is there, and believed.
    pub standing: Standing,
    /// Its drive, where it is there and believed.
    pub drive: Option<DriveHandle>,
    /// The copy of its superblock that is written first the next time.
    pub(super) next_copy: u64,
    /// Its drive, if it is there and not believed.
    pub(super) stale: Option<StaleMember>,
    /// Whether it is believed again by the administrator's decision, although it was lost.
    pub(super) is_readmitted: bool,
}

/// The drive of a member that is there and not believed: it is stale, rolled back, overwritten, or of a copy of the array.
#[derive(Clone, Debug)]
pub(super) struct StaleMember {
    pub(super) drive: DriveHandle,
    /// Of its own superblock.
    pub(super) generation: u64,
    pub(super) next_copy: u64,
    /// Whether it was served elsewhere, as the start tells that it names: it belongs to a copy of the array.
    pub(super) is_of_a_copy: bool,
}

/// Whether a member is there, and believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is there and serves.
    Present,
    /// It should serve and is not there.
    Missing,
    /// It is known to be lost, and is not there.
    Lost,
    /// It is there but was lost while the pool went on: what it holds is stale and is not used.
    Stale,
    /// It is there and was put back to an older image: the others have gone on since, and it is not used.
    RolledBack,
    /// It is there, and its front was overwritten: what else was is not known, and it is not used.
    Overwritten,
    /// It left the pool.
    Removed,
}

/// A drive with a superblock.
struct Carrier {
    drive: DriveHandle,
    newest: Newest,
}

impl Carrier {
    /// Whether one of these is its name, or where it lies.
    fn is_any_of(&self, drives: &[String]) -> bool {
        drives.contains(own_name(&self.newest.superblock)) || self.lies_at_any_of(drives)
    }

    /// Whether it lies at one of these: names have no slash, and say nothing of places.
    fn lies_at_any_of(&self, drives: &[String]) -> bool {
        drives.iter().any(|one| one.contains('/') && *one == self.drive.info().name)
    }
}

/// Reads who these drives are, and puts the pools together.
pub async fn survey(drives: Vec<DriveHandle>) -> Survey {
    survey_without(drives, &[]).await
}

/// As [`survey`], and gives up what some drives did without the others: they count as missing. They are given by name, which
/// means all that ever had it, or by the path at which one lies.
pub async fn survey_without(drives: Vec<DriveHandle>, without: &[String]) -> Survey {
    let looked = join_all(drives.into_iter().map(|drive| async move {
        let found = superblock::read(&drive).await;
        let found = match found {
            Ok(None) => is_blank(&drive).await.map(Err),
            Ok(Some(newest)) => Ok(Ok(newest)),
            Err(error) => Err(error),
        };
        (drive, found)
    }));
    let mut pools: BTreeMap<Uuid, Vec<Carrier>> = BTreeMap::new();
    let mut others = Vec::new();
    for (drive, found) in looked.await {
        match found {
            Ok(Ok(newest)) => {
                let pool = newest.superblock.label.pool;
                pools.entry(pool).or_default().push(Carrier { drive, newest });
            }
            Ok(Err(true)) => others.push(OtherDrive::Blank(drive)),
            Ok(Err(false)) => others.push(OtherDrive::Foreign(drive)),
            Err(error) => others.push(OtherDrive::Unreadable(drive, error)),
        }
    }
    Survey { pools: pools.into_values().map(|carriers| assemble(carriers, without)).collect(), others }
}

/// Whether what a drive says counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trust {
    /// As that of any other.
    Counts,
    /// It was put back to an older image.
    RolledBack,
    /// What it did by itself is given up, now or at an earlier start.
    LeftOut,
}

/// The labels of a pool's drives, compared.
struct Compared {
    /// The drive whose label counts.
    newest: usize,
    split: Option<PoolError>,
    /// By drive.
    trust: Vec<Trust>,
}

fn compare(carriers: &[Carrier], all: &[&Superblock], without: &[String]) -> Compared {
    let left_out = left_out(carriers, all, without);
    let heeded = left_out.iter().zip(all).filter(|(left_out, _)| !**left_out);
    let heeded: Vec<&Superblock> = heeded.map(|(_, superblock)| *superblock).collect();
    let trust_of = |(left_out, superblock): (&bool, &&Superblock)| match left_out {
        true => Trust::LeftOut,
        false if lineage::is_rolled_back(superblock, &heeded) => Trust::RolledBack,
        false => Trust::Counts,
    };
    let mut trust: Vec<Trust> = left_out.iter().zip(all).map(trust_of).collect();
    if !trust.contains(&Trust::Counts) {
        // Where no drive counts, there is none for which the others could be left out.
        trust.fill(Trust::Counts);
    }
    let counts = |(number, _): &(usize, &Superblock)| trust[*number] == Trust::Counts;
    let compared: Vec<(usize, &Superblock)> = all.iter().copied().enumerate().filter(counts).collect();
    let (newest, split) = match lineage::choose(&compared) {
        Choice::One(newest) => (newest, None),
        Choice::Split(one, other) => (one[0], Some(split(carriers, &one, &other))),
    };
    Compared { newest, split, trust }
}

/// Which drives are left out: those that the administrator gives up now, and those that were given up, as one says that is
/// not left out itself. The one with the highest generation has the last word.
fn left_out(carriers: &[Carrier], all: &[&Superblock], without: &[String]) -> Vec<bool> {
    let mut left_out: Vec<bool> = carriers.iter().map(|carrier| carrier.is_any_of(without)).collect();
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by_key(|number| std::cmp::Reverse(all[*number].generation));
    for number in order {
        let mut heeded = all.iter().zip(&left_out).filter(|(_, left_out)| !**left_out);
        if !left_out[number] && heeded.any(|(other, _)| gives_up(other, all[number])) {
            left_out[number] = true;
        }
    }
    left_out
}

/// Puts a pool together.
fn assemble(carriers: Vec<Carrier>, without: &[String]) -> FoundPool {
    let all: Vec<&Superblock> = carriers.iter().map(|carrier| &carrier.newest.superblock).collect();
    let Compared { newest, split, trust } = compare(&carriers, &all, without);
    let mut label = all[newest].label.clone();
    // Above all generations that were begun.
    let generation = all.iter().map(|superblock| superblock.generation).max().unwrap_or_default();
    // A member that is there twice is of two arrays, of which one has to go.
    let problem = twice(&carriers).or(split);
    let (counting, counts) = (all[newest].generation, all[newest].clone());
    let (mut is_uneven, mut shrunk) = (counting != generation, None);
    for (superblock, _) in all.iter().zip(&trust).filter(|(_, trust)| **trust == Trust::LeftOut) {
        let given_up = GivenUp::of(superblock);
        is_uneven |= label.given_up.insert(superblock.member, given_up) != Some(given_up);
    }
    let is_all = carriers.iter().all(|carrier| carrier.is_any_of(without));
    let there = carriers.iter().filter(|carrier| carrier.lies_at_any_of(without));
    let there =
        there.map(|carrier| (carrier.drive.info().name.clone(), carrier.newest.superblock.member)).collect();
    // Members that were being believed again when a crash came: what they hold is no newer for that.
    let half: BTreeMap<u32, u64> = label
        .lost_in
        .iter()
        .filter(|(place, _)| label.members[**place as usize].is_active())
        .map(|(place, lost_in)| (*place, *lost_in))
        .collect();
    let mut members: Vec<FoundMember> = label.members.iter().map(FoundMember::absent).collect();
    let (mut newcomers, mut foreign_drives, mut given_up) = (Vec::new(), Vec::new(), Vec::new());
    for (carrier, trust) in carriers.into_iter().zip(trust) {
        let own = &carrier.newest.superblock;
        let stale = || StaleMember {
            drive: carrier.drive.clone(),
            generation: own.generation,
            next_copy: carrier.newest.next_copy(),
            is_of_a_copy: lineage::is_of_a_copy(own, &counts),
        };
        let Some(place) = label.members.iter().position(|member| member.id == own.member) else {
            foreign_drives.push(own_name(own).clone());
            match trust {
                Trust::LeftOut => given_up.push((own_name(own).clone(), carrier.drive.info().name.clone())),
                // It was added, and mostly the crash came before another drive knew: it holds nothing then.
                Trust::Counts | Trust::RolledBack => newcomers.push((own.member, stale())),
            }
            continue;
        };
        let found = &mut members[place];
        if planted(PlantedBug::BelieveStaleDrive) && found.member.state == MemberState::Lost {
            found.member.state = MemberState::Active;
        }
        if found.member.state == MemberState::Lost {
            found.standing = Standing::Stale;
            // What is left out is not there for the last resort either.
            found.stale = (trust != Trust::LeftOut).then(stale);
        } else if found.member.is_active() && trust == Trust::RolledBack {
            found.standing = Standing::RolledBack;
            found.stale = Some(stale());
        } else if found.member.is_active() && carrier.newest.is_front_lost() {
            found.standing = Standing::Overwritten;
            found.stale = Some(stale());
        } else if found.member.is_active() && trust == Trust::LeftOut {
            found.standing = Standing::Missing;
        } else if found.member.is_active() {
            let (drive, sectors) = (carrier.drive.info().name.clone(), carrier.drive.info().sectors.0);
            if sectors < found.member.sectors {
                // A drive whose end is gone has failed: the others go on without it, as if it were missing.
                let before = found.member.sectors;
                tracing::warn!(drive, sectors, before, "the drive has shrunk");
                shrunk = Some(PoolError::Shrunk { drive, sectors, before });
                continue;
            }
            is_uneven |= carrier.newest.is_alone;
            is_uneven |= own.generation != generation || own.label != label;
            if let Some(lost_in) = half.get(&(place as u32)) {
                is_uneven = true;
                let (standing, stale) = match *lost_in {
                    NEVER_LOST => (Standing::RolledBack, StaleMember { generation: 0, ..stale() }),
                    _ => (Standing::Stale, stale()),
                };
                (found.standing, found.stale) = (standing, Some(stale));
                continue;
            }
            found.standing = Standing::Present;
            found.next_copy = carrier.newest.next_copy();
            found.drive = Some(carrier.drive);
        }
    }
    for (place, _) in half.iter().filter(|(_, lost_in)| **lost_in != NEVER_LOST) {
        label.members[*place as usize].state = MemberState::Lost;
        label.carriers.retain(|carrier| carrier != place);
        members[*place as usize].member.state = MemberState::Lost;
    }
    let is_half_recovered = !half.is_empty();
    let mut found = FoundPool {
        generation,
        counting,
        label,
        members,
        problem,
        is_uneven,
        is_half_recovered,
        newcomers,
        foreign_drives,
        given_up,
        without: Without { asked: without.to_vec(), is_all, there },
    };
    // Where it could not be done without, that it has shrunk says more than that it is missing.
    let quorum = found.quorum_problem().map(|problem| shrunk.unwrap_or(problem));
    found.problem = found.problem.take().or(quorum);
    found
}

impl FoundMember {
    /// A member whose drive is not there, as far as one knows.
    fn absent(member: &Member) -> FoundMember {
        let standing = match member.state {
            MemberState::Active => Standing::Missing,
            MemberState::Lost => Standing::Lost,
            MemberState::Removed => Standing::Removed,
        };
        FoundMember {
            member: member.clone(),
            standing,
            drive: None,
            next_copy: 0,
            stale: None,
            is_readmitted: false,
        }
    }
}

/// The split of a pool, with both histories.
fn split(carriers: &[Carrier], one: &[usize], other: &[usize]) -> PoolError {
    let history = |group: &[usize]| {
        let drives = group.iter().map(|number| own_name(&carriers[*number].newest.superblock).clone());
        let Superblock { generation, label, .. } = &carriers[group[0]].newest.superblock;
        let lost = label.members.iter().filter(|member| member.state == MemberState::Lost);
        let without = lost.map(|member| member.name.clone()).collect();
        let places = group.iter().map(|number| carriers[*number].drive.info().name.clone()).collect();
        Box::new(History { drives: drives.collect(), places, generation: *generation, without })
    };
    let pool = carriers[one[0]].newest.superblock.label.name.clone();
    PoolError::Split { pool, one: history(one), other: history(other) }
}

/// What a drive is called in its array, by its own superblock.
fn own_name(superblock: &Superblock) -> &String {
    let members = &superblock.label.members;
    let own = members.iter().find(|member| member.id == superblock.member);
    own.map_or(&superblock.label.name, |member| &member.name)
}

/// Whether another drive's label says that what this one did by itself does not count.
fn gives_up(other: &Superblock, own: &Superblock) -> bool {
    other.member != own.member
        && other.label.given_up.get(&own.member).is_some_and(|given_up| given_up.covers(own))
}

fn twice(carriers: &[Carrier]) -> Option<PoolError> {
    carriers.iter().enumerate().find_map(|(number, carrier)| {
        let same = |other: &&Carrier| other.newest.superblock.member == carrier.newest.superblock.member;
        let first = carriers[..number].iter().find(same)?;
        Some(PoolError::Twice {
            first: first.drive.info().name.clone(),
            second: carrier.drive.info().name.clone(),
        })
    })
}

impl FoundPool {
    /// Takes in the members that the metadata know beside those of the superblock that counts: a drive has lost its newest
    /// superblock, and so the last one that all have is older than the metadata.
    pub(super) fn take_in(&mut self, known: &[Member]) {
        for member in known.iter().skip(self.members.len()) {
            self.is_uneven = true;
            let mut found = FoundMember::absent(member);
            let own = self.newcomers.iter().position(|(id, _)| *id == member.id);
            if let (Some(number), MemberState::Active) = (own, member.state) {
                let (_, newcomer) = self.newcomers.remove(number);
                found.standing = Standing::Present;
                found.next_copy = newcomer.next_copy;
                found.drive = Some(newcomer.drive);
            }
            self.label.members.push(member.clone());
            self.members.push(found);
        }
    }

    /// Whether the administrator does without a member.
    pub fn is_done_without(&self, member: &Member) -> bool {
        self.without.asked.contains(&member.name) || self.without.there.iter().any(|(_, id)| *id == member.id)
    }

    /// Whether the administrator would do without every drive that is there.
    pub fn is_nothing_left(&self) -> bool {
        self.without.is_all
    }

    /// The places among those given to do without at which drives of this pool lie.
    pub fn places_done_without(&self) -> impl Iterator<Item = &String> {
        self.without.there.iter().map(|(place, _)| place)
    }

    /// The members of a standing: place and member.
    pub fn standing(&self, standing: Standing) -> impl Iterator<Item = (u32, &Member)> {
        let all = (0u32..).zip(&self.members);
        all.filter(move |(_, found)| found.standing == standing).map(|(place, found)| (place, &found.member))
    }

    /// Where those of its drives lie that are there, believed or not.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        let stale = |found| Option::as_ref(found).map(|stale: &StaleMember| &stale.drive);
        let drives =
            self.members.iter().filter_map(move |found| found.drive.as_ref().or(stale(&found.stale)));
        drives.map(|drive| drive.info().name.as_str())
    }

    /// Drives that are there in a standing in which they are not used: the member, where it lies, and the generation of its own
    /// superblock.
    pub fn stale_members(&self, standing: Standing) -> impl Iterator<Item = (&Member, &str, u64)> {
        let found = self.members.iter().filter(move |found| found.standing == standing);
        found.filter_map(|found| {
            let stale = found.stale.as_ref()?;
            Some((&found.member, stale.drive.info().name.as_str(), stale.generation))
        })
    }

    /// What an administrator should know of the members, a sentence each.
    pub fn notes(&self) -> Vec<String> {
        let pool = &self.label.name;
        let note = |found: &FoundMember| {
            let name = &found.member.name;
            let serves_anew =
                |other: &FoundMember| other.standing == Standing::Present && other.member.name == *name;
            match found.standing {
                Standing::Present | Standing::Removed => None,
                // It has joined again since.
                Standing::Lost | Standing::Stale if self.members.iter().any(serves_anew) => None,
                Standing::Missing => Some(format!(
                    "drive {name:?} of pool {pool:?} is missing; the pool starts without it and will treat \
                     it as stale"
                )),
                Standing::Lost => Some(format!("drive {name:?} of pool {pool:?} is lost; replace it")),
                Standing::RolledBack => Some(format!(
                    "drive {name:?} of pool {pool:?} was restored to an older state; it is stale, and is not \
                     used"
                )),
                Standing::Overwritten => Some(format!(
                    "the start of drive {name:?} of pool {pool:?} was overwritten; it counts as lost, and is \
                     not used"
                )),
                Standing::Stale => {
                    Some(format!("drive {name:?} was lost to pool {pool:?} and is stale; it is not used"))
                }
            }
        };
        self.members.iter().filter_map(note).collect()
    }

    /// A member must be there, and one with the metadata. Whether those that are missing may have gone on by themselves
    /// is for who knows the sets.
    pub(super) fn quorum_problem(&self) -> Option<PoolError> {
        let present = self.standing(Standing::Present).count();
        let lacking = || {
            self.standing(Standing::Missing)
                .chain(self.standing(Standing::Overwritten))
                .map(|(_, member)| &member.name)
        };
        let active = present + lacking().count();
        let pool = self.label.name.clone();
        if present == 0 {
            let missing = names(lacking());
            return Some(PoolError::NoQuorum { pool, active, present, missing });
        }
        let carries = |place: &u32| self.members[*place as usize].standing == Standing::Present;
        if !self.label.carriers.iter().any(carries) {
            let carriers = self.label.carriers.iter().map(|place| &self.label.members[*place as usize].name);
            return Some(PoolError::NoCarrier { pool, carriers: names(carriers) });
        }
        None
    }
}

#[cfg(test)]
#[path = "histories.rs"]
mod histories;
