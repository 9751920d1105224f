//! Seeds that once failed and are understood, each with what it found. They run in the tests for ever, one seed for each cause.
//!
//! A change of what the simulator draws makes another run of a seed; then it still is one more run. Where the cause has
//! a smaller test of its own, that one is the proof.

use tier0_sim::sweep::run_caught;
use tier0_sim::{Array, SimConfig};

const KEPT: &[(u64, &str)] = &[
    (
        5_000_044,
        "a verdict waited for a drive because a blank one, which had joined under a lost one's name, counted as not verified",
    ),
    (
        1_700_014,
        "a start was refused as a split for a drive that had been joining when the power was cut, once the drives of that time \
         had been replaced",
    ),
    (
        700_548,
        "a drive had lost a record of the log unnoticed, and the copy of another left after a scrub was clean",
    ),
    (700_460, "a scrub called the table lost of an extent that was being closed and had never had one"),
    (82, "a small log was filled until destaging found no room for its intents"),
    (
        113,
        "a bad sector in the stale place of a slot table was repaired in the other place, by every scrub anew",
    ),
    (
        144,
        "the destager went round and round over an extent that was due for another attempt, but not in its turn; \
         and a drive that hung was given up after the array had been found whole",
    ),
    (167, "what a scrub repaired was not flushed, and a power cut took it back"),
    (847, "one bad sector in a superblock cost the whole drive, and with a second one missing the pool"),
    (
        957,
        "a rebuild judged mirrors by pages that a power cut had torn and the log still had, and called them lost",
    ),
    (1265, "a rebuild, or a scrub, did not end; which change mended it is not known"),
    (1960, "a rebuild called a page lost that had no content and lay on a bad sector"),
    (7201, "a batch took an extent twice that had found a new slot while it was waited for"),
    (
        600031,
        "a client whose second connection died in its handshake kept the first one for ever, and nobody could connect \
         anew",
    ),
];

/// The same for pools that grow, and volumes that come and go.
const KEPT_GROWING: &[(u64, &str)] = &[
    (100639, "a volume was deleted while extents were being mapped, and hosts of another one got an error"),
    (116, "a pool grew until its metadata had no room to note a rebuild"),
    (
        778,
        "pages of a volume were dropped from the log when its deletion was not stable yet, and a power cut brought the \
         volume back",
    ),
    (1261, "the simulator scrubbed while extents were moving, and took the second scrub's find for a fault"),
    (195, "a drive that had lost its newest superblock made the others forget a drive that had joined"),
];

/// The same with volumes that are cloned.
const KEPT_CLONES: &[(u64, &str)] = &[
    (81, "a rebuild that ended between the copying of an extent and its commit knew nothing of its slot"),
    (
        1_957_002,
        "a scrub looked for the table of an extent whose volume was being deleted, and called it lost",
    ),
    (0, "the last, partial extent of a volume that was discarded as a whole asked for space in a full pool"),
];

/// The same with drives that forget.
const KEPT_FORGETFUL: &[(u64, &str)] = &[
    (65, "a carrier of the metadata journal had forgotten it, and no scrub looked"),
    (72, "a drive had forgotten its superblock, no scrub looked, and it was no member at the next start"),
    (
        1_000_265,
        "a drive had forgotten both copies of its superblock in one life, and there was no third one",
    ),
    (
        850_133,
        "a rotten parity gave a page of zeros other content when its column was rebuilt; a drive that forgot that was \
         believed, and a parity was modified by the wrong difference",
    ),
];

/// The same with mishaps.
const KEPT_MISHAPS: &[(u64, &str)] = &[
    (
        1257,
        "a host read what a refused write had left in memory, merged into another's page, and a power cut took it back",
    ),
    (21112, "a copy of the log that was given up for another one was not made again when its drive was kept"),
    (
        100738,
        "after an outage of ten minutes nothing was destaged for another ten, so trimmed space did not come back",
    ),
    (103103, "columns moved onto drives on which the verdict had fallen, and a set lacked three"),
    (7175, "a copy of the log was given up to move it, and the verdict on two other drives relied on it"),
    (390, "the superblock of a drive that had left was erased after it had joined again"),
];

/// The same with clones and mishaps.
const KEPT_CLONES_AND_MISHAPS: &[(u64, &str)] = &[
    (
        1_957_036,
        "the power failed when one half of a mirror had just given up the other, the other went on by consent, and the \
         simulator wanted the first one to be refused, which goes on by right",
    ),
    (
        1_966_040,
        "a volume was deleted under a scrub that waited for drives; a column moved without the slots that it had had, and \
         the scrub looked for them in the new place",
    ),
    (
        300_062,
        "an administrator of the simulator asked a paused array for a clone every few milliseconds, and kept what the volume \
         held for each: 19 GiB",
    ),
];

