//! The array that is compared: the same drives, with the flash used in different ways.

use tier0_description::Description;
use tier0_units::ByteCount;

/// The volume that is loaded.
pub(super) const VOLUME_NAME: &str = "lun0";
/// What the volume holds.
pub(super) const VOLUME: ByteCount = ByteCount::gib(256);
/// What there is of flash for cache and tier.
pub(super) const FLASH: ByteCount = ByteCount::gib(16);
/// What another volume leaves of the flash group at least.
const LEFT_MIN: ByteCount = ByteCount::gib(1);
const EXTENT: ByteCount = ByteCount::mib(4);
/// How often a day the flash may be written over: what is compared is what flash does for disks, and 16 GiB are a small part of
/// two SSDs of 400 GB that may be written over three times a day each.
const WRITES_A_DAY: u32 = 75;

/// How flash is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flash {
    /// For the write log alone.
    None,
    /// As a read cache.
    Cache,
    /// As a tier.
    Tier,
    /// As a tier that is off: it counts and decides, and moves nothing.
    TierOff,
    /// Half of it as each.
    Both,
}

impl Flash {
    pub(super) const ALL: [Flash; 4] = [Flash::None, Flash::Cache, Flash::Tier, Flash::Both];
    pub(super) const WITHOUT_BOTH: [Flash; 3] = [Flash::None, Flash::Cache, Flash::Tier];
    pub(super) const NONE_AND_TIER: [Flash; 2] = [Flash::None, Flash::Tier];
    pub(super) const COLD: [Flash; 3] = [Flash::None, Flash::Tier, Flash::TierOff];

    pub(super) fn name(self) -> &'static str {
        match self {
            Flash::None => "disks only",
            Flash::Cache => "+ read cache",
            Flash::Tier => "+ tier",
            Flash::TierOff => "+ tier, switched off",
            Flash::Both => "+ both, half each",
        }
    }

    /// What it has as a cache, and as a tier.
    fn shares(self) -> (ByteCount, ByteCount) {
        let none = ByteCount(0);
        match self {
            Flash::None => (none, none),
            Flash::Cache => (FLASH, none),
            Flash::Tier | Flash::TierOff => (none, FLASH),
            Flash::Both => (ByteCount(FLASH.0 / 2), ByteCount(FLASH.0 / 2)),
        }
    }

    /// What the other volume of the flash group leaves to the tier.
    pub(super) fn tier_bytes(self) -> ByteCount {
        self.shares().1.max(LEFT_MIN)
    }

    /// The array. `other` is how much the other volume of the flash group takes.
    pub(super) fn describe(self, other: Option<ByteCount>) -> Description {
        let (cache, tier) = self.shares();
        let cache = match cache.0 {
            0 => String::new(),
            _ => format!("flash_cache = \"{cache}\"\nflash_cache_drives = [\"ssd*\"]\n"),
        };
        let place = if tier.0 > 0 { "place = \"auto\"\n" } else { "" };
        let other = other.map_or_else(String::new, |size| {
            format!("[[volume]]\nname = \"other\"\nsize = \"{}B\"\ngroup = \"flash\"\n", size.0)
        });
        let text = format!(
            "[array]\nname = \"bench\"\n\
             [[drive]]\nname = \"d{{n}}\"\ncount = 20\nmodel = \"sas-10k-900gb-sff\"\n\
             [[drive]]\nname = \"ssd{{n}}\"\ncount = 2\nmodel = \"ssd-sas-400gb\"\n\
             [[pool]]\nname = \"pool0\"\nextent = \"{EXTENT}\"\nlog_drives = [\"ssd*\"]\nflash_cache_writes = {WRITES_A_DAY}\n{cache}\
             [[pool.group]]\nname = \"disks\"\ndrives = [\"d*\"]\nraid = \"raid6\"\nset_size = 10\n\
             [[pool.group]]\nname = \"flash\"\ndrives = [\"ssd*\"]\nraid = \"raid1\"\nset_size = 2\n\
             [[volume]]\nname = \"{VOLUME_NAME}\"\nsize = \"{VOLUME}\"\ngroup = \"disks\"\n{place}{other}"
        );
        Description::parse(&text, "the benchmark's array").expect("the benchmark's array is right")
    }
}

/// What of everything there is how much.
pub(super) fn sizes() -> String {
    format!(
        "20 x sas-10k-900gb-sff in RAID 6 of 8 + 2, 2 x ssd-sas-400gb in RAID 1 with the log, in virtual time; extents of {EXTENT}; a \
         full volume of {VOLUME}; {FLASH} of flash as cache or tier, written over {WRITES_A_DAY} times a day at most; no read cache \
         in memory; 8 KiB, 70 % reads, 64 users who think for 20 ms"
    )
}
