//! Where volumes are to lie in a pool of several groups, and the settings of its tier. They are wishes: where extents do lie is in
//! the map alone, so nothing is wrong where a wish is lost.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::state::{MetaError, PoolState};

/// The most pins of a volume.
pub const PINS_MAX: usize = 64;

/// Where the extents of a volume are to lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Place {
    /// In the volume's group.
    #[default]
    Home,
    /// Some in its group, some in the fast group, as the tier's policy says.
    Auto,
    /// In the fast group.
    Fast,
}

/// Extents of a volume that are to lie elsewhere than the rest of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    /// Their numbers in the volume.
    pub extents: Range<u32>,
    /// Where they are to lie: [`Place::Fast`] or [`Place::Home`].
    pub to: Place,
    /// Until when, in seconds since 1970; for ever where that is 0.
    pub until_unix_s: u64,
}

/// Where a volume is to lie.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// All of it but what is pinned.
    pub place: Place,
    /// In the order of their extents, of which none is in two.
    pub pins: Vec<Pin>,
}

/// How the tier of a pool works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TierSettings {
    /// Whether extents of [`Place::Auto`] move.
    pub is_on: bool,
    /// Bytes per second that may move between groups; 0 for no limit but the load of hosts.
    pub rate_bytes_per_s: u64,
}

impl Default for TierSettings {
    /// It is on, without a limit of its own.
    fn default() -> TierSettings {
        TierSettings { is_on: true, rate_bytes_per_s: 0 }
    }
}

/// A text that names no place.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0:?} is not a place; use auto, fast or slow")]
pub struct UnknownPlace(String);

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Place {
    type Err = UnknownPlace;

    fn from_str(text: &str) -> Result<Place, UnknownPlace> {
        let named = Place::ALL.into_iter().find(|place| place.name() == text);
        named.ok_or_else(|| UnknownPlace(text.to_owned()))
    }
}

impl Place {
    /// All places, by their numbers on drives.
    const ALL: [Place; 3] = [Place::Home, Place::Auto, Place::Fast];

    /// The name in array files and commands.
    pub const fn name(self) -> &'static str {
        match self {
            Place::Home => "slow",
            Place::Auto => "auto",
            Place::Fast => "fast",
        }
    }

    /// Its number on drives.
    pub(crate) fn code(self) -> u8 {
        self as u8
    }

    pub(crate) fn from_code(code: u8) -> Option<Place> {
        Place::ALL.get(usize::from(code)).copied()
    }
}

impl Pin {
    /// Whether it holds at a time.
    pub fn holds_at(&self, unix_s: u64) -> bool {
        self.until_unix_s == 0 || unix_s < self.until_unix_s
    }
}

impl Placement {
    /// Where an extent is to lie at a time.
    pub fn of(&self, extent: u32, unix_s: u64) -> Place {
        let own = self.pins.iter().find(|pin| pin.extents.contains(&extent) && pin.holds_at(unix_s));
        own.map_or(self.place, |pin| pin.to)
    }

    /// Whether there is nothing to be said.
    pub fn is_default(&self) -> bool {
        *self == Placement::default()
    }

    /// The same without pins that have ended.
    pub fn at(mut self, unix_s: u64) -> Placement {
        self.pins.retain(|pin| pin.holds_at(unix_s));
        self
    }

    /// The same with another pin. What others say of its extents does not hold any more.
    pub fn with(mut self, pin: Pin) -> Placement {
        self = self.without(&pin.extents);
        let place = self.pins.partition_point(|other| other.extents.start < pin.extents.start);
        self.pins.insert(place, pin);
        self
    }

    /// The same without pins of these extents.
    pub fn without(mut self, extents: &Range<u32>) -> Placement {
        let cut = |pin: Pin| {
            let before = pin.extents.start..pin.extents.end.min(extents.start);
            let behind = pin.extents.start.max(extents.end)..pin.extents.end;
            let parts = [before, behind].into_iter().filter(|part| !part.is_empty());
            parts.map(move |extents| Pin { extents, ..pin.clone() })
        };
        self.pins = self.pins.into_iter().flat_map(cut).collect();
        self
    }

    fn is_sound(&self) -> bool {
        let in_order = self.pins.windows(2).all(|pair| pair[0].extents.end <= pair[1].extents.start);
        let are_pins = |pin: &Pin| !pin.extents.is_empty() && pin.to != Place::Auto;
        in_order && self.pins.len() <= PINS_MAX && self.pins.iter().all(are_pins)
    }
}

impl PoolState {
    /// Where a volume is to lie.
    pub fn placement(&self, volume: u32) -> Placement {
        self.inventory.placements.get(&volume).cloned().unwrap_or_default()
    }

    /// The volumes of which something else is said than that they lie in their group.
    pub fn placements(&self) -> impl Iterator<Item = (u32, &Placement)> {
        self.inventory.placements.iter().map(|(volume, placement)| (*volume, placement))
    }

    /// Extents of a group that belong to volumes of other groups, lie here because a tier has moved them, and may be moved back.
    pub fn lent_to_tier(&self, group: u32) -> u64 {
        let are_auto = self.placements().filter(|(_, placement)| placement.place == Place::Auto);
        let here = are_auto.flat_map(|(volume, _)| self.away_of(volume)).filter(|(own, _)| *own == group);
        here.map(|(_, count)| count).sum()
    }

    /// How the tier works.
    pub fn tier(&self) -> TierSettings {
        self.inventory.tier
    }

    pub(super) fn check_placement(&self, volume: u32, placement: &Placement) -> Result<(), MetaError> {
        self.check_volume(volume)?;
        match placement.is_sound() {
            true => Ok(()),
            false => Err(MetaError::Contradiction { fact: format!("the pins of volume {volume}") }),
        }
    }

    pub(super) fn place_volume(&mut self, volume: u32, placement: Placement) {
        match placement.is_default() {
            true => self.inventory.placements.remove(&volume),
            false => self.inventory.placements.insert(volume, placement),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pin(extents: Range<u32>, to: Place, until_unix_s: u64) -> Pin {
        Pin { extents, to, until_unix_s }
    }

    #[test]
    fn the_last_pin_of_an_extent_counts_until_it_ends() {
        let placement = Placement { place: Place::Auto, pins: Vec::new() };
        let placement = placement.with(pin(10..20, Place::Fast, 0)).with(pin(14..16, Place::Home, 100));
        let extents: Vec<Range<u32>> = placement.pins.iter().map(|pin| pin.extents.clone()).collect();
        assert_eq!(extents, [10..14, 14..16, 16..20]);
        let places: Vec<Place> = [9, 10, 14, 19].map(|extent| placement.of(extent, 99)).into();
        assert_eq!(places, [Place::Auto, Place::Fast, Place::Home, Place::Fast]);
        assert_eq!(placement.of(14, 100), Place::Auto, "it has ended");
        assert!(placement.is_sound());
        assert_eq!(placement.clone().at(100).pins.len(), 2);
        assert_eq!(placement.without(&(0..u32::MAX)).pins, []);
    }
}
