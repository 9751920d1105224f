//! The mishaps, one function each; `docs/operations.md` names them.

mod consent;
mod errors;
mod files;
mod in_use;
mod online;
mod small;
mod stalls;
mod starts;

use super::scene::Scene;
use crate::TortureError;

/// What a story needs beside the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Nothing.
    Nothing,
    /// Drives that can be made to fail.
    Faulty,
    /// Root, for file systems and devices of its own.
    Root,
}

/// A mishap.
pub(crate) struct Story {
    pub(crate) name: &'static str,
    /// Whether it takes a few seconds, and is part of the system tests.
    pub(crate) short: bool,
    pub(crate) needs: Needs,
    pub(crate) tell: fn(&mut Scene) -> Result<(), TortureError>,
}

const fn short(name: &'static str, needs: Needs, tell: fn(&mut Scene) -> Result<(), TortureError>) -> Story {
    Story { name, short: true, needs, tell }
}

const fn long(name: &'static str, needs: Needs, tell: fn(&mut Scene) -> Result<(), TortureError>) -> Story {
    Story { name, short: false, needs, tell }
}

/// All of them.
pub(crate) const STORIES: &[Story] = {
    use Needs::{Faulty, Nothing, Root};
    &[
        short("starts/log-drives-away", Nothing, starts::log_drives_away),
        short("starts/fewer-drives-in-the-file", Nothing, starts::fewer_drives_in_the_file),
        short("starts/wrong-file-while-a-drive-is-away", Nothing, starts::wrong_file_while_a_drive_is_away),
        short("starts/other-volume-size-is-told", Nothing, starts::other_volume_size_is_told),
        short("starts/copy-leaves-the-original-alone", Nothing, starts::copy_leaves_the_original_alone),
        short("starts/front-overwritten", Nothing, starts::front_overwritten),
        short("online/one-drive-after-the-other", Nothing, online::one_drive_after_the_other),
        long("starts/drive-with-errors-is-not-gone", Faulty, starts::drive_with_errors_is_not_gone),
        short("starts/permission-is-not-gone", Root, starts::permission_is_not_gone),
        short("starts/too-many-files", Nothing, starts::too_many_files),
        long("starts/drive-hangs-and-sigterm", Faulty, starts::drive_hangs_and_sigterm),
        long("starts/twelve-kills", Nothing, starts::twelve_kills),
        short("consent/stale-half-alone", Nothing, consent::stale_half_alone),
        short("consent/half-with-consent", Nothing, consent::half_with_consent),
        short("consent/split", Nothing, consent::split),
        short("consent/split-of-a-renewed-half", Nothing, consent::split_of_a_renewed_half),
        short("consent/rejoin-after-a-split", Nothing, consent::rejoin_after_a_split),
        short("consent/rejoin-of-the-newer-half", Nothing, consent::rejoin_of_the_newer_half),
        short("consent/drive-of-a-copy", Nothing, consent::drive_of_a_copy),
        short("consent/witness", Nothing, consent::witness),
        short("consent/recover", Nothing, consent::recover),
        short("consent/recover-stale", Nothing, consent::recover_stale),
        long("errors/both-legs-for-a-second", Faulty, errors::both_legs_for_a_second),
        long("errors/one-leg-for-ten-seconds", Faulty, errors::one_leg_for_ten_seconds),
        long("errors/both-legs-away", Faulty, errors::both_legs_away),
        long("errors/back-one-after-the-other", Faulty, errors::back_one_after_the_other),
        long("errors/killed-in-a-pause", Faulty, errors::killed_in_a_pause),
        long("errors/stopped-in-a-pause", Faulty, errors::stopped_in_a_pause),
        long("errors/pulled-and-put-back", Faulty, errors::pulled_and_put_back),
        long("errors/both-pulled-and-put-back", Faulty, errors::both_pulled_and_put_back),
        short("errors/bad-sector-in-a-superblock", Faulty, errors::bad_sector_in_a_superblock),
        short("errors/device-shrinks", Root, errors::device_shrinks),
        short("errors/device-shrinks-and-is-done-without", Root, errors::device_shrinks_and_is_done_without),
        short("errors/fronts-overwritten", Nothing, errors::fronts_overwritten),
        short("errors/overwritten-behind-a-scrub", Nothing, errors::overwritten_behind_a_scrub),
        short("errors/both-devices-shrink", Root, errors::both_devices_shrink),
        long("errors/backing-file-system-full", Root, errors::backing_file_system_full),
        long("errors/file-cut-short", Nothing, errors::file_cut_short),
        long("errors/file-cut-and-grown", Nothing, errors::file_cut_and_grown),
        short("errors/full-drive-is-taken-out", Root, errors::full_drive_is_taken_out),
        short("errors/start-on-a-full-file-system", Root, errors::start_on_a_full_file_system),
        long("stalls/server-stopped-35-s", Nothing, stalls::server_stopped),
        long("stalls/slow-drive-joins", Faulty, stalls::slow_drive_joins),
        long("stalls/drive-hangs-ten-seconds", Faulty, stalls::drive_hangs_ten_seconds),
        long("stalls/drive-hangs-for-good", Faulty, stalls::drive_hangs_for_good),
        long("stalls/other-pool-goes-on", Faulty, stalls::other_pool_goes_on),
        short("files/busy-file-in-search", Nothing, files::busy_file_in_search),
        long("files/busy-drive-is-not-gone", Nothing, files::busy_drive_is_not_gone),
        long("files/busy-drive-in-search", Nothing, files::busy_drive_in_search),
        short("files/search-holds-its-own-alone", Nothing, files::search_holds_its_own_alone),
        short("files/copy-of-a-drive-that-is-gone", Nothing, files::copy_of_a_drive_that_is_gone),
        short("files/unrecognised-drive-is-not-gone", Nothing, files::unrecognised_drive_is_not_gone),
        short("files/one-file-twice", Nothing, files::one_file_twice),
        short("files/one-device-twice", Root, files::one_device_twice),
        long("files/two-servers-by-two-names", Root, files::two_servers_by_two_names),
        long("files/two-servers-by-a-lost-name", Root, files::two_servers_by_a_lost_name),
        short("files/mounted-is-not-overwritten", Root, in_use::mounted_is_not_overwritten),
        short("files/link-in-a-drives-place", Nothing, files::link_in_a_drives_place),
        long("files/deleted-under-the-server", Nothing, files::deleted_under_the_server),
        short("files/one-log-drive", Nothing, files::one_log_drive),
        short("files/without-checksums", Nothing, files::without_checksums),
        short("files/host-moved", Nothing, files::host_moved),
        short("files/other-cores", Nothing, files::other_cores),
        short("files/upgrade", Nothing, files::upgrade),
        short("online/replace-then-old-file", Nothing, online::replace_then_old_file),
        short("online/grow-then-old-file", Nothing, online::grow_then_old_file),
        short("online/one-drive-more", Nothing, online::one_drive_more),
        short("online/rejoin", Nothing, online::rejoin),
        long("online/killed-in-a-rejoin", Nothing, online::killed_in_a_rejoin),
        short("online/rejoin-is-verified", Nothing, online::rejoin_is_verified),
        short("online/log-returns", Nothing, online::log_returns),
        long("online/removal-copies-first", Faulty, online::removal_copies_first),
        short("online/refused-add-leaves-no-file", Nothing, online::refused_add_leaves_no_file),
        short("online/serving-drive-is-not-added", Nothing, online::serving_drive_is_not_added),
        long("online/add-in-a-pause", Faulty, online::add_in_a_pause),
        short("small/scrub-rate-and-stop", Nothing, small::scrub_rate_and_stop),
        short("small/scrub-finds", Nothing, small::scrub_finds),
        long("small/lost-and-written-anew", Nothing, small::lost_and_written_anew),
        short("small/hangup", Nothing, small::hangup),
        short("small/stale-sockets", Nothing, small::stale_sockets),
        long("small/thin-pool-fills", Nothing, small::thin_pool_fills),
    ]
};
