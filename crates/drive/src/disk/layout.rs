//! Where a logical block lies: zone, cylinder, surface and angle.
//!
//! Within a zone, blocks are counted through in steps: the unused sectors at its start, the sectors that slipping
//! skips, the spares that end (or begin) each region, and then tracks and cylinders. A region is what spares are
//! kept for: a track, a group of cylinders, or the whole zone.
//!
//! Angles are fractions of a revolution in 32 bits, so that they wrap by themselves. The angle of a sector is that
//! of its leading edge, with skews included, relative to a mark that passes the heads at time zero.
//!
//! What it does not do: it knows no time.

use tier0_units::Lba;

use super::error::check_range;
use super::{LayoutParameters, ParameterError, Sparing, TrackOrder, ZoneParameters};

/// A place on the platters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Cylinder.
    pub cylinder: u32,
    /// Surface, and so head.
    pub surface: u32,
    /// Leading edge of the sector, in 2^-32 revolutions.
    pub angle: u32,
    /// Sectors per track here.
    pub sectors_per_track: u32,
    /// Logical blocks from this one on that follow each other on this track without a gap, at least 1.
    pub run: u32,
}

/// The map from logical blocks to places.
#[derive(Clone, Debug)]
pub struct Layout {
    zones: Vec<Zone>,
    /// First logical block of each zone.
    starts: Vec<u64>,
    sectors: u64,
    surfaces: u64,
    order: TrackOrder,
}

#[derive(Clone, Debug)]
struct Zone {
    /// First logical block and how many follow.
    start: u64,
    blocks: u64,
    first_cylinder: u32,
    last_cylinder: u32,
    sectors_per_track: u64,
    first_angle: u32,
    track_skew: u32,
    cylinder_skew: u32,
    unused: u64,
    /// Physical sectors of a region, those of them that hold blocks, and the spares that come first.
    region_sectors: u64,
    region_blocks: u64,
    region_front: u64,
    /// One region holds the whole zone.
    one_region: bool,
    /// Skipped sectors shift the rest of the zone (counted in blocks before the regions) or of their region.
    slip_through_zone: bool,
    /// Whether slipped sectors before a cylinder (or track, where spares are per track) turn it further.
    slips_turn: bool,
    slips: Vec<u64>,
    /// Where slips go through the zone: the block count at which the n-th slip comes into effect.
    slip_keys: Vec<u64>,
    remaps: Vec<(u64, u64)>,
}

impl Layout {
    /// Checks the parameters and builds the map.
    pub fn new(parameters: &LayoutParameters) -> Result<Layout, ParameterError> {
        check_range("surfaces", f64::from(parameters.surfaces), 1.0..=255.0, "1 to 255")?;
        check_range("cylinders", f64::from(parameters.cylinders), 1.0..=16e6, "1 to 16,000,000")?;
        check_range("zones", parameters.zones.len() as f64, 1.0..=65_535.0, "1 to 65,535")?;
        let mut zones = Vec::with_capacity(parameters.zones.len());
        let (mut start, mut cylinder) = (0, 0);
        for (index, zone) in parameters.zones.iter().enumerate() {
            let (first, last) = (zone.first_cylinder, zone.last_cylinder);
            if first < cylinder || last < first || last >= parameters.cylinders {
                let cylinders = parameters.cylinders;
                return Err(ParameterError::ZoneCylinders { zone: index, first, last, cylinders });
            }
            cylinder = last + 1;
            let zone = Zone::new(index, zone, parameters, start)?;
            start += zone.blocks;
            zones.push(zone);
        }
        let sectors = match parameters.capacity {
            Some(capacity) if capacity.0 > start => {
                return Err(ParameterError::TooSmall { held: start, capacity: capacity.0 });
            }
            Some(capacity) => capacity.0,
            None => start,
        };
        let starts = zones.iter().map(|zone| zone.start).collect();
        let (surfaces, order) = (u64::from(parameters.surfaces), parameters.track_order);
        Ok(Layout { zones, starts, sectors, surfaces, order })
    }

