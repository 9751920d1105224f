//! Which sectors of a write survive: how the subset is drawn.
//!
//! Sectors drawn one by one never produce "everything but the first write", and whole writes never produce a torn
//! one; so the manner is drawn first, and then what it leaves open.

use tier0_world::Random;

/// How a power cut chooses what it keeps of the writes that are not stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerCut {
    /// Nothing.
    KeepNothing,
    /// Everything, commands under way included.
    KeepAll,
    /// What had completed, and of the commands under way a random part.
    KeepCompleted,
    /// Each write whole or not at all.
    Writes,
    /// Each write whole, in part, or not at all.
    Torn,
    /// Each sector by itself.
    Sectors,
    /// Only the youngest writes: those that the drive took first are lost.
    Youngest,
    /// One of the above, drawn anew.
    Any,
}

impl PowerCut {
    /// Chooses the manner where it is open.
    pub(super) fn drawn(self, random: &mut Random) -> PowerCut {
        if self != PowerCut::Any {
            return self;
        }
        match random.below(16) {
            0 => PowerCut::KeepNothing,
            1 => PowerCut::KeepAll,
            2..4 => PowerCut::KeepCompleted,
            4..7 => PowerCut::Writes,
            7..11 => PowerCut::Torn,
            11..14 => PowerCut::Sectors,
            _ => PowerCut::Youngest,
        }
    }
}

/// What becomes of one write, sector by sector.
#[derive(Clone, Debug)]
pub(super) enum Fate {
    Kept,
    Lost,
    /// The sectors before this one stay.
    Front(u64),
    /// The sectors from this one on stay.
    Back(u64),
    /// Each sector stays with this probability.
    Each(f64),
}

impl Fate {
    /// Any part of a write of `sectors` sectors.
    pub(super) fn any(sectors: u64, random: &mut Random) -> Fate {
        match random.below(6) {
            0 => Fate::Kept,
            1 => Fate::Lost,
            2 => Fate::Front(random.below(sectors + 1)),
            3 => Fate::Back(random.below(sectors + 1)),
            _ => Fate::Each(random.unit()),
        }
    }

    /// Whether sector `index` of the write stays.
    pub(super) fn keeps(&self, index: u64, random: &mut Random) -> bool {
        match self {
            Fate::Kept => true,
            Fate::Lost => false,
            Fate::Front(end) => index < *end,
            Fate::Back(first) => index >= *first,
            Fate::Each(probability) => random.chance(*probability),
        }
    }
}

/// The fates of all writes of one power cut, drawn as they are asked for.
pub(super) struct Fates {
    manner: PowerCut,
    /// Share of the writes that stay, where each is drawn.
    share: f64,
    /// The first write that stays, where only the youngest do.
    youngest_from: u64,
}

impl Fates {
    /// The fates of writes numbered in the order in which the drive took them, from `first` up to `end`.
    pub(super) fn new(manner: PowerCut, first: u64, end: u64, random: &mut Random) -> Fates {
        let manner = manner.drawn(random);
        let youngest_from = first + random.below(end.saturating_sub(first) + 1);
        Fates { manner, share: random.unit(), youngest_from }
    }

    /// What becomes of write `id` of `sectors` sectors.
    pub(super) fn of(&self, id: u64, sectors: u64, completed: bool, random: &mut Random) -> Fate {
        let whole = |kept: bool| if kept { Fate::Kept } else { Fate::Lost };
        match self.manner {
            PowerCut::KeepNothing => Fate::Lost,
            PowerCut::KeepAll => Fate::Kept,
            PowerCut::KeepCompleted if completed => Fate::Kept,
            PowerCut::Writes => whole(random.chance(self.share)),
            PowerCut::Sectors => Fate::Each(self.share),
            PowerCut::Youngest => whole(id >= self.youngest_from),
            PowerCut::KeepCompleted | PowerCut::Torn | PowerCut::Any => Fate::any(sectors, random),
        }
    }
}
