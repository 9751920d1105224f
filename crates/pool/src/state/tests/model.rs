//! Random records against a model that knows every rule and no trick.

use std::collections::{BTreeMap, BTreeSet};

use tier0_world::Random;

use super::*;
use crate::checkpoint::image;
use crate::record;
use crate::samples::{CHUNKLETS, SLOTS_PER_SET};

/// The target, as drive and chunklet, and the slots that it holds.
type ModelRebuild = ((u32, u32), BTreeSet<u32>);

/// The state as a pupil would keep it.
#[derive(Clone, Default)]
struct Model {
    active: Vec<bool>,
    removed: Vec<bool>,
    sets: Vec<[(u32, u32); 2]>,
    rebuilds: BTreeMap<(u32, u32), ModelRebuild>,
    volumes: BTreeMap<u32, (u64, bool)>,
    /// By volume: its family and its branch there.
    branches: BTreeMap<u32, (u32, u8)>,
    /// Volumes whose read cache is off.
    uncached: BTreeSet<u32>,
    cache_switches: CacheSwitches,
    next_volume: u32,
    extents: BTreeMap<(u32, u32), (u64, u64)>,
    allocations: u64,
}

impl Model {
    fn slots(&self) -> u64 {
        self.sets.len() as u64 * u64::from(SLOTS_PER_SET)
    }

    fn owned(&self) -> BTreeSet<(u32, u32)> {
        let columns = self.sets.iter().flatten().copied();
        columns.chain(self.rebuilds.values().map(|(target, _)| *target)).collect()
    }

    fn is_free(&self, chunklet: (u32, u32)) -> bool {
        let (drive, index) = chunklet;
        self.active.get(drive as usize) == Some(&true)
            && u64::from(index) < CHUNKLETS
            && !self.owned().contains(&chunklet)
    }

    fn place(&self, set: u32, column: u32) -> (u32, u32) {
        let target = self.rebuilds.get(&(set, column)).map(|(target, _)| *target);
        target.unwrap_or(self.sets[set as usize][column as usize])
    }

    fn thin_space(&self) -> u64 {
        let missing = |(number, (extents, thin)): (&u32, &(u64, bool))| {
            let mapped = self.extents.range((*number, 0)..=(*number, u32::MAX)).count() as u64;
            if *thin { 0 } else { extents - mapped }
        };
        let reserved: u64 = self.volumes.iter().map(missing).sum();
        let used: BTreeSet<u64> = self.extents.values().map(|(slot, _)| *slot).collect();
        self.slots() - used.len() as u64 - reserved
    }

    fn family(&self, volume: u32) -> (u32, u8) {
        self.branches.get(&volume).copied().unwrap_or((volume, 0))
    }

    fn branch(&mut self, volume: u32, (family, number): (u32, u8)) -> bool {
        let known: Vec<u8> = self
            .volumes
            .keys()
            .map(|other| self.family(*other))
            .filter(|(other, _)| *other == family)
            .map(|(_, number)| number)
            .collect();
        self.branches.insert(volume, (family, number));
        (1..128).contains(&number) && !known.is_empty() && !known.contains(&number)
    }

    fn share(&mut self, of: u32, by: u32, indices: std::ops::Range<u32>) -> bool {
        let is_thin = |volume: u32| {
            self.volumes.get(&volume).is_some_and(|(size, thin)| *thin && u64::from(indices.end) <= *size)
        };
        let is_sound = is_thin(of)
            && is_thin(by)
            && of != by
            && self.family(of).0 == self.family(by).0
            && self.extents.range((by, indices.start)..(by, indices.end)).next().is_none();
        let shared = self.extents.range((of, indices.start)..(of, indices.end));
        let shared: Vec<_> = shared.map(|((_, index), slot)| ((by, *index), *slot)).collect();
        self.extents.extend(shared);
        is_sound
    }

