//! The drives of a run, as they lie on the shelf between the array's lives: in it, gone, or taken out.

use std::collections::BTreeMap;

use tier0_drive::DriveHandle;
use tier0_drive::sim::{MediumImage, PowerSwitch, SimMedium, SimOptions};
use tier0_units::{Lba, SectorCount};
use tier0_world::{Random, World};

use crate::config::{Crash, SimConfig};

/// Where the superblocks at the front of a drive begin (docs/format.md).
const SUPERBLOCKS: [Lba; 2] = [Lba(128), Lba(256)];

/// Where a drive is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whereabouts {
    /// In the array, as far as anybody but the array knows.
    In,
    /// It answers no more; the array may not have noticed.
    Gone,
    /// Out of the array, which knows it; it may come back with what it held.
    Out,
}

struct Placed {
    medium: SimMedium,
    whereabouts: Whereabouts,
    /// Its handle in the present world.
    handle: Option<DriveHandle>,
}

/// All drives of a run, by name.
pub(crate) struct Shelf {
    options: SimOptions,
    switch: PowerSwitch,
    drives: BTreeMap<String, Placed>,
    made: usize,
    seed: u64,
}

/// The name of the n-th drive of a run. Two digits, so that names sort as numbers do.
pub(crate) fn drive_name(number: usize) -> String {
    format!("d{number:02}")
}

impl Shelf {
    /// The drives that the array begins with, full of zeros.
    pub(crate) fn new(config: &SimConfig) -> Shelf {
        let mut options = SimOptions::new("", SectorCount(config.array.drive_sectors), 0);
        options.info.block_sectors = config.array.block_sectors;
        options.info.volatile_cache = config.drives.volatile_cache;
        options.info.discard_zeroes = config.drives.discard_zeroes;
        options.gains_by_discard = config.mixture.moving;
        options.latency = config.drives.latency.clone();
        let switch = PowerSwitch::new();
        let mut shelf = Shelf { options, switch, drives: BTreeMap::new(), made: 0, seed: config.seed };
        for _ in 0..config.array.drives {
            shelf.make();
        }
        shelf
    }

    /// A blank drive more; its name.
    pub(crate) fn make(&mut self) -> String {
        let name = drive_name(self.made);
        let mut options = self.options.clone();
        options.info.name.clone_from(&name);
        options.seed = Random::new(self.seed, 0xd00 + self.made as u64).bits();
        self.made += 1;
        let medium = SimMedium::new(options, &self.switch);
        self.drives.insert(name.clone(), Placed { medium, whereabouts: Whereabouts::In, handle: None });
        name
    }

    pub(crate) fn switch(&self) -> &PowerSwitch {
        &self.switch
    }

    /// Opens all drives that are in the array, and those that are back, in any order.
    pub(crate) fn open(&mut self, world: &World, random: &mut Random) -> Vec<DriveHandle> {
        let mut handles = Vec::new();
        for placed in self.drives.values_mut() {
            let handle = placed.medium.open(world);
            if placed.whereabouts == Whereabouts::In {
                let at = random.below(handles.len() as u64 + 1) as usize;
                handles.insert(at, handle.clone());
            }
            placed.handle = Some(handle);
        }
        handles
    }

    /// The handle of a drive in the present world, opened if it is new there.
    pub(crate) fn handle(&mut self, name: &str, world: &World) -> DriveHandle {
        let placed = self.drives.get_mut(name).expect("a drive of this run");
        placed.handle.get_or_insert_with(|| placed.medium.open(world)).clone()
    }

    /// A fresh handle of a drive in the present world.
    pub(crate) fn reopened(&mut self, name: &str, world: &World) -> DriveHandle {
        let placed = self.drives.get_mut(name).expect("a drive of this run");
        placed.handle.insert(placed.medium.open(world)).clone()
    }

    pub(crate) fn medium(&self, name: &str) -> SimMedium {
        self.drives[name].medium.clone()
    }

    /// The drives at a place, in the order of their names.
    pub(crate) fn names(&self, whereabouts: Whereabouts) -> Vec<String> {
        let there = self.drives.iter().filter(|(_, placed)| placed.whereabouts == whereabouts);
        there.map(|(name, _)| name.clone()).collect()
    }

    /// The drives of the array that have forgotten both copies of their superblock at the front. Where a chunklet has the place of
    /// the last copy, nothing tells who they are.
    pub(crate) fn names_without_front(&self) -> Vec<String> {
        let is_blank = |name: &String| {
            SUPERBLOCKS.into_iter().all(|at| {
                let mut begin = [0; 8];
                self.medium(name).peek(at, &mut begin);
                begin == [0; 8]
            })
        };
        let mut names = self.names(Whereabouts::In);
        names.retain(is_blank);
        names
    }

    /// Takes note of where a drive is now.
    pub(crate) fn put(&mut self, name: &str, whereabouts: Whereabouts) {
        let placed = self.drives.get_mut(name).expect("a drive of this run");
        if whereabouts == Whereabouts::In && placed.medium.is_gone() {
            placed.medium.reconnect();
        }
        if whereabouts == Whereabouts::Gone && !placed.medium.is_gone() {
            placed.medium.disconnect();
        }
        placed.whereabouts = whereabouts;
    }

    /// The array died: the world that had the drives open is gone.
    pub(crate) fn crash(&mut self, crash: Crash) {
        for placed in self.drives.values_mut() {
            placed.handle = None;
            placed.medium.clear_plans();
            match crash {
                Crash::Power(manner) => placed.medium.power_cut(manner),
                Crash::Kill => placed.medium.kill(),
            }
            placed.medium.come_clean();
        }
        self.switch.restore();
    }

    /// Ends what goes wrong with commands; what is gone stays so.
    pub(crate) fn calm(&self) {
        self.come_clean();
        for placed in self.drives.values() {
            placed.medium.clear_plans();
        }
    }

    /// No drive lies any more about what is stable, and it is.
    pub(crate) fn come_clean(&self) {
        self.drives.values().for_each(|placed| placed.medium.come_clean());
    }

    /// A hash of what each drive holds.
    pub(crate) fn fingerprints(&self) -> BTreeMap<String, u64> {
        self.drives.iter().map(|(name, placed)| (name.clone(), placed.medium.fingerprint())).collect()
    }

    /// Copies of all drives, to be put back with [`Shelf::restore`].
    pub(crate) fn images(&self) -> BTreeMap<String, MediumImage> {
        self.drives.iter().map(|(name, placed)| (name.clone(), placed.medium.image())).collect()
    }

    /// Puts drives back to what they held; no world uses them.
    pub(crate) fn restore<'a>(&self, images: impl IntoIterator<Item = (&'a String, &'a MediumImage)>) {
        for (name, image) in images {
            self.drives[name].medium.restore(image);
        }
    }

    /// What was injected into each drive, a line per fault.
    pub(crate) fn ledger(&self) -> Vec<String> {
        let lines = self.drives.iter().flat_map(|(name, placed)| {
            placed.medium.ledger().iter().map(|entry| format!("{name} {entry}")).collect::<Vec<_>>()
        });
        lines.collect()
    }
}
