//! The `dm_layout_g1` block: zones, skews, spares and defects.

use super::super::{LayoutParameters, Sparing, TrackOrder, ZoneParameters};
use super::Problem;
use super::syntax::{Block, Value};

/// No drive has more tracks, sectors or cylinders of a kind.
const COUNT_MAX: u64 = 16_000_000;
const SECTORS_MAX: u64 = 1 << 40;

/// Reads surfaces, cylinders and layout from a `dm_disk` block.
pub(super) fn read(model: &Block) -> Result<LayoutParameters, Problem> {
    let surfaces = model.whole("Number of data surfaces", 1, 255)? as u32;
    let cylinders = model.whole("Number of cylinders", 1, COUNT_MAX)? as u32;
    let layout = match model.entry("Layout Model") {
        Some(entry) => match &entry.value {
            Value::Block(block) if block.kind == "dm_layout_g1" => block,
            Value::Block(block) => {
                let text = format!("layout {:?} is not known; only dm_layout_g1 is", block.kind);
                return Err(Problem::new(entry.line, text));
            }
            _ => return Err(Problem::new(entry.line, "\"Layout Model\" must be a block")),
        },
        None => model,
    };
    let track_order = match layout.whole_or("LBN-to-PBN mapping scheme", 0, 0, 2)? {
        0 => TrackOrder::Ascending,
        1 => TrackOrder::SerpentineByZone,
        _ => TrackOrder::SerpentineByDisk,
    };
    let scheme = layout.whole_or("Sparing scheme used", 0, 0, 10)?;
    let range = layout.whole_or("Rangesize for sparing", 1, 1, COUNT_MAX)? as u32;
    let in_revolutions = skew_in_revolutions(layout, false)?;
    let Some(entry) = layout.entry("Zones") else {
        return Err(Problem::new(layout.line, "this block lacks \"Zones\""));
    };
    let Value::List(list) = &entry.value else {
        return Err(Problem::new(entry.line, "\"Zones\" must be a list in brackets"));
    };
    let zone = |(line, value): &(usize, Value)| match value {
        Value::Block(block) => read_zone(block, scheme, in_revolutions),
        _ => Err(Problem::new(*line, "a zone must be a block")),
    };
    let zones: Vec<ZoneParameters> = list.iter().map(zone).collect::<Result<_, _>>()?;
    let sparing = sparing(scheme, range);
    // The block count is informative: DiskSim, too, goes by what the zones hold, which is a little more.
    Ok(LayoutParameters { surfaces, cylinders, track_order, sparing, zones, capacity: None })
}

/// DiskSim's schemes 0 to 10.
fn sparing(scheme: u64, range: u32) -> Sparing {
    let group =
        |cylinders, at_front, slip_to_end| Sparing::CylinderGroup { cylinders, at_front, slip_to_end };
    match scheme {
        2 => group(1, false, false),
        3 => Sparing::Track,
        4 => group(1, false, true),
        5 => group(1, true, false),
        6 => group(1, true, true),
        8 => group(range, false, false),
        // None, whole tracks at the zone's end, at the disk's end, at the zone's end (slips in them or not).
        _ => Sparing::Zone,
    }
}

fn skew_in_revolutions(block: &Block, default: bool) -> Result<bool, Problem> {
    match block.word("Skew units") {
        None => Ok(default),
        Some(("revolutions", _)) => Ok(true),
        Some(("sectors", _)) => Ok(false),
        Some((other, line)) => {
            let text = format!("\"Skew units\" is {other:?}; it must be revolutions or sectors");
            Err(Problem::new(line, text))
        }
    }
}

fn read_zone(zone: &Block, scheme: u64, in_revolutions: bool) -> Result<ZoneParameters, Problem> {
    let sectors_per_track = zone.whole("Blocks per track", 1, 1_000_000)?;
    let unit = if skew_in_revolutions(zone, in_revolutions)? { 1.0 } else { 1.0 / sectors_per_track as f64 };
    let angle = |name: &str| Ok(zone.number_or(name, 0.0)? * unit);
    let mut slips = sectors(zone, "slips")?;
    let mut remaps = pairs(zone)?;
    let mut spares = zone.whole_or("Number of spares", 0, 0, SECTORS_MAX)?;
    if scheme == 1 {
        // Counted in tracks.
        spares *= sectors_per_track;
        let listed = (slips.len() + 2 * remaps.len()) as u64 * sectors_per_track;
        if listed > COUNT_MAX {
            return Err(Problem::new(
                zone.line,
                format!("this zone lists {listed} defective sectors, too many"),
            ));
        }
        let all_of = |track: u64| track * sectors_per_track..(track + 1) * sectors_per_track;
        slips = slips.into_iter().flat_map(all_of).collect();
        remaps = remaps.into_iter().flat_map(|(from, to)| all_of(from).zip(all_of(to))).collect();
    }
    if scheme == 10 {
        spares += slips.len() as u64;
    }
    Ok(ZoneParameters {
        first_cylinder: zone.whole("First cylinder number", 0, COUNT_MAX)? as u32,
        last_cylinder: zone.whole("Last cylinder number", 0, COUNT_MAX)? as u32,
        sectors_per_track: sectors_per_track as u32,
        first_sector_rev: angle("Offset of first block")?,
        track_skew_rev: angle("Skew for track switch")?,
        cylinder_skew_rev: angle("Skew for cylinder switch")?,
        unused_sectors: zone.whole_or("Empty space at zone front", 0, 0, SECTORS_MAX)?,
        spares,
        slips,
        remaps,
    })
}

fn sectors(zone: &Block, name: &str) -> Result<Vec<u64>, Problem> {
    let whole = |(line, number): (usize, f64)| {
        if number.fract() == 0.0 && (0.0..=SECTORS_MAX as f64).contains(&number) {
            return Ok(number as u64);
        }
        Err(Problem::new(line, format!("\"{name}\" lists {number}; it must be a sector of the zone")))
    };
    zone.numbers(name)?.into_iter().map(whole).collect()
}

/// Defects come in pairs: the defective sector and its replacement.
fn pairs(zone: &Block) -> Result<Vec<(u64, u64)>, Problem> {
    let list = sectors(zone, "defects")?;
    if !list.len().is_multiple_of(2) {
        let line = zone.entry("defects").map_or(zone.line, |entry| entry.line);
        return Err(Problem::new(
            line,
            "\"defects\" must list pairs: the defective sector and its replacement",
        ));
    }
    Ok(list.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect())
}
