//! Looking at drives: which pools they belong to, and which of them are to be believed. Nothing is written.
//!
//! The superblock with the highest generation says who serves. A drive that was away and is not called lost by it only
//! missed generations that nothing was acknowledged on, and is believed.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use tier0_drive::DriveHandle;
use tier0_world::{PlantedBug, planted};
use uuid::Uuid;

use super::superblock::{self, Newest, PoolLabel};
use crate::blank::is_blank;
use crate::state::MemberState;
use crate::{Member, PoolError};

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
    /// Nothing at all: its first 16 MiB are zeros.
    Blank(DriveHandle),
    /// It holds something that is not tier0's.
    Foreign(DriveHandle),
    /// It fails, is damaged, or has a format that is not read.
    Unreadable(DriveHandle, PoolError),
}

/// A pool as its drives' superblocks tell.
#[derive(Debug)]
pub struct FoundPool {
    /// The generation of the superblock that counts.
    pub generation: u64,
    /// What it says.
    pub label: PoolLabel,
    /// By place.
    pub members: Vec<FoundMember>,
    /// Why the pool cannot be opened, as far as the superblocks tell.
    pub problem: Option<PoolError>,
    /// Whether some believed drive has an older superblock than the one that counts, or only one copy of it.
    pub(super) is_uneven: bool,
}

/// A member of a pool that was found.
#[derive(Debug)]
pub struct FoundMember {
    /// What the superblock that counts says of it.
    pub member: Member,
    /// Whether it is there, and believed.
    pub standing: Standing,
    /// Its drive, where it is there and believed.
    pub drive: Option<DriveHandle>,
    /// The copy of its superblock that is written first the next time.
    pub(super) next_copy: u64,
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
    /// It left the pool.
    Removed,
}

/// A drive with a superblock.
struct Carrier {
    drive: DriveHandle,
    newest: Newest,
}

/// Reads who these drives are, and puts the pools together.
pub async fn survey(drives: Vec<DriveHandle>) -> Survey {
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
    Survey { pools: pools.into_values().map(assemble).collect(), others }
}

/// Puts a pool together.
fn assemble(carriers: Vec<Carrier>) -> FoundPool {
    let (newest, split) = choose(&carriers);
    let superblock = carriers[newest].newest.superblock.clone();
    let (generation, label) = (superblock.generation, superblock.label);
    let problem = split.or_else(|| twice(&carriers));
    let (mut is_uneven, mut shrunk) = (false, None);
    let mut members: Vec<FoundMember> = label.members.iter().map(absent).collect();
    for carrier in carriers {
        let own = &carrier.newest.superblock;
        let Some(place) = label.members.iter().position(|member| member.id == own.member) else {
            // It was added, and the crash came before anybody else knew: it holds nothing.
            continue;
        };
        let found = &mut members[place];
        if planted(PlantedBug::BelieveStaleDrive) && found.member.state == MemberState::Lost {
            found.member.state = MemberState::Active;
        }
        if found.member.state == MemberState::Lost {
            found.standing = Standing::Stale;
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
            found.standing = Standing::Present;
            found.next_copy = 1 - carrier.newest.copy;
            found.drive = Some(carrier.drive);
        }
    }
    let mut found = FoundPool { generation, label, members, problem, is_uneven };
    // Where it could not be done without, that it has shrunk says more than that it is missing.
    let quorum = found.quorum_problem().map(|problem| shrunk.unwrap_or(problem));
    found.problem = found.problem.take().or(quorum);
    found
}

fn absent(member: &Member) -> FoundMember {
    let standing = match member.state {
        MemberState::Active => Standing::Missing,
        MemberState::Lost => Standing::Lost,
        MemberState::Removed => Standing::Removed,
    };
    FoundMember { member: member.clone(), standing, drive: None, next_copy: 0 }
}

/// The carrier whose superblock counts: the highest generation. Where that generation says different things, two
/// openings reached it: one was interrupted while it wrote, and nothing was acknowledged on it, or the pool went on in
/// two halves, which is a problem.
fn choose(carriers: &[Carrier]) -> (usize, Option<PoolError>) {
    let generation = |carrier: &Carrier| carrier.newest.superblock.generation;
    let highest = carriers.iter().map(generation).max().expect("a pool was found on a drive");
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (number, carrier) in carriers.iter().enumerate().filter(|(_, c)| generation(c) == highest) {
        let label = &carrier.newest.superblock.label;
        match groups.iter_mut().find(|group| carriers[group[0]].newest.superblock.label == *label) {
            Some(group) => group.push(number),
            None => groups.push(vec![number]),
        }
    }
    // Complete: everybody who is there and whom the label calls active has it.
    let is_complete = |group: &Vec<usize>| {
        let label = &carriers[group[0]].newest.superblock.label;
        let serves = |id: Uuid| label.members.iter().any(|member| member.id == id && member.is_active());
        let all = carriers.iter().enumerate();
        let mut expected = all.filter(|(_, carrier)| serves(carrier.newest.superblock.member));
        expected.all(|(number, _)| group.contains(&number))
    };
    let complete: Vec<&Vec<usize>> = groups.iter().filter(|group| is_complete(group)).collect();
    if let [one, other, ..] = complete[..] {
        let names = |group: &[usize]| names(group.iter().map(|number| &carriers[*number].drive.info().name));
        let pool = carriers[one[0]].newest.superblock.label.name.clone();
        return (one[0], Some(PoolError::Split { pool, one: names(one), other: names(other) }));
    }
    let chosen = complete.first().copied().unwrap_or_else(|| {
        let largest = groups.iter().rev().max_by_key(|group| group.len());
        largest.expect("somebody has the highest generation")
    });
    (chosen[0], None)
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

/// Names in a sentence.
pub(super) fn names<'a>(names: impl Iterator<Item = &'a String>) -> String {
    let quoted: Vec<String> = names.map(|name| format!("{name:?}")).collect();
    quoted.join(", ")
}

impl FoundPool {
    /// The members of a standing: place and member.
    pub fn standing(&self, standing: Standing) -> impl Iterator<Item = (u32, &Member)> {
        let all = (0u32..).zip(&self.members);
        all.filter(move |(_, found)| found.standing == standing).map(|(place, found)| (place, &found.member))
    }

    /// What an administrator should know of the members, a sentence each.
    pub fn notes(&self) -> Vec<String> {
        let pool = &self.label.name;
        let note = |found: &FoundMember| {
            let name = &found.member.name;
            match found.standing {
                Standing::Present | Standing::Removed => None,
                Standing::Missing => Some(format!(
                    "drive {name:?} of pool {pool:?} is missing; the pool goes on without it and will not believe it again"
                )),
                Standing::Lost => Some(format!("drive {name:?} of pool {pool:?} is lost; replace it")),
                Standing::Stale => Some(format!(
                    "drive {name:?} was lost to pool {pool:?} and what it holds is stale; it is not used"
                )),
            }
        };
        self.members.iter().filter_map(note).collect()
    }

    /// Enough of the members must be there: half of those that serve, so that no other half can have gone on without
    /// them unseen, and one with the metadata.
    fn quorum_problem(&self) -> Option<PoolError> {
        let present = self.standing(Standing::Present).count();
        let active = present + self.standing(Standing::Missing).count();
        let pool = self.label.name.clone();
        if present == 0 || present * 2 < active {
            let missing = names(self.standing(Standing::Missing).map(|(_, member)| &member.name));
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
