//! `KEY=VALUE` on the command line: what can be set of a volume or a pool that is served.

use tier0_api::{AdminRequest, VolumePlace};
use tier0_catalog::similar;
use tier0_pool::{WEIGHT_MAX, is_weight};
use tier0_units::WriteCache;

use crate::failure::Failure;

/// Something that can be set.
pub(super) struct Key<T: 'static> {
    /// Its name: what it is of, a dot, and which of that.
    name: &'static str,
    /// Its values by their names.
    values: &'static [(&'static str, T)],
}

/// Something that can be set to a whole number, or to none.
struct NumberKey {
    name: &'static str,
    /// What stands for the number in help.
    number: &'static str,
}

/// Requests of hosts per second.
const IOPS_MAX: NumberKey = NumberKey { name: "iops.max", number: "N" };
/// Megabytes (10^6 bytes) per second.
const MBPS_MAX: NumberKey = NumberKey { name: "mbps.max", number: "N" };
/// How long an unused budget of these lasts.
const BURST: NumberKey = NumberKey { name: "burst", number: "SECONDS" };

/// What a volume gets in comparison with others.
const WEIGHT: &str = "weight";

/// What is to be set of a volume.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct VolumeChange {
    /// Whether its reads use the read cache.
    read: Option<bool>,
    /// When its writes are acknowledged.
    write: Option<WriteCache>,
    /// Where its extents are to lie.
    place: Option<VolumePlace>,
    /// Its ceilings: requests, megabytes, and seconds of burst.
    ceilings: [Option<u32>; 3],
    /// What it gets in comparison with others.
    weight: Option<u32>,
}

impl VolumeChange {
    /// What the array is asked for.
    pub(super) fn requests(&self, volume: &str) -> Vec<AdminRequest> {
        let VolumeChange { read, write, place, ceilings, weight } = *self;
        let [iops_max, mbps_max, burst_seconds] = ceilings;
        let caches = (read.is_some() || write.is_some()).then(|| AdminRequest::VolumeCache {
            volume: volume.to_owned(),
            read,
            write,
        });
        let limited = (ceilings != [None; 3]).then(|| AdminRequest::VolumeCeilings {
            volume: volume.to_owned(),
            iops_max,
            mbps_max,
            burst_seconds,
        });
        let placed = place.map(|place| AdminRequest::VolumePlace { volume: volume.to_owned(), place });
        let weighed = weight.map(|weight| AdminRequest::VolumeWeight { volume: volume.to_owned(), weight });
        caches.into_iter().chain(placed).chain(limited).chain(weighed).collect()
    }
}

const ON_OFF: &[(&str, bool)] = &[("on", true), ("off", false)];

/// Whether reads use the read cache.
const CACHE_READ: Key<bool> = Key { name: "cache.read", values: ON_OFF };
/// Whether volumes of a pool may use the write cache.
const POOL_CACHE_WRITE: Key<bool> = Key { name: "cache.write", values: ON_OFF };
/// When writes to a volume are acknowledged.
const VOLUME_CACHE_WRITE: Key<WriteCache> = Key {
    name: "cache.write",
    values: &[
        ("durable", WriteCache::Durable),
        ("volatile", WriteCache::Volatile),
        ("off", WriteCache::Off),
        ("on", WriteCache::Durable),
    ],
};

/// Where the extents of a volume are to lie.
const PLACE: Key<VolumePlace> = Key {
    name: "place",
    values: &[("auto", VolumePlace::Auto), ("fast", VolumePlace::Fast), ("slow", VolumePlace::Slow)],
};