    fn map(&mut self, pairs: &[(ExtentId, SlotRef)]) -> bool {
        let mut changed = self.clone();
        let mut thin = 0;
        for (extent, slot) in pairs {
            let Some((extents, is_thin)) = self.volumes.get(&extent.volume) else { return false };
            let in_use = changed.extents.values().any(|(other, _)| *other == slot.slot);
            let twice = pairs.iter().filter(|(_, other)| other.allocation == slot.allocation).count() > 1;
            let sound = u64::from(extent.index) < *extents
                && slot.slot < self.slots()
                && slot.allocation > 0
                && slot.allocation < self.allocations
                && !in_use
                && !twice
                && changed
                    .extents
                    .insert((extent.volume, extent.index), (slot.slot, slot.allocation))
                    .is_none();
            if !sound {
                return false;
            }
            thin += u64::from(*is_thin);
        }
        if thin > self.thin_space() {
            return false;
        }
        *self = changed;
        true
    }

    fn unmap(&mut self, extents: &[ExtentId]) -> bool {
        let mut changed = self.clone();
        let all =
            extents.iter().all(|extent| changed.extents.remove(&(extent.volume, extent.index)).is_some());
        if all {
            *self = changed;
        }
        all
    }

    fn rebuild(&mut self, set: u32, column: u32, target: (u32, u32)) -> bool {
        if set as usize >= self.sets.len() || column > 1 {
            return false;
        }
        // It goes back to where it is if the drive that it was moving to is lost.
        let is_active = |drive: u32| self.active.get(drive as usize) == Some(&true);
        let under_way = self.rebuilds.get(&(set, column));
        let goes_back = target == self.sets[set as usize][column as usize]
            && is_active(target.0)
            && under_way.is_some_and(|(target, _)| !is_active(target.0));
        if !goes_back && !self.is_free(target) {
            return false;
        }
        if self.place(set, 1 - column).0 == target.0 {
            return false;
        }
        self.rebuilds.insert((set, column), (target, BTreeSet::new()));
        true
    }

    fn finish(&mut self, set: u32, column: u32, home: impl Fn(u64) -> SlotHome) -> bool {
        let Some((target, done)) = self.rebuilds.get(&(set, column)).cloned() else { return false };
        let homes = self.extents.values().map(|(slot, _)| home(*slot)).filter(|home| home.set == set);
        if !self.active[target.0 as usize] || homes.into_iter().any(|home| !done.contains(&home.index)) {
            return false;
        }
        self.rebuilds.remove(&(set, column));
        self.sets[set as usize][column as usize] = target;
        true
    }
}

struct Run<'a> {
    random: &'a mut Random,
    state: PoolState,
    model: Model,
    /// The next allocation, now and then taken twice.
    allocation: u64,
    accepted: u64,
    refused: u64,
}

