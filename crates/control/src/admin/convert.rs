//! The engine's types as the contract has them, and the other way round.
//!
//! Every conversion takes a value apart field by field, so a field that comes to the engine or to the contract does not
//! compile until somebody has decided what becomes of it.

use tier0_api as api;
use tier0_api::event::SpaceLevel;
use tier0_cache::{FlushCounts, Flushed, Flushing, ReadCacheStatus};
use tier0_description::facts;
use tier0_flash_cache::FlashCacheStatus;
use tier0_pool::{CacheSwitches, Ceilings, DriveClass, Place, PoolState, Reserve, SpaceRules, SpaceWarning};

use crate::stats::PoolStats;

/// The class of a drive.
pub fn drive_class(class: DriveClass) -> api::DriveClass {
    match class {
        DriveClass::Flash => api::DriveClass::Flash,
        DriveClass::Disk => api::DriveClass::Disk,
        DriveClass::Ram => api::DriveClass::Ram,
    }
}

/// The same in the engine's words.
pub fn drive_class_of(class: api::DriveClass) -> DriveClass {
    match class {
        api::DriveClass::Flash => DriveClass::Flash,
        api::DriveClass::Disk => DriveClass::Disk,
        api::DriveClass::Ram => DriveClass::Ram,
    }
}

/// What thin volumes do not get.
pub fn reserve(reserve: Reserve) -> api::Reserve {
    match reserve {
        Reserve::Percent(percent) => api::Reserve::Percent(percent),
        Reserve::Bytes(bytes) => api::Reserve::Bytes(bytes),
    }
}

/// Where a volume is to lie.
pub fn volume_place(place: Place) -> api::VolumePlace {
    match place {
        Place::Home => api::VolumePlace::Slow,
        Place::Auto => api::VolumePlace::Auto,
        Place::Fast => api::VolumePlace::Fast,
    }
}

/// The same in the engine's words.
pub fn place_of(place: api::VolumePlace) -> Place {
    match place {
        api::VolumePlace::Slow => Place::Home,
        api::VolumePlace::Auto => Place::Auto,
        api::VolumePlace::Fast => Place::Fast,
    }
}

/// The same in the engine's words.
pub fn reserve_of(reserve: api::Reserve) -> Reserve {
    match reserve {
        api::Reserve::Percent(percent) => Reserve::Percent(percent),
        api::Reserve::Bytes(bytes) => Reserve::Bytes(bytes),
    }
}

/// How full a pool is, or a group of its sets.
pub(crate) fn space_level(warning: &SpaceWarning) -> SpaceLevel {
    match *warning {
        SpaceWarning::Full => SpaceLevel::Full,
        SpaceWarning::AtReserve { free, reserve } => SpaceLevel::AtReserve { free, reserve },
        SpaceWarning::Filling { percent, taken, usable, at: _ } => {
            SpaceLevel::Filling { percent, taken, usable }
        }
        SpaceWarning::Overcommitted { promised, usable } => SpaceLevel::Overcommitted { promised, usable },
    }
}

/// The switches over the caches of a pool.
/// The ceilings of a volume; none where it has none.
pub fn ceilings(ceilings: Ceilings) -> Option<api::Ceilings> {
    let Ceilings { iops_max, mbps_max, burst_seconds } = ceilings;
    let [iops_max, mbps_max] = [iops_max, mbps_max].map(|most| (most > 0).then_some(most));
    (!ceilings.are_none()).then_some(api::Ceilings { iops_max, mbps_max, burst_seconds })
}

/// The same as half a sentence.
pub(crate) fn ceilings_told(known: Ceilings) -> String {
    ceilings(known).map_or_else(|| "no ceilings".to_owned(), |ceilings| format!("at most {ceilings}"))
}

fn ceilings_of(api::Ceilings { iops_max, mbps_max, burst_seconds }: api::Ceilings) -> Ceilings {
    Ceilings { iops_max: iops_max.unwrap_or(0), mbps_max: mbps_max.unwrap_or(0), burst_seconds }
}

pub(crate) fn cache_switches(CacheSwitches { read, write }: CacheSwitches) -> api::CacheSwitches {
    api::CacheSwitches { read, write }
}