/// What `settings` say of a volume.
pub(super) fn of_volume(settings: &[String]) -> Result<VolumeChange, Failure> {
    let ceilings = [IOPS_MAX, MBPS_MAX, BURST];
    let mut known = vec![CACHE_READ.words(), VOLUME_CACHE_WRITE.words(), PLACE.words()];
    known.extend(ceilings.iter().map(NumberKey::words));
    known.push(weight_words());
    let settings = split("volume", settings, &known)?;
    let [iops, mbps, burst] = ceilings.map(|key| key.value(&settings));
    Ok(VolumeChange {
        read: CACHE_READ.value(&settings)?,
        write: VOLUME_CACHE_WRITE.value(&settings)?,
        place: PLACE.value(&settings)?,
        ceilings: [iops?, mbps?, burst?],
        weight: weight(&settings)?,
    })
}

fn weight_words() -> String {
    format!("{WEIGHT}=1..{WEIGHT_MAX}")
}

/// The weight among settings; none where they do not name it.
fn weight(settings: &[(&str, &str)]) -> Result<Option<u32>, Failure> {
    let Some((_, text)) = settings.iter().find(|(key, _)| *key == WEIGHT) else { return Ok(None) };
    let weight = text.parse().ok().filter(|weight| is_weight(*weight));
    weight.map(Some).ok_or_else(|| {
        Failure::Input(format!(
            "invalid value {text:?} for {WEIGHT}; use a whole number from 1 to {WEIGHT_MAX}: {WEIGHT}=N"
        ))
    })
}

/// What `settings` say of the read cache and the write cache of a pool.
pub(super) fn of_pool(settings: &[String]) -> Result<(Option<bool>, Option<bool>), Failure> {
    let known = [CACHE_READ.words(), POOL_CACHE_WRITE.words()];
    let settings = split("pool", settings, &known)?;
    Ok((CACHE_READ.value(&settings)?, POOL_CACHE_WRITE.value(&settings)?))
}

/// Keys and values of settings, each key once and one of those that `known` lists as `KEY=VALUE|VALUE`.
fn split<'a>(
    thing: &str,
    settings: &'a [String],
    known: &[String],
) -> Result<Vec<(&'a str, &'a str)>, Failure> {
    let is_known =
        |key: &str| known.iter().any(|words| words.split_once('=').is_some_and(|(own, _)| own == key));
    let mut split: Vec<(&str, &str)> = Vec::new();
    for setting in settings {
        let Some((key, value)) = setting.split_once('=') else {
            return Err(Failure::Input(format!("{setting:?} has no value; use {}", known.join(" or "))));
        };
        if !is_known(key) {
            return Err(unknown(thing, key, known));
        }
        if split.iter().any(|(other, _)| *other == key) {
            return Err(Failure::Input(format!("{key} is set twice; set it once")));
        }
        split.push((key, value));
    }
    Ok(split)
}

/// The error for a property that a thing does not have, with the one that resembles it most.
fn unknown(thing: &str, key: &str, known: &[String]) -> Failure {
    let names = known.iter().filter_map(|words| words.split_once('=')).map(|(name, _)| name);
    Failure::Input(match similar(key, names).first() {
        Some(name) => format!("unknown property {key:?}; did you mean {name}?"),
        None => format!("unknown property {key:?}; a {thing} has {}", known.join(" and ")),
    })
}

impl<T: Copy> Key<T> {
    /// `KEY=VALUE|VALUE`.
    fn words(&self) -> String {
        let values: Vec<&str> = self.values.iter().map(|(name, _)| *name).collect();
        format!("{}={}", self.name, values.join("|"))
    }

    /// Its value among settings; none where they do not name it.
    fn value(&self, settings: &[(&str, &str)]) -> Result<Option<T>, Failure> {
        let Some((_, text)) = settings.iter().find(|(key, _)| *key == self.name) else { return Ok(None) };
        let known = self.values.iter().find(|(name, _)| name == text);
        let invalid =
            || Failure::Input(format!("invalid value {text:?} for {}; use {}", self.name, self.words()));
        known.map(|(_, value)| Some(*value)).ok_or_else(invalid)
    }
}

impl NumberKey {
    /// `KEY=N|none`.
    fn words(&self) -> String {
        format!("{}={}|none", self.name, self.number)
    }