impl Run<'_> {
    fn below(&mut self, bound: u64) -> u32 {
        self.random.below(bound) as u32
    }

    /// A record, and what it does to the model if that thinks it is sound.
    fn step(&mut self) {
        let (record, model) = self.draw();
        let decoded = record::decode(&record::encode(std::slice::from_ref(&record)));
        assert_eq!(decoded, Some(vec![record.clone()]));
        match (self.state.check(&record), model) {
            (Ok(()), Some(model)) => {
                self.state.apply(record);
                self.model = model;
                self.accepted += 1;
            }
            (Err(_), None) => self.refused += 1,
            (verdict, model) => panic!("{record:?}: {verdict:?}, the model says {}", model.is_some()),
        }
    }

    fn draw(&mut self) -> (MetaRecord, Option<Model>) {
        let mut model = self.model.clone();
        match self.random.below(100) {
            0..2 => {
                let (volume, read_cache) = (self.below(6), self.random.chance(0.5));
                let is_sound = model.volumes.contains_key(&volume);
                model.uncached.retain(|known| *known != volume);
                model.uncached.extend((!read_cache).then_some(volume));
                (MetaRecord::ReadCacheChanged { volume, read_cache }, is_sound.then_some(model))
            }
            2..3 => {
                let [read, write] = [0.6, 0.6].map(|share| self.random.chance(share));
                model.cache_switches = CacheSwitches { read, write };
                (MetaRecord::PoolCacheChanged(model.cache_switches), Some(model))
            }
            3..35 => {
                let (volume, first) = (self.below(6), self.below(20));
                let count = 1 + self.below(4);
                let start = self.random.below(self.model.slots() + 2);
                let pairs: Vec<_> = (0..count)
                    .map(|i| {
                        self.allocation += u64::from(!self.random.chance(0.02));
                        let jump = if self.random.chance(0.2) { 5 } else { 0 };
                        (extent(volume, first + i), slot(start + u64::from(i) + jump, self.allocation))
                    })
                    .collect();
                let is_sound = model.map(&pairs);
                (MetaRecord::map(pairs), is_sound.then_some(model))
            }
            35..42 => {
                let (of, by, first) = (self.below(6), self.below(6), self.below(20));
                let count = 1 + self.below(8);
                let is_sound = model.share(of, by, first..first + count);
                let run = SharedRun { of, first: extent(by, first), count };
                (MetaRecord::ShareExtents(vec![run]), is_sound.then_some(model))
            }
            42..55 => {
                let (volume, first) = (self.below(6), self.below(20));
                let extents: Vec<_> = (0..1 + self.below(3)).map(|i| extent(volume, first + i)).collect();
                let is_sound = model.unmap(&extents);
                (MetaRecord::unmap(extents), is_sound.then_some(model))
            }
            55..62 => {
                let (set, column) = (self.below(6), self.below(3));
                let target = (self.below(6), self.below(CHUNKLETS + 1));
                let is_sound = model.rebuild(set, column, target);
                let target = chunklet(target.0, target.1);
                (MetaRecord::ColumnRebuilding { set, column, target }, is_sound.then_some(model))
            }
            62..70 => {
                let (set, column, start) = (self.below(6), self.below(2), self.below(4));
                let range = start..start + 1 + self.below(4);
                let is_sound = range.end <= SLOTS_PER_SET && model.rebuilds.contains_key(&(set, column));
                if let Some((_, done)) = model.rebuilds.get_mut(&(set, column)) {
                    done.extend(range.clone());
                }
                let ranges = vec![range];
                (MetaRecord::SlotsRebuilt { set, column, ranges }, is_sound.then_some(model))
            }
            70..76 => {
                let (set, column) = (self.below(6), self.below(2));
                let state = &self.state;
                let is_sound = model.finish(set, column, |slot| state.slot_home(slot).expect("it exists"));
                (MetaRecord::ColumnRebuilt { set, column, with_lost_pages: false }, is_sound.then_some(model))
            }
            76..79 => {
                let member = self.below(7);
                let is_sound = model.active.get(member as usize) == Some(&true) && self.random.chance(0.3);
                if !is_sound && model.active.get(member as usize) == Some(&true) {
                    return self.draw();
                }
                if is_sound {
                    model.active[member as usize] = false;
                }
                (MetaRecord::MemberLost { member }, is_sound.then_some(model))
            }
            79..82 => {
                let number = model.active.len() as u32 + u32::from(self.random.chance(0.1)) * 50;
                model.active.push(true);
                model.removed.push(false);
                (MetaRecord::MemberAdded(member(number)), Some(model))
            }
            82..84 => {
                let member = self.below(7);
                let known = (member as usize) < model.active.len() && !model.removed[member as usize];
                let is_sound = known && model.owned().iter().all(|(drive, _)| *drive != member);
                if is_sound {
                    model.removed[member as usize] = true;
                    model.active[member as usize] = false;
                }
                (MetaRecord::MemberRemoved { member }, is_sound.then_some(model))
            }
            84..86 => {
                let (number, branch) = (self.model.next_volume, (self.below(6), self.below(4) as u8));
                let is_sound = model.branch(number, branch);
                model.volumes.insert(number, (20, true));
                model.next_volume = number + 1;
                let branch = Some(Branch { family: branch.0, number: branch.1 });
                let record = MetaRecord::VolumeCreated(Volume { branch, ..volume(number, 20, true) });
                (record, is_sound.then_some(model))
            }
            86..89 => {
                let (number, extents, thin) = (
                    self.model.next_volume + self.below(2),
                    1 + self.random.below(20),
                    self.random.chance(0.8),
                );
                let is_sound = thin || extents <= model.thin_space();
                model.volumes.insert(number, (extents, thin));
                model.next_volume = number + 1;
                (MetaRecord::VolumeCreated(volume(number, extents, thin)), is_sound.then_some(model))
            }
            89..93 => {
                let number = self.below(u64::from(self.model.next_volume) + 1);
                let is_sound = model.volumes.remove(&number).is_some();
                model.branches.remove(&number);
                model.uncached.remove(&number);
                model.extents.retain(|(volume, _), _| *volume != number);
                (MetaRecord::VolumeDeleted { volume: number }, is_sound.then_some(model))
            }
            93..96 => {
                let (number, extents) = (self.below(6), 1 + self.random.below(25));
                let space = model.thin_space();
                let last =
                    model.extents.range((number, 0)..=(number, u32::MAX)).next_back().map(|((_, i), _)| *i);
                let is_sound = model.volumes.get_mut(&number).is_some_and(|(size, thin)| {
                    let fits = *thin || extents.saturating_sub(*size) <= space;
                    *size = extents;
                    fits && last.is_none_or(|last| u64::from(last) < extents)
                });
                let sectors = extents * EXTENT_SECTORS;
                (MetaRecord::VolumeResized { volume: number, sectors }, is_sound.then_some(model))
            }
            96..98 => {
                let drives = [self.below(6), self.below(6)];
                let columns = drives.map(|drive| (drive, self.below(CHUNKLETS)));
                let left = |drive: u32| {
                    CHUNKLETS - model.owned().iter().filter(|(other, _)| *other == drive).count() as u64
                };
                let is_sound = drives[0] != drives[1]
                    && columns.iter().all(|chunklet| model.is_free(*chunklet))
                    && drives.iter().all(|drive| left(*drive) >= 2);
                model.sets.push(columns);
                let columns = columns.map(|(drive, index)| chunklet(drive, index)).to_vec();
                (MetaRecord::SetsAdded { columns, sets_per_band: 1, group: 0 }, is_sound.then_some(model))
            }
            _ => {
                let end = self.allocation + self.random.below(200);
                let is_sound = end >= model.allocations;
                model.allocations = end;
                (MetaRecord::AllocationsReserved { end }, is_sound.then_some(model))
            }
        }
    }

    fn compare(&self) {
        self.state.verify().expect("sound");
        let extents: BTreeMap<(u32, u32), (u64, u64)> = self
            .state
            .volumes()
            .flat_map(|volume| {
                let map = self.state.map(volume.number).expect("every volume has one");
                map.iter().map(|(index, slot)| ((volume.number, index), (slot.slot, slot.allocation)))
            })
            .collect();
        assert_eq!(extents, self.model.extents);
        for slot in 0..self.state.slot_count() {
            let owners = extents.iter().filter(|(_, (other, _))| *other == slot);
            let owners: Vec<ExtentId> = owners.map(|((volume, index), _)| extent(*volume, *index)).collect();
            assert!(self.state.owners(slot).eq(owners.iter().copied()));
            assert_eq!(self.state.is_shared(slot), owners.len() > 1);
        }
        assert_eq!(
            self.state.free_slot_count_of(0) - self.state.reserved_slot_count(),
            self.model.thin_space()
        );
        for (set, columns) in (0u32..).zip(&self.model.sets) {
            for (column, place) in (0u32..).zip(columns) {
                assert_eq!(self.state.column(set, column), chunklet(place.0, place.1));
            }
        }
        for volume in self.state.volumes() {
            let uses = self.model.cache_switches.read && !self.model.uncached.contains(&volume.number);
            assert_eq!(self.state.caching(volume).read, uses);
        }
        for (drive, is_active) in (0u32..).zip(&self.model.active) {
            assert_eq!(self.state.is_active(drive), *is_active);
            let owned = self.model.owned().iter().filter(|(other, _)| *other == drive).count() as u64;
            let free = if *is_active { CHUNKLETS - owned } else { 0 };
            assert_eq!(self.state.free_chunklets(drive), free);
        }
        let back = image::decode(&image::encode(&self.state)).expect("a checkpoint").expect("sound");
        assert_eq!(back, self.state);
    }
}

#[test]
fn random_records_agree_with_the_model() {
    let (mut accepted, mut refused) = (0, 0);
    for seed in 0..100 {
        let mut random = Random::new(seed, 0);
        let mut run = Run {
            random: &mut random,
            state: empty(4),
            model: Model {
                active: vec![true; 4],
                removed: vec![false; 4],
                allocations: 1,
                ..Model::default()
            },
            allocation: 0,
            accepted: 0,
            refused: 0,
        };
        for step in 0..600 {
            run.step();
            if step % 20 == 0 {
                run.compare();
            }
        }
        run.compare();
        (accepted, refused) = (accepted + run.accepted, refused + run.refused);
    }
    assert!(accepted > 5_000 && refused > 5_000, "{accepted} accepted, {refused} refused");
}
