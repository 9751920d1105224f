//! Read caches that hold what a load reads most: warm as after days of it, in no simulated time.
//!
//! Which places these are follows from the load's own distribution. They come in from the least to the most likely, so that
//! whatever gives way is the least likely; what the cache's own policy makes of them shows in the run that follows. A
//! sequential stream has its range there as a whole, or nothing of it. Streams that read have equal parts of a cache.

use tier0_array::Volume;
use tier0_units::{PAGE_SECTORS, SECTOR_BYTES};
use tier0_workload::draw::StreamPlan;
use tier0_workload::spec::{LoadSpec, SpecError};

use super::{Look, Modelled};

/// Sectors of a line of the flash cache: two pages.
const LINE_SECTORS: u64 = 2 * PAGE_SECTORS;
/// Sets of the flash cache fill unevenly: so much more than its room is brought in.
const OVERFILL: f64 = 1.1;
/// How often others are told.
const TOLD_EVERY: u64 = 1 << 18;

/// Brings what `load` reads most into the read caches of `target`; false where there are none, or nothing is read.
///
/// # Errors
/// The load does not fit the target.
pub(crate) fn bring_in<T: Modelled>(target: &T, load: &LoadSpec, look: &mut Look) -> Result<bool, SpecError> {
    let arrays = target.arrays();
    let room = |bytes: fn(&Volume) -> u64| arrays.iter().map(bytes).sum::<u64>() / SECTOR_BYTES;
    let flash = room(|array| array.flash_cache().map_or(0, |status| status.room_bytes));
    let memory = room(|array| array.read_cache().map_or(0, |status| status.room_bytes));
    let streams: Vec<_> = load.streams.iter().filter(|stream| stream.read_percent > 0.0).collect();
    if flash + memory == 0 || streams.is_empty() {
        return Ok(false);
    }
    let parts = streams.len() as u64;
    let placement_seed = load.placement_seed.unwrap_or(load.seed);
    let mut done = 0;
    let mut tell = || {
        done += 1;
        done % TOLD_EVERY != 0 || look(&format!("warming the read caches, {} million blocks", done >> 20))
    };
    for stream in streams {
        let plan = StreamPlan::new(stream, target.info().sectors.bytes(), placement_seed)?;
        let block = plan.main_sectors();
        let on_flash = (flash as f64 * OVERFILL) as u64 / parts / block.next_multiple_of(LINE_SECTORS);
        let in_memory = memory / parts / block.next_multiple_of(PAGE_SECTORS);
        let wanted = [(on_flash, false), (in_memory, true)];
        for (most, in_memory) in wanted {
            for (lba, sectors) in plan.likeliest(most, placement_seed) {
                target.bring_in(lba, sectors.0, in_memory);
                if !tell() {
                    return Ok(true);
                }
            }
        }
    }
    arrays.iter().for_each(Volume::use_up_flash_budget);
    Ok(true)
}
