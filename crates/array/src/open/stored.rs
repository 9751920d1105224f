//! The volumes of an array that is not running, as its drives hold them.

use tier0_description::Description;
use tier0_pool::{Ceilings, ExtentMap, MetaRecord, PoolState, Volume};
use tier0_units::{ByteCount, SectorCount, WriteCache};

use super::OpenOptions;
use super::assemble::find_pools;
use crate::ArrayError;

/// A volume as the drives hold it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredVolume {
    /// Its name.
    pub name: String,
    /// The pool that it lies in.
    pub pool: String,
    /// The group that it lies on, where its pool has named ones.
    pub group: Option<String>,
    /// Its size.
    pub size: ByteCount,
    /// What of the pool it uses, alone or together with others. What only the write log has is not counted.
    pub used: ByteCount,
    /// Whether extents are allocated at the first write.
    pub thin: bool,
    /// When its writes are acknowledged, the pool's switch considered.
    pub write_cache: WriteCache,
    /// Whether its reads use the read cache, the pool's switch considered.
    pub read_cache: bool,
    /// What hosts may ask of it in a second.
    pub ceilings: Ceilings,
    /// What it gets in comparison with others where writers are delayed.
    pub weight: u32,
    /// The names of its clones and of those whose clone it is.
    pub family: Vec<String>,
}

impl StoredVolume {
    fn of(volume: &Volume, state: &PoolState) -> StoredVolume {
        let caching = state.caching(volume);
        let extents = state.map(volume.number).map_or(0, ExtentMap::count);
        StoredVolume {
            name: volume.name.clone(),
            pool: state.name().to_owned(),
            group: state.name_of_group(volume.group).map(str::to_owned),
            size: SectorCount(volume.sectors).bytes(),
            used: SectorCount(extents * state.geometry().extent_sectors).bytes(),
            thin: volume.thin,
            write_cache: caching.write,
            read_cache: caching.read,
            ceilings: state.ceilings(volume.number),
            weight: state.weight(volume.number),
            family: state.family_names(volume),
        }
    }
}

/// The volumes that the drives of `description` hold, those left out that only the description has. Nothing is written.
///
/// # Errors
/// Why the array would not start: then it is not certain what its drives hold.
pub fn stored_volumes(description: &Description) -> Result<Vec<StoredVolume>, ArrayError> {
    let pools = find_pools(description, &OpenOptions::default())?;
    let of_pool = |(state, additions): (PoolState, Vec<MetaRecord>)| {
        let is_new = |volume: &&Volume| {
            additions
                .iter()
                .any(|record| matches!(record, MetaRecord::VolumeCreated(new) if new.id == volume.id))
        };
        let held = state.volumes().filter(|volume| !volume.is_unfinished() && !is_new(volume));
        held.map(|volume| StoredVolume::of(volume, &state)).collect::<Vec<_>>()
    };
    Ok(pools.into_iter().flat_map(of_pool).collect())
}