/// The same with mishaps in pools that grow.
const KEPT_GROWING_AND_MISHAPS: &[(u64, &str)] = &[(
    300_151,
    "the simulator took a volume for refused that the array created when the drives were back that it waited for",
)];

/// The same with incidents.
const KEPT_INCIDENTS: &[(u64, &str)] = &[
    (4_004_416, "a drive that was taken back and lost again did not count, and a third one was pulled"),
    (20238, "a heal forgave a drive that was pulled meanwhile, and a third one was taken"),
    (
        27,
        "a copy of the log on a drive that was lost while it was made kept its place, and no other could be made",
    ),
    (336, "consent was asked for to do without a drive that was there, and put back to an older image"),
    (
        351,
        "drives whose device had come back while nobody asked them for anything were called gone by a probe",
    ),
    (700_083, "the simulator took a drive that had left for one of the array, and put a copy's in its place"),
    (830_110, "the same with a drive whose join a power cut had undone"),
];

/// The same with ordeals.
const KEPT_ORDEALS: &[(u64, &str)] = &[
    (
        1763,
        "readers of a slot table whose load a failed batch gave up were told that it is lost, after a last resort",
    ),
    (
        720_033,
        "an evacuation wrote zeros where a lying drive had left something else, which parity had come to count",
    ),
    (501050, "the simulator took a write for refused that was lost with its connection"),
];

/// The same as [`KEPT_MISHAPS`] with a flash cache.
const KEPT_FLASH_AND_MISHAPS: &[(u64, &str)] = &[(
    2_013_761,
    "the simulator took a set of one column beside a spare drive for one of two, which needs both drives",
)];

/// The same as [`KEPT_MISHAPS`] with a flash cache and two groups of sets.
const KEPT_GROUPS_AND_FLASH_AND_MISHAPS: &[(u64, &str)] = &[(
    77_100_403,
    "a part of the log of the smallest size was full with one page, and a writer waited for destaging though nothing was \
     dirty",
)];

/// The same as [`KEPT_INCIDENTS`] with a flash cache and two groups of sets.
const KEPT_GROUPS_AND_FLASH_AND_INCIDENTS: &[(u64, &str)] =
    &[(77_100_015, "as 77100403"), (77_100_024, "as 77100403")];

/// The same as [`KEPT_INCIDENTS`] with a flash cache.
const KEPT_FLASH_AND_INCIDENTS: &[(u64, &str)] = &[(2_013_453, "the same with a drive that was lost")];

/// The same with two groups of sets, of which the second is flash, and administrators who place, pin and migrate volumes.
const KEPT_TIERING: &[(u64, &str)] = &[
    (
        3751,
        "an administrator of the simulator was refused to fail a drive that was gone, as another had not been verified, and did          not ask again",
    ),
    (4170, "extents moved while the simulator scrubbed, and it took the second scrub's find for a fault"),
    (4065, "extents of a migrated volume find no room, and the simulator must not wait for them to move"),
    (
        7144,
        "a volume did not fit any more once the drives of its group were flash, and the simulator did not look",
    ),
];

/// The same with users who come through a network.
const KEPT_NETWORK: &[(u64, &str)] =
    &[(6_001_020, "a drive that joined hung, and no loss of another could be recorded as long")];

#[test]
fn seeds_that_once_failed_stay_clean() {
    check(KEPT_MISHAPS, SimConfig::mishaps);
    check(KEPT_INCIDENTS, SimConfig::incidents);
    check(KEPT_ORDEALS, SimConfig::ordeals);
    check(KEPT_FLASH_AND_MISHAPS, |config| config.flash_cached(&Array).mishaps());
    check(KEPT_FLASH_AND_INCIDENTS, |config| config.flash_cached(&Array).incidents());
    check(KEPT_GROUPS_AND_FLASH_AND_MISHAPS, |config| config.grouped(&Array).flash_cached(&Array).mishaps());
    check(KEPT_GROUPS_AND_FLASH_AND_INCIDENTS, |config| {
        config.grouped(&Array).flash_cached(&Array).incidents()
    });
    check(KEPT_TIERING, |config| config.grouped(&Array).tiering(&Array));
    check(KEPT_NETWORK, SimConfig::networked);
    check(KEPT, |config| config);
    check(KEPT_GROWING, SimConfig::growing);
    check(KEPT_CLONES, SimConfig::cloned);
    check(KEPT_CLONES_AND_MISHAPS, |config| config.cloned().mishaps());
    check(KEPT_GROWING_AND_MISHAPS, |config| config.mishaps().growing());
    check(KEPT_FORGETFUL, SimConfig::forgetful);
}

fn check(kept: &[(u64, &str)], change: impl Fn(SimConfig) -> SimConfig) {
    let mut failed = Vec::new();
    for (seed, story) in kept {
        let config = change(SimConfig::draw(*seed, &Array));
        if let Err(failure) = run_caught(&Array, &config) {
            failed.push(format!("{failure}\nit was kept because {story}"));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
