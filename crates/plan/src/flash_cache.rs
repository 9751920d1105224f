//! Where the flash read cache of a pool that is there lies, when its size or its drives change. That of a new pool is placed
//! with the rest of it ([`NewPool`](crate::NewPool)).

use tier0_pool::{DriveClass, FlashCacheDevice, FlashCachePlacement, Member, PoolState};
use tier0_units::{ByteCount, SECTOR_BYTES};
use uuid::Uuid;

/// Where a flash cache of this size lies, zero for none, equal parts on each of `drives`; where none are named on those that
/// have it, or on all flash drives. What is there stays, as far as it is wanted; `id` makes identities of new parts.
///
/// # Errors
/// Why it cannot lie so, and what to do.
pub fn plan_flash_cache(
    state: &PoolState,
    bytes: ByteCount,
    drives: Option<&[String]>,
    mut id: impl FnMut() -> Uuid,
) -> Result<FlashCachePlacement, String> {
    let members = match drives {
        _ if bytes.0 == 0 => Vec::new(),
        Some(names) => {
            let different: std::collections::BTreeSet<&String> = names.iter().collect();
            if different.len() < names.len() {
                return Err("a drive is named twice; name each drive once".to_owned());
            }
            names.iter().map(|name| flash_member(state, name)).collect::<Result<_, _>>()?
        }
        None if !state.flash_cache().devices.is_empty() => {
            state.flash_cache().devices.iter().map(|device| device.member).collect()
        }
        None => {
            let is_flash =
                |(_, member): &(u32, &Member)| member.takes_more() && member.class == DriveClass::Flash;
            state.members_by_place().filter(is_flash).map(|(place, _)| place).collect()
        }
    };
    if members.is_empty() && bytes.0 > 0 {
        return Err("the pool has no flash drive online; add one (tier0 drive add --class flash)".to_owned());
    }
    let chunklet = state.geometry().chunklet_sectors * SECTOR_BYTES;
    let wanted = bytes.0.div_ceil(members.len().max(1) as u64).div_ceil(chunklet);
    let mut placement = FlashCachePlacement::default();
    for member in members {
        let there = state.flash_cache().on(member);
        let mut left = wanted;
        let mut chunklets = Vec::new();
        for run in there.into_iter().flat_map(|device| device.chunklets.iter().cloned()) {
            let end = run.start + u64::from(run.end - run.start).min(left) as u32;
            left -= u64::from(end - run.start);
            chunklets.push(run.start..end);
        }
        chunklets.retain(|run| !run.is_empty());
        // What is kept free for rebuilds is at the end.
        let keeps_spares = state.has_columns(member) && state.is_for_data(member);
        let mut spares = if keeps_spares { state.spares_of(member) } else { 0 };
        let mut free = state.free_runs(member);
        for run in free.iter_mut().rev() {
            let kept = u64::from(run.end - run.start).min(spares);
            spares -= kept;
            run.end -= kept as u32;
        }
        for run in free {
            let end = run.start + u64::from(run.end - run.start).min(left) as u32;
            left -= u64::from(end - run.start);
            match chunklets.last_mut() {
                Some(last) if last.end == run.start => last.end = end,
                _ if end > run.start => chunklets.push(run.start..end),
                _ => {}
            }
        }
        if left > 0 {
            let name = state.member(member).map_or("", |member| member.name.as_str());
            return Err(format!(
                "drive {name:?} lacks {:#} for its part of {:#}; choose a smaller size, or name other drives (--drives)",
                ByteCount(left.saturating_mul(chunklet)),
                ByteCount(wanted.saturating_mul(chunklet))
            ));
        }
        placement = placement.with(match there {
            Some(device) => FlashCacheDevice { chunklets, ..device.clone() },
            None => FlashCacheDevice { id: id(), member, epoch: 1, chunklets },
        });
    }
    Ok(placement)
}

