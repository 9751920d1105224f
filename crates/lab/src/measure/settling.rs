//! Which write caches the loads of a configuration write into.

use tier0_units::SectorCount;
use tier0_world::World;

use super::assemble::Assembled;
use crate::settle::{Filling, WriteCaches};
use crate::study::Setup;

/// The write caches of `setup`: that of a group of sets in every member together, or the one that all groups share. None
/// where nothing is written into one.
pub(super) fn write_caches(world: &World, setup: &Setup, assembled: &Assembled) -> Option<WriteCaches> {
    let groups = std::iter::once(&assembled.group).chain(&assembled.neighbours);
    let mut parts: Vec<Vec<Filling>> = Vec::new();
    for ((sets, group), cached) in setup.set_groups().iter().zip(groups).zip(&assembled.writes_are_cached) {
        if !cached || !sets.writes() {
            continue;
        }
        let granule = sets.requests.block.size_max();
        let sectors = SectorCount::in_bytes(granule).0;
        let align = SectorCount::in_bytes(sets.requests.alignment.unwrap_or(granule)).0.max(1);
        let members = group.members().iter();
        let caches = members.map(|member| Filling::anywhere(member.volumes.clone(), sectors, align));
        match parts.first_mut() {
            Some(all) if setup.caches.write_is_shared => all.extend(caches),
            _ => parts.push(caches.collect()),
        }
    }
    WriteCaches::new(world, parts)
}