    /// Logical blocks of the disk.
    pub fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Where block `lba` lies; beyond the end, where the last one does.
    pub fn locate(&self, lba: Lba) -> Place {
        let lba = lba.0.min(self.sectors - 1);
        let zone = self.zone(lba);
        let (physical, run) = zone.physical(lba - zone.start);
        let (track, sector) = (physical / zone.sectors_per_track, physical % zone.sectors_per_track);
        let (cylinder, rank) = (track / self.surfaces, track % self.surfaces);
        let run = run.min(zone.sectors_per_track - sector).min(self.sectors - lba);
        Place {
            cylinder: zone.first_cylinder + cylinder as u32,
            surface: self.surface(zone, cylinder, rank) as u32,
            angle: self.track_angle(zone, cylinder, rank).wrapping_add(zone.sector_angle(sector)),
            sectors_per_track: zone.sectors_per_track as u32,
            run: run as u32,
        }
    }

    /// First and past-the-last block of the track that holds `lba`; a remapped block counts where it would be.
    pub fn track_bounds(&self, lba: Lba) -> (Lba, Lba) {
        let lba = lba.0.min(self.sectors - 1);
        let zone = self.zone(lba);
        let (first, length) = (zone.slipped(lba - zone.start).0, zone.sectors_per_track);
        let track = first / length * length;
        let bound = |physical| (zone.start + zone.first_block_at(physical)).min(self.sectors);
        (Lba(bound(track)), Lba(bound(track + length)))
    }

    /// Blocks per cylinder on `bands` equally wide bands of cylinders, for the weighting of seeks.
    pub fn density(&self, bands: u32) -> Vec<f64> {
        let last = self.zones.last().map_or(0, |zone| zone.last_cylinder);
        let at = |band: u32| {
            let cylinder = ((f64::from(band) + 0.5) / f64::from(bands) * f64::from(last + 1)) as u32;
            let holds = |zone: &&Zone| (zone.first_cylinder..=zone.last_cylinder).contains(&cylinder);
            let blocks =
                |zone: &Zone| zone.blocks as f64 / f64::from(zone.last_cylinder - zone.first_cylinder + 1);
            self.zones.iter().find(holds).map_or(0.0, blocks)
        };
        (0..bands).map(at).collect()
    }

    fn zone(&self, lba: u64) -> &Zone {
        &self.zones[self.starts.partition_point(|&start| start <= lba) - 1]
    }

    fn surface(&self, zone: &Zone, cylinder: u64, rank: u64) -> u64 {
        let descending = match self.order {
            TrackOrder::Ascending => false,
            TrackOrder::SerpentineByZone => cylinder % 2 == 1,
            TrackOrder::SerpentineByDisk => (u64::from(zone.first_cylinder) + cylinder) % 2 == 1,
        };
        if descending { self.surfaces - 1 - rank } else { rank }
    }

    /// Angle of a track's first sector: the skews of all changes of track and cylinder since the zone began.
    fn track_angle(&self, zone: &Zone, cylinder: u64, rank: u64) -> u32 {
        let track_changes = rank + (self.surfaces - 1) * cylinder;
        let mut angle = zone
            .first_angle
            .wrapping_add(zone.track_skew.wrapping_mul(track_changes as u32))
            .wrapping_add(zone.cylinder_skew.wrapping_mul(cylinder as u32));
        if zone.slips_turn {
            let tracks = cylinder * self.surfaces + if zone.region_is_track() { rank } else { 0 };
            let before = zone.slips.partition_point(|&slip| slip < tracks * zone.sectors_per_track);
            angle = angle.wrapping_add(zone.sector_angle(before as u64));
        }
        angle
    }
}

/// A part of a revolution, of which whole turns do not matter, in 2^-32 revolutions.
fn angle_of(revolutions: f64) -> u32 {
    (revolutions.rem_euclid(1.0) * 4_294_967_296.0).round() as u64 as u32
}