/// The flash drive of this name.
fn flash_member(state: &PoolState, name: &str) -> Result<u32, String> {
    let known = state.members_by_place().find(|(_, member)| member.name == name && member.takes_more());
    let Some((place, member)) = known else {
        return Err(format!(
            "the pool has no drive {name:?} that is online and not being removed; \"tier0 status\" lists its drives"
        ));
    };
    if member.class != DriveClass::Flash {
        return Err(format!(
            "drive {name:?} is a disk, which does not speed up reads; name a flash drive (tier0 drive add \
             --class flash)"
        ));
    }
    Ok(place)
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use tier0_description::Description;
    use tier0_pool::{MemberState, MetaRecord};

    use super::*;
    use crate::{Lanes, NewPool, PoolDrives};

    const MIB_SECTORS: u64 = 2048;

    /// Two disks with data and two flash drives, all of 256 MiB, chunklets of 8 MiB, the log on the flash drives.
    fn pool() -> PoolState {
        let text = "[array]\nname = \"a\"\n\
            [[drive]]\nname = \"d{n}\"\ncount = 2\nram = \"256MiB\"\nclass = \"disk\"\n\
            [[drive]]\nname = \"ssd{n}\"\ncount = 2\nram = \"256MiB\"\nclass = \"flash\"\n\
            [[pool]]\nname = \"p\"\ndrives = [\"d*\"]\nraid = \"raid1\"\nset_size = 2\nchunklet = \"8MiB\"\n\
            log = \"16MiB\"\nlog_drives = [\"ssd*\"]\n";
        let description = Description::parse(text, "a test").expect("it is right");
        let pool = &description.pools[0];
        let PoolDrives { all, log, flash_cache } = PoolDrives::of(pool);
        let mut number = 0;
        let mut id = || {
            number += 1;
            Uuid::from_u64_pair(0, number)
        };
        let member = |place: &usize| Member {
            id: Uuid::from_u64_pair(1, *place as u64),
            name: description.drives[*place].name.clone(),
            sectors: 256 * MIB_SECTORS,
            class: if *place < 2 { DriveClass::Disk } else { DriveClass::Flash },
            state: MemberState::Active,
            leaving: false,
            role: Default::default(),
            group: 0,
            path: String::new(),
        };
        let new = NewPool {
            array: "a",
            description: pool,
            volumes: Vec::new(),
            members: all.iter().map(member).collect(),
            log_members: log,
            flash_cache_members: flash_cache,
            shards: 1,
            lanes: Lanes::PerGroup,
        };
        new.state(&mut id).expect("there is room")
    }

    fn plan(state: &PoolState, mib: u64, drives: Option<&[&str]>) -> Result<FlashCachePlacement, String> {
        let names: Option<Vec<String>> =
            drives.map(|drives| drives.iter().map(ToString::to_string).collect());
        plan_flash_cache(state, ByteCount::mib(mib), names.as_deref(), || Uuid::from_u64_pair(2, 2))
    }

    fn sized(state: &mut PoolState, placement: &FlashCachePlacement) {
        state.apply_all(&[MetaRecord::FlashCachePlaced(placement.clone())]).expect("it can lie so");
    }

    fn runs(placement: &FlashCachePlacement, member: u32) -> &[Range<u32>] {
        &placement.on(member).expect("it holds some").chunklets
    }

    #[test]
    fn it_lies_on_all_flash_drives_in_equal_parts_of_whole_chunklets() {
        let state = pool();
        let placed = plan(&state, 33, None).expect("there is room");
        assert_eq!(placed.devices.iter().map(|device| device.member).collect::<Vec<_>>(), [2, 3]);
        for member in [2, 3] {
            // 16.5 MiB are three chunklets, behind those of the log.
            let first = state.free_runs(member)[0].start;
            assert_eq!(runs(&placed, member), [first..first + 3]);
        }
        assert!(plan(&state, 0, None).expect("none is little").devices.is_empty());
    }

    #[test]
    fn what_is_there_stays_when_it_grows_and_shrinks() {
        let mut state = pool();
        let small = plan(&state, 16, Some(&["ssd1"])).expect("there is room");
        sized(&mut state, &small);
        let large = plan(&state, 64, None).expect("there is room");
        let first = runs(&small, 3)[0].start;
        // Where no drives are named, it stays where it is.
        assert_eq!((large.devices.len(), runs(&large, 3)), (1, &[first..first + 8][..]));
        assert_eq!(large.on(3).map(|device| device.id), small.on(3).map(|device| device.id));
        sized(&mut state, &large);
        assert_eq!(plan(&state, 16, None), Ok(small));
        let moved = plan(&state, 16, Some(&["ssd0"])).expect("there is room");
        assert!(moved.on(3).is_none() && moved.on(2).is_some());
    }

    #[test]
    fn what_cannot_be_names_the_drive_and_the_remedy() {
        let state = pool();
        for (mib, drives, words) in [
            (16, Some(&["d0"][..]), "drive \"d0\" is a disk"),
            (16, Some(&["ssd0", "ssd0"]), "named twice"),
            (16, Some(&["ssd7"]), "no drive \"ssd7\""),
            (4096, None, "lacks"),
        ] {
            let error = plan(&state, mib, drives).expect_err(words);
            assert!(error.contains(words) && error.contains(';'), "{error}");
        }
    }
}