/// How full a write cache is, and what was destaged why.
pub(crate) fn flushing(flushing: Flushing) -> api::Flushing {
    let Flushing { memory_utilisation, log_utilisation, watermark_low, watermark_high, counts } = flushing;
    let FlushCounts { idle, high_watermark, forced, demanded, delayed_writes, delayed_ns } = counts;
    let flushed = |Flushed { pages, batches }| api::Flushed { pages, batches };
    let counts = api::FlushCounts {
        idle: flushed(idle),
        high_watermark: flushed(high_watermark),
        forced: flushed(forced),
        demanded: flushed(demanded),
        delayed_writes,
        delayed_ns,
    };
    api::Flushing { memory_utilisation, log_utilisation, watermark_low, watermark_high, counts }
}

/// What the read cache in memory has done.
pub(crate) fn read_cache_status(status: ReadCacheStatus) -> api::ReadCacheStatus {
    let ReadCacheStatus {
        read_hits,
        write_hits,
        prefetch_hits,
        misses,
        bypassed,
        inserted,
        prefetched,
        evicted,
        bytes,
        room_bytes,
    } = status;
    api::ReadCacheStatus {
        read_hits,
        write_hits,
        prefetch_hits,
        misses,
        bypassed,
        inserted,
        prefetched,
        evicted,
        bytes,
        room_bytes,
    }
}

/// What the flash cache of a pool has done; none if the pool has no flash cache.
pub(crate) fn flash_cache(state: &PoolState, stats: &PoolStats) -> Option<api::FlashCacheStatus> {
    stats.flash_cache.filter(|_| !state.flash_cache().devices.is_empty()).map(flash_cache_status)
}

/// What the read cache on flash has done.
fn flash_cache_status(status: FlashCacheStatus) -> api::FlashCacheStatus {
    let FlashCacheStatus {
        hits,
        misses,
        read_errors,
        slow_reads,
        offered,
        admitted,
        refused_budget,
        dropped_queue,
        written_bytes,
        evicted,
        struck,
        bytes,
        room_bytes,
        unused_bytes,
        memory_bytes,
        devices,
        devices_paused,
        devices_off,
        loaded_lines,
    } = status;
    api::FlashCacheStatus {
        hits,
        misses,
        read_errors,
        slow_reads,
        offered,
        admitted,
        refused_budget,
        dropped_queue,
        written_bytes,
        evicted,
        struck,
        bytes,
        room_bytes,
        unused_bytes,
        memory_bytes,
        devices,
        devices_paused,
        devices_off,
        loaded_lines,
    }
}

/// What a pool consists of.
pub(crate) fn described(one: facts::PoolFacts) -> api::PoolFacts {
    let group = |one: facts::GroupFacts| {
        let facts::GroupFacts {
            name,
            raid,
            set_size,
            groups,
            stripe_unit_bytes,
            spare_chunklets,
            chunklets_min,
            leaving,
        } = one;
        api::GroupFacts {
            name,
            raid,
            set_size,
            groups,
            stripe_unit_bytes,
            spare_chunklets,
            chunklets_min,
            leaving,
        }
    };
    let drive = |one: facts::DriveFacts| {
        let facts::DriveFacts {
            name,
            id,
            path,
            moved_from,
            deleted,
            replaced,
            cut_short,
            class,
            size_bytes,
            state,
            leaving,
            for_data,
            for_log,
            flash_cache_bytes,
            group,
        } = one;
        api::DriveFacts {
            name,
            id,
            path,
            moved_from,
            deleted,
            replaced,
            cut_short,
            class: class.map(drive_class),
            size_bytes,
            state: drive_state(state),
            leaving,
            for_data,
            for_log,
            flash_cache_bytes,
            group,
        }
    };
    let volume = |one: facts::VolumeFacts| {
        let facts::VolumeFacts {
            name,
            size_bytes,
            thin,
            write_cache,
            read_cache,
            place,
            group,
            ceilings: limits,
            weight,
        } = one;
        let (place, ceilings) = (volume_place(place), ceilings(limits));
        api::VolumeFacts { name, size_bytes, thin, write_cache, read_cache, place, group, ceilings, weight }
    };
    let facts::PoolFacts {
        name,
        raid,
        set_size,
        groups,
        stripe_unit_bytes,
        chunklet_bytes,
        extent_bytes,
        spare_chunklets,
        chunklets_min,
        checksums,
        log_bytes,
        log_parts,
        set_groups,
        gone_groups,
        drives,
        volumes,
        cache,
        space,
    } = one;
    api::PoolFacts {
        name,
        raid,
        set_size,
        groups,
        stripe_unit_bytes,
        chunklet_bytes,
        extent_bytes,
        spare_chunklets,
        chunklets_min,
        checksums,
        log_bytes,
        log_parts,
        set_groups: set_groups.into_iter().map(group).collect(),
        gone_groups: gone_groups.into_iter().map(group).collect(),
        drives: drives.into_iter().map(drive).collect(),
        volumes: volumes.into_iter().map(volume).collect(),
        cache: cache_switches(cache),
        space: space
            .map(|SpaceRules { warn_at, reserve: kept }| api::SpaceFacts { warn_at, reserve: reserve(kept) }),
    }
}