impl Zone {
    fn new(
        index: usize,
        parameters: &ZoneParameters,
        layout: &LayoutParameters,
        start: u64,
    ) -> Result<Zone, ParameterError> {
        let words = "1 to 1,000,000";
        check_range("sectors per track", f64::from(parameters.sectors_per_track), 1.0..=1e6, words)?;
        let skews = [parameters.first_sector_rev, parameters.track_skew_rev, parameters.cylinder_skew_rev];
        for skew in skews {
            check_range("a skew in revolutions", skew, -1e6..=1e6, "a number of revolutions")?;
        }
        let surfaces = u64::from(layout.surfaces);
        let sectors_per_track = u64::from(parameters.sectors_per_track);
        let cylinders = u64::from(parameters.last_cylinder - parameters.first_cylinder) + 1;
        let physical = cylinders * surfaces * sectors_per_track;
        let outside = |&sector: &u64| sector >= physical;
        let listed = parameters.slips.iter().chain(parameters.remaps.iter().flat_map(|(a, b)| [a, b]));
        if let Some(&sector) = listed.copied().collect::<Vec<_>>().iter().find(|s| outside(s)) {
            return Err(ParameterError::DefectOutside { zone: index, sector, sectors: physical });
        }
        let mut zone = Zone {
            start,
            blocks: 0,
            first_cylinder: parameters.first_cylinder,
            last_cylinder: parameters.last_cylinder,
            sectors_per_track,
            first_angle: angle_of(parameters.first_sector_rev),
            track_skew: angle_of(parameters.track_skew_rev),
            cylinder_skew: angle_of(parameters.cylinder_skew_rev),
            unused: parameters.unused_sectors,
            region_sectors: physical,
            region_blocks: physical,
            region_front: 0,
            one_region: true,
            slip_through_zone: true,
            slips_turn: false,
            slips: ascending(parameters.slips.clone()),
            slip_keys: Vec::new(),
            remaps: parameters.remaps.clone(),
        };
        zone.remaps.sort_unstable();
        zone.remaps.dedup_by_key(|remap| remap.0);
        zone.set_regions(layout.sparing, parameters.spares, surfaces);
        zone.count_blocks(physical, parameters.spares);
        if zone.blocks == 0 {
            return Err(ParameterError::EmptyZone { zone: index });
        }
        Ok(zone)
    }

    fn set_regions(&mut self, sparing: Sparing, spares: u64, surfaces: u64) {
        let region = match sparing {
            Sparing::Zone => return,
            Sparing::Track => {
                self.slip_through_zone = false;
                self.sectors_per_track
            }
            Sparing::CylinderGroup { cylinders, at_front, slip_to_end } => {
                self.slip_through_zone = slip_to_end;
                self.region_front = if at_front { spares } else { 0 };
                self.sectors_per_track * surfaces * u64::from(cylinders.max(1))
            }
        };
        self.one_region = false;
        self.slips_turn = !self.slips.is_empty();
        self.region_sectors = region;
        self.region_blocks = region.saturating_sub(spares);
        if self.slip_through_zone {
            // A slipped spare shifts nothing.
            let holds = self.region_front..self.region_front + self.region_blocks;
            self.slips.retain(|slip| holds.contains(&(slip % region)));
        }
    }

    /// Sets the number of blocks, and when each slip comes into effect.
    fn count_blocks(&mut self, physical: u64, spares: u64) {
        let slips = self.slips.len() as u64;
        let held = if self.one_region {
            physical.saturating_sub(spares.max(slips))
        } else if self.region_blocks == 0 {
            0
        } else {
            // A last region that is not whole has no spares of its own.
            let whole = physical / self.region_sectors;
            let rest = physical % self.region_sectors;
            let slipped = if self.slip_through_zone { slips } else { 0 };
            (whole * self.region_blocks + rest.min(self.region_blocks)).saturating_sub(slipped)
        };
        self.blocks = held.saturating_sub(self.unused);
        if self.slip_through_zone && self.region_blocks > 0 {
            // The n-th slip stands where `count - n` good blocks precede it.
            let keys = self.slips.iter().enumerate();
            let key = |(n, &slip): (usize, &u64)| self.count_before(slip).saturating_sub(n as u64);
            self.slip_keys = keys.map(key).collect();
        }
    }

