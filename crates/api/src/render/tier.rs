//! What is told of a tier.

use crate::tier::{TierExplanation, TierHold, TierReason, VolumePlace};

impl TierHold {
    /// Why nothing moves to the fast group, as a sentence with the remedy.
    pub fn text(self) -> &'static str {
        match self {
            TierHold::Off => "the tier is off; \"tier0 pool tier ARRAY.TOML on\" switches it on",
            TierHold::Rebuild => "drives are being rebuilt; moves go on when that has ended",
            TierHold::FastIsSlower => {
                "hosts wait longer for reads of the fast group than of the slow one; if that lasts, see in \"tier0 iostat\" what \
                 its drives do, and add flash drives"
            }
            TierHold::DailyWrites => {
                "the flash has taken the writes that a day allows; moves go on as the allowance returns \
                 (flash_cache_writes in the array file sets it)"
            }
            TierHold::NoRoom => {
                "the fast group is full, and all that lies there is pinned or belongs there; add drives to it, or unpin some \
                 (tier0 volume unpin ARRAY.TOML VOLUME)"
            }
        }
    }
}

impl TierReason {
    /// In a few words.
    pub fn text(self) -> &'static str {
        match self {
            TierReason::Hot => "hot",
            TierReason::GivesWay => "makes room",
            TierReason::Placed => "placed by hand",
        }
    }
}

impl VolumePlace {
    /// As it is set.
    pub fn text(self) -> &'static str {
        match self {
            VolumePlace::Slow => "slow",
            VolumePlace::Auto => "auto",
            VolumePlace::Fast => "fast",
        }
    }
}

impl TierExplanation {
    /// What will happen to the extent, and what would change that, as a sentence.
    pub fn verdict(&self) -> String {
        if self.group.is_none() {
            return "nothing was written here yet, so it lies nowhere".to_owned();
        }
        match (self.place, self.is_fast) {
            // A volume of the fast group has no other place.
            (_, true) if self.is_home => "it stays: its volume belongs here".to_owned(),
            (VolumePlace::Slow, _) if !self.is_home => {
                "it moves to its own group as soon as there is room".to_owned()
            }
            (VolumePlace::Fast, true) | (VolumePlace::Slow, _) => {
                let by = if self.is_pinned { "it is pinned here" } else { "its volume is to lie here" };
                format!("it stays: {by}")
            }
            (VolumePlace::Fast, false) => "it moves to the fast group as soon as there is room".to_owned(),
            (VolumePlace::Auto, is_fast) => self.verdict_of_policy(is_fast),
        }
    }

    fn verdict_of_policy(&self, is_fast: bool) -> String {
        let value = self.value;
        if is_fast {
            return format!(
                "it stays until an extent of its own group is worth enough more than its {value:.1} drive I/Os"
            );
        }
        let hold =
            self.hold.map(|hold| format!("; for now nothing moves: {}", hold.text())).unwrap_or_default();
        match self.cutoff {
            None => format!("it stays{hold}; no value is known yet that would be enough to move"),
            Some(cutoff) if value < cutoff => format!(
                "it stays: it is worth {value:.1} drive I/Os, and {cutoff:.1} are needed to move to the fast group{hold}"
            ),
            Some(cutoff) => format!(
                "it is to move to the fast group: it is worth {value:.1} drive I/Os, and {cutoff:.1} are enough{hold}"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_says_what_is_needed() {
        let explained = |place, is_fast, value, hold| TierExplanation {
            volume: "lun0".into(),
            offset_bytes: 0,
            extent_bytes: 1 << 20,
            group: Some("slow".into()),
            is_fast,
            is_home: !is_fast,
            since_s: None,
            place,
            is_pinned: false,
            pinned_until_unix_s: None,
            reads: value,
            writes: 0.0,
            value,
            cutoff: Some(40.0),
            hold,
            moves: Vec::new(),
        };
        let told = |place, is_fast, value, hold| explained(place, is_fast, value, hold).verdict();
        assert!(
            told(VolumePlace::Auto, false, 12.0, None).contains("worth 12.0 drive I/Os, and 40.0 are needed")
        );
        assert!(told(VolumePlace::Auto, false, 50.0, None).starts_with("it is to move"));
        assert!(told(VolumePlace::Auto, true, 50.0, None).starts_with("it stays until"));
        assert!(
            told(VolumePlace::Auto, false, 50.0, Some(TierHold::Off))
                .contains("tier0 pool tier ARRAY.TOML on")
        );
        assert!(told(VolumePlace::Slow, true, 50.0, None).contains("own group"));
        assert!(told(VolumePlace::Fast, true, 0.0, None).contains("volume is to lie here"));
    }
}
