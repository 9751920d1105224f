//! Where the flash read cache lies: chunklets of members, unprotected. Nothing of it is needed by anybody, so a member that is
//! lost takes its part with it.

use std::collections::BTreeSet;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use tier0_units::SECTOR_BYTES;
use uuid::Uuid;

use crate::ChunkletAddress;
use crate::state::derive::{Owner, taken};
use crate::state::{MetaError, PoolState};

/// The place of the flash read cache. Without devices there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlashCachePlacement {
    /// Its devices, at most one of each member, by member.
    pub devices: Vec<FlashCacheDevice>,
}

/// The part of a flash read cache that lies on a member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlashCacheDevice {
    /// Its identity; one that is made anew gets a new one.
    pub id: Uuid,
    /// The member that it lies on.
    pub member: u32,
    /// What the device must say to be believed. It changes at each opening, and when the device has missed something.
    pub epoch: u64,
    /// Its chunklets on that drive, in the order in which it uses them.
    pub chunklets: Vec<Range<u32>>,
}

impl FlashCacheDevice {
    /// The chunklets, in the order in which it uses them.
    pub fn addresses(&self) -> impl Iterator<Item = ChunkletAddress> + '_ {
        let drive = self.member;
        self.chunklets.iter().cloned().flatten().map(move |index| ChunkletAddress { drive, index })
    }

    /// How many chunklets it has.
    pub fn chunklet_count(&self) -> u64 {
        self.chunklets.iter().map(|run| run.len() as u64).sum()
    }
}

impl FlashCachePlacement {
    /// The part on a member.
    pub fn on(&self, member: u32) -> Option<&FlashCacheDevice> {
        self.devices.iter().find(|device| device.member == member)
    }

    /// The same without the part on a member.
    #[must_use]
    pub fn without(&self, member: u32) -> FlashCachePlacement {
        let others = self.devices.iter().filter(|device| device.member != member);
        FlashCachePlacement { devices: others.cloned().collect() }
    }

    /// The same with this device in the place of the one on its member, if there is one.
    #[must_use]
    pub fn with(&self, device: FlashCacheDevice) -> FlashCachePlacement {
        let mut placement = self.without(device.member);
        let at = placement.devices.partition_point(|other| other.member < device.member);
        placement.devices.insert(at, device);
        placement
    }

    /// The chunklets of all devices.
    pub fn addresses(&self) -> impl Iterator<Item = ChunkletAddress> + '_ {
        self.devices.iter().flat_map(FlashCacheDevice::addresses)
    }
}

impl PoolState {
    /// Where the flash read cache lies.
    pub fn flash_cache(&self) -> &FlashCachePlacement {
        &self.inventory.flash_cache
    }

    /// Bytes of the flash cache's chunklets on a member.
    pub fn flash_cache_bytes(&self, member: u32) -> u64 {
        let chunklets = self.flash_cache().on(member).map_or(0, FlashCacheDevice::chunklet_count);
        chunklets * self.geometry.chunklet_sectors * SECTOR_BYTES
    }

    /// Whether a placement can be, whatever else the chunklets are used for.
    pub(crate) fn check_flash_cache_shape(&self, placement: &FlashCachePlacement) -> Result<(), MetaError> {
        let refuse = |fact: String| Err(MetaError::BadFlashCache { fact });
        let mut ids = BTreeSet::new();
        if !placement.devices.is_sorted_by(|one, next| one.member < next.member) {
            return refuse("its devices are not in the order of their drives, one on each".to_owned());
        }
        for device in &placement.devices {
            let member = self.check_member(device.member)?;
            let chunklets = self.geometry.chunklets(member.sectors);
            let is_inside = |run: &Range<u32>| run.start < run.end && u64::from(run.end) <= chunklets;
            if device.chunklets.is_empty() || !device.chunklets.iter().all(is_inside) {
                return refuse(format!("it has chunklets that drive {} has not", device.member));
            }
            let mut runs: Vec<(u32, u32)> = device.chunklets.iter().map(|run| (run.start, run.end)).collect();
            runs.sort_unstable();
            if runs.windows(2).any(|pair| pair[0].1 > pair[1].0) {
                return refuse(format!("it has a chunklet of drive {} twice", device.member));
            }
            if !ids.insert(device.id) {
                return refuse(format!("two devices have the identity {}", device.id));
            }
        }
        Ok(())
    }

    /// Whether the flash read cache may lie there now.
    pub(crate) fn check_flash_cache(&self, placement: &FlashCachePlacement) -> Result<(), MetaError> {
        self.check_flash_cache_shape(placement)?;
        for device in &placement.devices {
            self.check_active(device.member)?;
        }
        for chunklet in placement.addresses() {
            match self.inventory.owners.get(&chunklet) {
                None | Some(Owner::FlashCache) => {}
                Some(owner) => return Err(taken(chunklet, *owner)),
            }
        }
        Ok(())
    }

    pub(crate) fn place_flash_cache(&mut self, placement: FlashCachePlacement) {
        let before: Vec<ChunkletAddress> = self.inventory.flash_cache.addresses().collect();
        before.iter().for_each(|chunklet| _ = self.inventory.owners.remove(chunklet));
        let after = placement.addresses().map(|chunklet| (chunklet, Owner::FlashCache));
        self.inventory.owners.extend(after);
        self.inventory.flash_cache = placement;
    }
}