    /// Its value among settings, 0 for none; nothing where they do not name it.
    fn value(&self, settings: &[(&str, &str)]) -> Result<Option<u32>, Failure> {
        let Some((_, text)) = settings.iter().find(|(key, _)| *key == self.name) else { return Ok(None) };
        let value = if *text == "none" { Some(0) } else { text.parse().ok() };
        value.map(Some).ok_or_else(|| {
            Failure::Input(format!(
                "invalid value {text:?} for {}; use a whole number, or none: {}",
                self.name,
                self.words()
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(settings: &[&str]) -> Vec<String> {
        settings.iter().map(|setting| (*setting).to_owned()).collect()
    }

    #[test]
    fn several_keys_are_set_at_once() {
        let volume = |settings: &[&str]| of_volume(&owned(settings)).expect("they are known");
        let caches = |read, write| VolumeChange { read, write, ..VolumeChange::default() };
        assert_eq!(volume(&["cache.read=off"]), caches(Some(false), None));
        let both = caches(Some(true), Some(WriteCache::Durable));
        assert_eq!(volume(&["cache.write=on", "cache.read=on"]), both);
        assert_eq!(volume(&["cache.write=volatile"]), caches(None, Some(WriteCache::Volatile)));
        let ceilings = volume(&["iops.max=5000", "mbps.max=none", "burst=0"]);
        assert_eq!(ceilings.ceilings, [Some(5000), Some(0), Some(0)]);
        assert_eq!(ceilings.requests("lun0").len(), 1);
        assert_eq!(volume(&["weight=100"]).weight, Some(100));
        assert_eq!(volume(&["weight=100", "burst=3"]).requests("lun0").len(), 2);
        assert_eq!(volume(&["cache.read=on", "burst=3"]).requests("lun0").len(), 2);
        assert_eq!(volume(&["place=auto"]).place, Some(VolumePlace::Auto));
        assert_eq!(of_pool(&owned(&["cache.write=off"])).expect("it is known"), (None, Some(false)));
    }

    #[test]
    fn what_is_unknown_is_answered_with_what_there_is() {
        let keys = "cache.read=on|off or cache.write=durable|volatile|off|on or place=auto|fast|slow";
        for (settings, told) in [
            (&["cache.reed=on"][..], "unknown property \"cache.reed\"; did you mean cache.read?"),
            (&["cache.wirte=on"], "unknown property \"cache.wirte\"; did you mean cache.write?"),
            (
                &["compression=on"],
                "unknown property \"compression\"; a volume has cache.read=on|off and cache.write=",
            ),
            (&["cache.read"], keys),
            (&["=on"], "unknown property \"\"; a volume has cache.read=on|off"),
            (&["cache.read=yes"], "invalid value \"yes\" for cache.read; use cache.read=on|off"),
            (
                &["cache.write="],
                "invalid value \"\" for cache.write; use cache.write=durable|volatile|off|on",
            ),
            (&["cache.read=on", "cache.read=off"], "twice; set it once"),
            (
                &["iops.max=abc"],
                "invalid value \"abc\" for iops.max; use a whole number, or none: iops.max=N|none",
            ),
            (&["mbps.max=-1"], "mbps.max=N|none"),
            (&["burst=2s"], "burst=SECONDS|none"),
            (&["iops=5"], "did you mean iops.max?"),
            (&["weight=0"], "invalid value \"0\" for weight; use a whole number from 1 to 100: weight=N"),
            (&["weight=none"], "weight=N"),
        ] {
            let refused = of_volume(&owned(settings)).expect_err("it is unknown");
            let text = refused.text().unwrap_or_default();
            assert!(text.contains(told), "{settings:?}: {text}");
        }
        let refused = of_pool(&owned(&["cache.write=durable"])).expect_err("it is a volume's");
        assert!(refused.text().unwrap_or_default().contains("cache.write=on|off"));
    }
}