fn drive_state(state: facts::DriveState) -> api::DriveState {
    match state {
        facts::DriveState::Active => api::DriveState::Active,
        facts::DriveState::Lost => api::DriveState::Lost,
        facts::DriveState::Leaving => api::DriveState::Leaving,
    }
}

/// The same as an array file compares it.
pub fn facts_of(one: api::PoolFacts) -> facts::PoolFacts {
    let group = |one: api::GroupFacts| {
        let api::GroupFacts {
            name,
            raid,
            set_size,
            groups,
            stripe_unit_bytes,
            spare_chunklets,
            chunklets_min,
            leaving,
        } = one;
        facts::GroupFacts {
            name,
            raid,
            set_size,
            groups,
            stripe_unit_bytes,
            spare_chunklets,
            chunklets_min,
            leaving,
        }
    };
    let drive = |one: api::DriveFacts| {
        let api::DriveFacts {
            name,
            id,
            path,
            moved_from,
            deleted,
            replaced,
            cut_short,
            class,
            size_bytes,
            state,
            leaving,
            for_data,
            for_log,
            flash_cache_bytes,
            group,
        } = one;
        facts::DriveFacts {
            name,
            id,
            path,
            moved_from,
            deleted,
            replaced,
            cut_short,
            class: class.map(drive_class_of),
            size_bytes,
            state: drive_state_of(state),
            leaving,
            for_data,
            for_log,
            flash_cache_bytes,
            group,
        }
    };
    let volume = |one: api::VolumeFacts| {
        let api::VolumeFacts {
            name,
            size_bytes,
            thin,
            write_cache,
            read_cache,
            place,
            group,
            ceilings,
            weight,
        } = one;
        let ceilings = ceilings.map(ceilings_of).unwrap_or_default();
        let place = place_of(place);
        facts::VolumeFacts { name, size_bytes, thin, write_cache, read_cache, place, group, ceilings, weight }
    };
    let api::PoolFacts {
        name,
        raid,
        set_size,
        groups,
        stripe_unit_bytes,
        chunklet_bytes,
        extent_bytes,
        spare_chunklets,
        chunklets_min,
        checksums,
        log_bytes,
        log_parts,
        set_groups,
        gone_groups,
        drives,
        volumes,
        cache,
        space,
    } = one;
    facts::PoolFacts {
        name,
        raid,
        set_size,
        groups,
        stripe_unit_bytes,
        chunklet_bytes,
        extent_bytes,
        spare_chunklets,
        chunklets_min,
        checksums,
        log_bytes,
        log_parts,
        set_groups: set_groups.into_iter().map(group).collect(),
        gone_groups: gone_groups.into_iter().map(group).collect(),
        drives: drives.into_iter().map(drive).collect(),
        volumes: volumes.into_iter().map(volume).collect(),
        cache: CacheSwitches { read: cache.read, write: cache.write },
        space: space
            .map(|api::SpaceFacts { warn_at, reserve }| SpaceRules { warn_at, reserve: reserve_of(reserve) }),
    }
}

fn drive_state_of(state: api::DriveState) -> facts::DriveState {
    match state {
        api::DriveState::Active => facts::DriveState::Active,
        api::DriveState::Lost => facts::DriveState::Lost,
        api::DriveState::Leaving => facts::DriveState::Leaving,
    }
}