    /// Sectors that could hold blocks before physical sector `physical`, slips not considered.
    fn count_before(&self, physical: u64) -> u64 {
        if self.one_region {
            return physical;
        }
        let (region, offset) = (physical / self.region_sectors, physical % self.region_sectors);
        region * self.region_blocks + offset.saturating_sub(self.region_front).min(self.region_blocks)
    }

    fn region_is_track(&self) -> bool {
        self.region_sectors == self.sectors_per_track
    }

    fn sector_angle(&self, sector: u64) -> u32 {
        (((sector << 32) + self.sectors_per_track / 2) / self.sectors_per_track) as u32
    }

    /// Physical sector of the zone's block number `block`, and how many blocks follow without a gap.
    fn physical(&self, block: u64) -> (u64, u64) {
        let (physical, run) = self.slipped(block);
        let run = run.min(self.blocks - block);
        if self.remaps.is_empty() {
            return (physical, run);
        }
        let next = self.remaps.partition_point(|remap| remap.0 < physical);
        match self.remaps.get(next) {
            Some(&(defect, spare)) if defect == physical => (spare, 1),
            Some(&(defect, _)) => (physical, run.min(defect - physical)),
            None => (physical, run),
        }
    }

    /// The same before remapping.
    fn slipped(&self, block: u64) -> (u64, u64) {
        let mut count = block + self.unused;
        let mut run = u64::MAX;
        if self.slip_through_zone && !self.slips.is_empty() {
            let slips = self.slip_keys.partition_point(|&key| key <= count);
            if let Some(key) = self.slip_keys.get(slips) {
                run = key - count;
            }
            count += slips as u64;
        }
        if self.one_region {
            return (count, run);
        }
        let (region, offset) = (count / self.region_blocks, count % self.region_blocks);
        run = run.min(self.region_blocks - offset);
        let (begin, mut slip) = self.region_begin(region);
        let mut physical = begin + offset;
        if !self.slip_through_zone && !self.slips.is_empty() {
            while self.slips.get(slip).is_some_and(|&slip| slip <= physical) {
                (physical, slip) = (physical + 1, slip + 1);
            }
            if let Some(next) = self.slips.get(slip) {
                run = run.min(next - physical);
            }
        }
        (physical, run)
    }

    /// The physical sector at which the blocks of a region begin, and the first slip at or after it. Where spares
    /// come first and slips use them, the blocks begin earlier by as many.
    fn region_begin(&self, region: u64) -> (u64, usize) {
        let base = region * self.region_sectors;
        if self.slips.is_empty() || self.slip_through_zone {
            return (base + self.region_front, 0);
        }
        let slips = |before: u64| self.slips.partition_point(|&slip| slip < before);
        let own = slips(base + self.region_sectors) - slips(base);
        let begin = base + self.region_front.saturating_sub(own as u64);
        (begin, slips(begin))
    }

    /// The first of the zone's blocks that lies at or after physical sector `physical`.
    fn first_block_at(&self, physical: u64) -> u64 {
        let slips = self.slips.partition_point(|&slip| slip < physical);
        let count = if self.slip_through_zone {
            self.count_before(physical).saturating_sub(slips as u64)
        } else {
            let region = physical / self.region_sectors;
            let (begin, earlier) = self.region_begin(region);
            let slipped = slips.saturating_sub(earlier) as u64;
            let good = physical.saturating_sub(begin).saturating_sub(slipped);
            region * self.region_blocks + good.min(self.region_blocks)
        };
        count.saturating_sub(self.unused).min(self.blocks)
    }
}

