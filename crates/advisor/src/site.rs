//! What no report says of the site: cables, spindles, RAID levels. A file of the administrator's; every field is optional.

use std::collections::BTreeMap;

use serde::Deserialize;
use tier0_units::ByteCount;

use crate::evidence::Evidence;

/// A site file.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Site {
    /// Processors of the database's host.
    pub cores: Option<f64>,
    /// Spindles behind all devices, or behind each that is named in `spindles_of`.
    pub spindles: Option<f64>,
    /// RAID level of the disks: raid1, raid10, raid5, raid50, raid6.
    pub raid: Option<String>,
    /// Space of the pool.
    pub capacity: Option<ByteCount>,
    /// Space in use.
    pub used: Option<ByteCount>,
    /// Members (arrays) of the pool.
    pub members: Option<f64>,
    /// Share of reads that the array's own cache serves, 0 to 1.
    pub array_hit_share: Option<f64>,
    /// What flash is used as: `cache` (reads only) or `tier` (writes land there).
    pub flash_use: Option<String>,
    /// RAID level of the flash.
    pub flash_raid: Option<String>,
    /// Whether the array is all flash.
    pub all_flash: Option<bool>,
    /// Applications on the array.
    pub applications: Option<f64>,
    /// Whether the write cache is on for flash volumes.
    pub flash_write_cache: Option<bool>,
    /// Back-end buses, and how many of them have flash drives.
    pub buses: Option<f64>,
    /// Buses with flash drives.
    pub flash_buses: Option<f64>,
    /// Fibre Channel speed: 1, 2, 4, 8 or 16.
    pub fc_gbit: Option<f64>,
    /// Cable: OM1, OM2, OM3, OM4 or OS1.
    pub cable: Option<String>,
    /// Its length in metres.
    pub cable_m: Option<f64>,
    /// Front-end ports in use.
    pub ports: Option<f64>,
    /// Paths from the host to the array.
    pub paths: Option<f64>,
    /// Sizes of objects that reports do not have, by name: `orders` or `app.orders`.
    pub size: BTreeMap<String, ByteCount>,
    /// Files of tempdb.
    pub tempdb_files: Option<f64>,
}

impl Site {
    /// Gives objects without a size the one that is known here.
    pub fn add_sizes(&self, evidence: &mut Evidence) {
        for object in evidence.objects.iter_mut().filter(|object| object.bytes.is_none()) {
            let size = self.size.get(&object.full_name()).or_else(|| self.size.get(&object.identity.name));
            object.bytes = size.map(|size| size.0 as f64);
        }
    }

    /// Reads one; `file` is its name in messages.
    ///
    /// # Errors
    /// What is wrong, with line and field.
    pub fn parse(text: &str, file: &str) -> Result<Site, String> {
        let site: Site = tier0_toml::read(text).map_err(|wrong| {
            format!(
                "{file}, line {}: {}: {}; see docs/advise.md for its fields",
                wrong.line, wrong.field, wrong.fact
            )
        })?;
        let levels = ["raid0", "raid1", "raid10", "raid5", "raid50", "raid6", "none"];
        for (field, value) in [("raid", &site.raid), ("flash_raid", &site.flash_raid)] {
            if let Some(value) = value.as_ref().filter(|value| !levels.contains(&value.as_str())) {
                return Err(format!(
                    "{file}: {field}: {value:?} is no RAID level; write one of {}",
                    levels.join(", ")
                ));
            }
        }
        match site.flash_use.as_deref() {
            None | Some("cache" | "tier") => Ok(site),
            Some(other) => {
                Err(format!("{file}: flash_use: {other:?} is unknown; write \"cache\" or \"tier\""))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_read_and_a_wrong_field_is_named() {
        let site =
            Site::parse("cores = 16\nraid = \"raid5\"\nused = \"1TB\"\n", "site.toml").expect("a site");
        assert_eq!((site.cores, site.used), (Some(16.0), Some(ByteCount(1_000_000_000_000))));
        for (text, word) in
            [("spindels = 3", "line 1"), ("raid = \"raid7\"", "raid7"), ("flash_use = \"both\"", "tier")]
        {
            let error = Site::parse(text, "site.toml").expect_err(text);
            assert!(
                error.starts_with("site.toml") && error.contains(word) && error.contains("; "),
                "{error}"
            );
        }
    }
}
