//! Where traced volumes lie on the array's volumes: side by side on a single one, else on those of equal names.

use serde::Serialize;
use tier0_description::Description;
use tier0_units::{ByteCount, SECTOR_BYTES};

use super::trace::TimedRequest;
use super::{TimedError, TimedPlan, TimedTrace};

/// Traced volumes that lie side by side begin at whole multiples of this, 1 MiB.
const STEP_SECTORS: u64 = 2048;
/// So many names stand in a message.
const NAMES_MAX: usize = 12;

/// A traced volume on the array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Placed {
    /// The traced volume.
    pub traced_volume: String,
    /// The array's volume.
    pub volume: String,
    /// Where it begins there.
    pub offset_bytes: u64,
    /// Bytes up to the end of its last read or write.
    pub bytes: u64,
    /// How many of these lie beyond the end of the array's volume, and were taken modulo its size.
    pub folded_bytes: u64,
}

/// The same for who issues requests.
#[derive(Clone, Debug)]
pub(super) struct Seat {
    /// The array's volume, by its place in the description.
    pub(super) volume: usize,
    first: u64,
    /// Sectors of the traced volume.
    sectors: u64,
    /// Sectors of the array's volume.
    room: u64,
    pub(super) placed: Placed,
}

impl Seat {
    /// Where a sector of the traced volume lies.
    fn at(&self, sector: u64) -> u64 {
        (self.first % self.room + sector % self.room) % self.room
    }

    /// Where a read or a write goes: its first sector, and how many.
    pub(super) fn of_data(&self, request: &TimedRequest) -> (u64, u32) {
        let sectors = u64::from(request.sectors).min(self.room);
        let at = self.at(request.sector);
        (at.min(self.room - sectors), sectors as u32)
    }

    /// Where a discard goes, as far as reads and writes of the traced volume reach; none where it is beyond them.
    pub(super) fn of_discard(&self, request: &TimedRequest) -> Option<(u64, u64)> {
        let sectors = u64::from(request.sectors).min(self.sectors.saturating_sub(request.sector));
        let at = self.at(request.sector);
        let sectors = sectors.min(self.room - at);
        (sectors > 0).then_some((at, sectors))
    }
}

/// Gives every traced volume its place; the array's volumes are large enough unless the plan folds.
pub(super) fn place(
    trace: &TimedTrace,
    plan: &TimedPlan,
    system: &Description,
) -> Result<Vec<Seat>, TimedError> {
    let wrong = |fact: String| TimedError::Place { fact };
    if system.volumes.is_empty() {
        return Err(wrong(format!("array {} has no volume; add a [[volume]] to its file", system.name)));
    }
    let known: Vec<&str> = trace.volumes.iter().map(|volume| volume.name.as_str()).collect();
    if let Some((unknown, _)) = plan.map.iter().find(|(traced, _)| !known.contains(&traced.as_str())) {
        return Err(wrong(format!(
            "--map {unknown}: the trace has no volume {unknown:?}; it has {}",
            names(&known)
        )));
    }
    let mut used = vec![0_u64; system.volumes.len()];
    let mut seats = Vec::new();
    for traced in &trace.volumes {
        let volume = volume_for(&traced.name, plan, system).map_err(wrong)?;
        let (described, first) = (&system.volumes[volume], used[volume]);
        if described.thin {
            return Err(wrong(format!(
                "volume {:?} is thin, and reads of what was never written would take no time; remove thin from the array file",
                described.name
            )));
        }
        let end = first.saturating_add(traced.sectors);
        used[volume] = end.checked_next_multiple_of(STEP_SECTORS).unwrap_or(u64::MAX);
        seats.push(Seat {
            volume,
            first,
            sectors: traced.sectors,
            room: described.sectors.0,
            placed: Placed {
                traced_volume: traced.name.clone(),
                volume: described.name.clone(),
                offset_bytes: bytes(first).0,
                bytes: bytes(traced.sectors).0,
                folded_bytes: bytes(end.saturating_sub(described.sectors.0.max(first))).0,
            },
        });
    }
    for (number, described) in system.volumes.iter().enumerate().filter(|_| !plan.fold) {
        let ends = seats.iter().filter(|seat| seat.volume == number);
        let ends = ends.map(|seat| seat.first.saturating_add(seat.sectors));
        let needed = ends.max().unwrap_or(0);
        if needed > described.sectors.0 {
            let on: Vec<&str> = seats
                .iter()
                .filter(|seat| seat.volume == number)
                .map(|seat| seat.placed.traced_volume.as_str())
                .collect();
            return Err(wrong(format!(
                "volume {:?} has {:#}, and the trace reaches {:#} on it ({}): {:#} are missing; make the volume larger, place \
                 traced volumes on others (--map TRACED=VOLUME), or give --fold to have places beyond its end begin again at its start",
                described.name,
                bytes(described.sectors.0),
                bytes(needed),
                names(&on),
                bytes(needed - described.sectors.0),
            )));
        }
    }
    Ok(seats)
}

/// Sectors in bytes, as far as those can be told.
fn bytes(sectors: u64) -> ByteCount {
    ByteCount(sectors.saturating_mul(SECTOR_BYTES))
}

/// The array's volume of a traced one; the error is the fact and the remedy.
fn volume_for(traced: &str, plan: &TimedPlan, system: &Description) -> Result<usize, String> {
    let known: Vec<&str> = system.volumes.iter().map(|volume| volume.name.as_str()).collect();
    let place_of = |name: &str| known.iter().position(|volume| *volume == name);
    let mapped = plan.map.iter().find(|(name, _)| name == traced).map(|(_, volume)| volume);
    match mapped.or(plan.volume.as_ref()) {
        Some(name) => place_of(name)
            .ok_or_else(|| format!("array {} has no volume {name:?}; its volumes are {}", system.name, names(&known))),
        None if known.len() == 1 => Ok(0),
        None => place_of(traced).ok_or_else(|| {
            format!(
                "array {} has several volumes ({}), and none is called {traced:?} like the traced one; say where it lies: \
                 --map {traced}=VOLUME, or --volume NAME for all that have no other place",
                system.name,
                names(&known)
            )
        }),
    }
}

/// Names for a message, not too many.
fn names(all: &[&str]) -> String {
    let some = all.iter().take(NAMES_MAX).copied().collect::<Vec<_>>().join(", ");
    match all.len().saturating_sub(NAMES_MAX) {
        0 => some,
        more => format!("{some} and {more} more"),
    }
}