fn ascending(mut list: Vec<u64>) -> Vec<u64> {
    list.sort_unstable();
    list.dedup();
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(first: u32, last: u32, sectors_per_track: u32) -> ZoneParameters {
        ZoneParameters {
            first_cylinder: first,
            last_cylinder: last,
            sectors_per_track,
            first_sector_rev: 0.0,
            track_skew_rev: 0.25,
            cylinder_skew_rev: 0.5,
            unused_sectors: 0,
            spares: 0,
            slips: Vec::new(),
            remaps: Vec::new(),
        }
    }

    fn disk(zones: Vec<ZoneParameters>, track_order: TrackOrder, sparing: Sparing) -> Layout {
        let parameters =
            LayoutParameters { surfaces: 2, cylinders: 10, track_order, sparing, zones, capacity: None };
        Layout::new(&parameters).unwrap()
    }

    const QUARTER: u32 = 1 << 30;

    #[test]
    fn counts_through_tracks_cylinders_and_zones() {
        let layout = disk(vec![zone(0, 1, 8), zone(3, 4, 4)], TrackOrder::Ascending, Sparing::Zone);
        assert_eq!(layout.sectors(), 2 * 2 * 8 + 2 * 2 * 4);
        let at = |lba| {
            let place = layout.locate(Lba(lba));
            (place.cylinder, place.surface, place.angle, place.run)
        };
        assert_eq!(at(0), (0, 0, 0, 8));
        assert_eq!(at(2), (0, 0, QUARTER, 6));
        // Second track: a quarter of skew. Second cylinder: a quarter and a half more.
        assert_eq!(at(8), (0, 1, QUARTER, 8));
        assert_eq!(at(16), (1, 0, 3 * QUARTER, 8));
        assert_eq!(at(31), (1, 1, 7 * (QUARTER / 2), 1));
        // Second zone: four sectors per track, angles start anew.
        assert_eq!(at(32), (3, 0, 0, 4));
        assert_eq!(at(37), (3, 1, 2 * QUARTER, 3));
        assert_eq!(at(47), (4, 1, 3 * QUARTER, 1));
    }

    #[test]
    fn serpentine_keeps_the_head_between_cylinders() {
        let layout = disk(vec![zone(1, 3, 4)], TrackOrder::SerpentineByZone, Sparing::Zone);
        let heads: Vec<_> = (0..6).map(|track| layout.locate(Lba(track * 4)).surface).collect();
        assert_eq!(heads, [0, 1, 1, 0, 0, 1]);
        let layout = disk(vec![zone(1, 3, 4)], TrackOrder::SerpentineByDisk, Sparing::Zone);
        let heads: Vec<_> = (0..6).map(|track| layout.locate(Lba(track * 4)).surface).collect();
        assert_eq!(heads, [1, 0, 0, 1, 1, 0]);
    }

    #[test]
    fn slips_shift_the_rest_and_split_runs() {
        let slipped = ZoneParameters { slips: vec![2, 3, 9], spares: 4, ..zone(0, 1, 8) };
        let layout = disk(vec![slipped], TrackOrder::Ascending, Sparing::Zone);
        assert_eq!(layout.sectors(), 28);
        let physical = |lba| layout.zones[0].physical(lba);
        assert_eq!(physical(0), (0, 2));
        assert_eq!(physical(1), (1, 1));
        assert_eq!(physical(2), (4, 5));
        assert_eq!(physical(6).0, 8);
        assert_eq!(physical(7).0, 10);
        assert_eq!(layout.track_bounds(Lba(3)), (Lba(0), Lba(6)));
        assert_eq!(layout.track_bounds(Lba(6)), (Lba(6), Lba(13)));
    }

    #[test]
    fn spares_end_every_track_or_cylinder() {
        let spared = ZoneParameters { slips: vec![1], spares: 2, ..zone(0, 1, 8) };
        let layout = disk(vec![spared.clone()], TrackOrder::Ascending, Sparing::Track);
        assert_eq!(layout.sectors(), 4 * 6);
        let physical = |lba| layout.zones[0].physical(lba).0;
        // The first track slips into its spares; the second is whole.
        assert_eq!((0..7).map(physical).collect::<Vec<_>>(), [0, 2, 3, 4, 5, 6, 8]);
        let group = |at_front, slip_to_end| Sparing::CylinderGroup { cylinders: 1, at_front, slip_to_end };
        let layout = disk(vec![spared.clone()], TrackOrder::Ascending, group(true, false));
        assert_eq!(layout.sectors(), 2 * 14);
        assert_eq!(layout.zones[0].physical(0).0, 2);
        assert_eq!(layout.zones[0].physical(14).0, 18);
        let layout = disk(vec![spared], TrackOrder::Ascending, group(false, true));
        assert_eq!(layout.sectors(), 2 * 14 - 1);
        let physical = |lba| layout.zones[0].physical(lba).0;
        assert_eq!([physical(0), physical(12), physical(13)], [0, 13, 16]);
    }

    #[test]
    fn a_remapped_sector_lies_elsewhere() {
        let remapped = ZoneParameters { remaps: vec![(5, 30)], spares: 2, ..zone(0, 1, 8) };
        let layout = disk(vec![remapped], TrackOrder::Ascending, Sparing::Zone);
        assert_eq!(layout.locate(Lba(4)).run, 1);
        assert_eq!((layout.locate(Lba(5)).cylinder, layout.locate(Lba(5)).run), (1, 1));
        assert_eq!(layout.locate(Lba(6)).run, 2);
    }

    #[test]
    fn every_block_has_a_place_of_its_own() {
        let odd = ZoneParameters {
            slips: vec![3, 8, 9, 40],
            spares: 3,
            unused_sectors: 5,
            remaps: vec![(11, 0)],
            ..zone(0, 2, 8)
        };
        let group = |at_front, slip_to_end| Sparing::CylinderGroup { cylinders: 1, at_front, slip_to_end };
        let schemes =
            [Sparing::Zone, Sparing::Track, group(false, false), group(true, false), group(false, true)];
        for sparing in schemes {
            let layout = disk(vec![odd.clone()], TrackOrder::SerpentineByZone, sparing);
            let mut taken = std::collections::BTreeSet::new();
            for block in 0..layout.sectors() {
                let physical = layout.zones[0].physical(block).0;
                assert!(taken.insert(physical), "{sparing:?}: block {block} shares sector {physical}");
                assert!(physical < 48, "{sparing:?}: block {block} leaves the zone");
                let (first, end) = layout.track_bounds(Lba(block));
                assert!((first.0..end.0).contains(&block), "{sparing:?}: block {block} is not on its track");
            }
        }
    }

    #[test]
    fn refuses_impossible_zones() {
        let try_zones = |zones: Vec<ZoneParameters>| {
            let (track_order, sparing) = (TrackOrder::Ascending, Sparing::Zone);
            Layout::new(&LayoutParameters {
                surfaces: 2,
                cylinders: 10,
                track_order,
                sparing,
                zones,
                capacity: None,
            })
            .unwrap_err()
        };
        assert!(matches!(try_zones(vec![zone(3, 10, 8)]), ParameterError::ZoneCylinders { zone: 0, .. }));
        assert!(matches!(
            try_zones(vec![zone(3, 4, 8), zone(4, 5, 8)]),
            ParameterError::ZoneCylinders { zone: 1, .. }
        ));
        assert!(matches!(try_zones(vec![zone(3, 4, 0)]), ParameterError::OutOfRange { .. }));
        let spent = ZoneParameters { unused_sectors: 99, ..zone(0, 1, 8) };
        assert_eq!(try_zones(vec![spent]), ParameterError::EmptyZone { zone: 0 });
        let defect = ZoneParameters { slips: vec![32], ..zone(0, 1, 8) };
        assert!(matches!(try_zones(vec![defect]), ParameterError::DefectOutside { sector: 32, .. }));
    }
}
