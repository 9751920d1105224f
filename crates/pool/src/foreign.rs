//! What other programs keep on a drive: where it lies, and how it is erased.
//!
//! File systems, partition tables, swap, LVM, LUKS, ZFS and md are recognised by signatures in the first or the last MiB of a
//! device (`wipefs`(8) lists them), and repair programs find more copies further in. A pool uses only parts of these places, so
//! whatever it leaves would stay valid beside it, and a repair program would overwrite the pool's data on its word.
//!
//! | place | what lies there |
//! |---|---|
//! | the first 16 MiB | nearly all of them: GPT at 512, ext at 1080, swap at 4086, md 1.1 at 0 and 1.2 at 4 KiB, LUKS2 at 0 and up to 4 MiB, Btrfs at 64 KiB, ZFS up to 512 KiB |
//! | the last 4 MiB | backup GPT (33 blocks), md 0.90 (128 KiB) and 1.0 (12 KiB), ZFS (512 KiB), firmware RAID (1.5 MiB) |
//! | [`COPIES_BYTES`] | copies of the superblocks of ext and Btrfs that their repair programs try by themselves |
//!
//! Both ends are erased as a whole, so no table of signatures has to be complete. A block that is zero already is not written:
//! a sparse file stays sparse.
//!
//! What it does not do: it does not tell what a drive holds, and does not erase copies whose place only the lost content says
//! (XFS's allocation groups, partitions in the middle of a device).

use std::ops::Range;
use std::pin::pin;

use futures_util::future::{Either, select};
use tier0_drive::DriveHandle;
use tier0_units::{Lba, Nanos, PAGE_SECTORS, SECTOR_BYTES};
use tier0_world::{BufMut, IoError, PayloadWidth};

use crate::PoolError;
use crate::metadata::superblock;

/// Sectors of the front that are looked at and erased: 16 MiB.
const FRONT_SECTORS: u64 = 32_768;
/// Sectors of the end that are looked at and erased: 4 MiB.
const END_SECTORS: u64 = 8192;
/// Sectors of one I/O: 1 MiB.
const STEP_SECTORS: u64 = 2048;
/// Sectors of one discard: 64 MiB.
const DISCARD_SECTORS: u64 = 1 << 17;
/// A drive that does not end one of them for so long hangs.
const HANG_LIMIT: Nanos = Nanos::from_secs(60);
/// How long a new drive is discarded; a drive that needs longer is slow at it.
const DISCARD_LIMIT: Nanos = Nanos::from_secs(20);
/// Where the repair programs look for copies of a superblock whose original is gone, beyond the front. e2fsck tries the first
/// block of the second block group, for blocks of 2 KiB to 64 KiB: 8 × block² bytes. Btrfs keeps mirrors at 64 MiB and 256 GiB.
const COPIES_BYTES: [u64; 8] =
    [32 << 20, 128 << 20, 512 << 20, 2 << 30, 8 << 30, 32 << 30, 64 << 20, 256 << 30];

/// Whether the front and the end of a drive are all zeros, so that no data lies there.
///
/// # Errors
/// The drive fails.
pub async fn is_blank(drive: &DriveHandle) -> Result<bool, PoolError> {
    for range in ends_of(drive.info().sectors.0) {
        for step in steps(range) {
            let read = is_zero(drive, &step).await;
            if !read.map_err(|source| failed(drive, source))? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Erases what other programs may have left at the front, at the end and in copies between them. Durable when it ends. What
/// the drive held for a pool is gone with it.
///
/// # Errors
/// The drive fails.
pub async fn erase(drive: &DriveHandle) -> Result<(), PoolError> {
    let sectors = drive.info().sectors.0;
    erase_ranges(drive, ends_of(sectors).into_iter().chain(copies_of(sectors))).await
}

/// As [`erase`], of a drive whose front and end are blank: only the copies between them.
///
/// # Errors
/// The drive fails.
pub async fn erase_copies(drive: &DriveHandle) -> Result<(), PoolError> {
    erase_ranges(drive, copies_of(drive.info().sectors.0)).await
}

/// Discards all of a drive that gains by it, so that what it held before the pool does not have to be kept by it: after
/// [`erase`], before anything of the pool is written. At most [`DISCARD_LIMIT`]; what it does not reach, or the drive refuses,
/// costs the drive space and is no error.
///
/// # Errors
/// The drive does not end a discard, which might meet what is written later.
pub async fn discard(drive: &DriveHandle) -> Result<(), PoolError> {
    if !drive.gains_by_discard() {
        return Ok(());
    }
    let (sectors, world) = (drive.info().sectors.0, drive.world());
    let until = world.now() + DISCARD_LIMIT;
    for from in (0..sectors).step_by(DISCARD_SECTORS as usize) {
        let discard = pin!(drive.discard(Lba(from), DISCARD_SECTORS.min(sectors - from)));
        let discarded = match select(discard, pin!(world.sleep(HANG_LIMIT))).await {
            Either::Left((discarded, _)) => discarded,
            Either::Right(_) => return Err(failed(drive, IoError::Timeout)),
        };
        if discarded.is_err() || world.now() >= until {
            tracing::info!(
                "drive {} still keeps what it held before, from sector {from} on",
                drive.info().name
            );
            break;
        }
    }
    Ok(())
}

/// Erases what a member does not use itself: in front of its first superblock, and from `end` on. What the member holds for the
/// pool stays.
///
/// # Errors
/// The drive fails.
pub(crate) async fn erase_unused(drive: &DriveHandle, end: Lba) -> Result<(), IoError> {
    let sectors = drive.info().sectors.0;
    for range in [0..superblock::START_SECTORS, end.0.max(sectors.saturating_sub(END_SECTORS))..sectors] {
        erase_range(drive, range).await?;
    }
    drive.flush().await
}

/// The front and the end of a drive of so many sectors; all of a small one.
fn ends_of(sectors: u64) -> Vec<Range<u64>> {
    if sectors <= FRONT_SECTORS + END_SECTORS {
        return std::iter::once(0..sectors).collect();
    }
    // Whole blocks, whatever size they have.
    let end = (sectors - END_SECTORS) / STEP_SECTORS * STEP_SECTORS;
    vec![0..FRONT_SECTORS, end..sectors]
}

/// A page at each place of a copy that a drive of so many sectors has.
fn copies_of(sectors: u64) -> impl Iterator<Item = Range<u64>> {
    let places = COPIES_BYTES.into_iter().map(|byte| byte / SECTOR_BYTES);
    places.map(|at| at..at + PAGE_SECTORS).filter(move |range| range.end <= sectors)
}

fn steps(range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let end = range.end;
    range.step_by(STEP_SECTORS as usize).map(move |at| at..(at + STEP_SECTORS).min(end))
}

async fn is_zero(drive: &DriveHandle, range: &Range<u64>) -> Result<bool, IoError> {
    let buf = BufMut::new((range.end - range.start) as u32, PayloadWidth::REAL);
    let (result, buf) = drive.read(Lba(range.start), buf).await;
    result.map(|()| buf.as_slice().iter().all(|&byte| byte == 0))
}

async fn erase_ranges(
    drive: &DriveHandle,
    ranges: impl Iterator<Item = Range<u64>>,
) -> Result<(), PoolError> {
    for range in ranges {
        erase_range(drive, range).await.map_err(|source| failed(drive, source))?;
    }
    drive.flush().await.map_err(|source| failed(drive, source))
}

async fn erase_range(drive: &DriveHandle, range: Range<u64>) -> Result<(), IoError> {
    for step in steps(range) {
        // A bad sector may read well another day.
        if !matches!(is_zero(drive, &step).await, Ok(true)) {
            let zeros = BufMut::zeroed((step.end - step.start) as u32, PayloadWidth::REAL).freeze();
            drive.write(Lba(step.start), zeros, false).await?;
        }
    }
    Ok(())
}

fn failed(drive: &DriveHandle, source: IoError) -> PoolError {
    PoolError::Drive { drive: drive.info().name.clone(), source }
}

#[cfg(test)]
mod tests {
    use tier0_drive::RamMedium;
    use tier0_drive::sim::{PowerSwitch, SimMedium, SimOptions};
    use tier0_units::{ByteCount, SectorCount};
    use tier0_world::{VirtualRuntime, World};

    use super::*;

    /// Larger than both ends together, and with a copy of ext's superblock between them.
    const SIZE: ByteCount = ByteCount::mib(40);

    fn on_a_drive<F: Future<Output = ()> + 'static>(size: ByteCount, test: impl Fn(DriveHandle) -> F) {
        let runtime = VirtualRuntime::new(1, PayloadWidth::REAL);
        let open = |world: &World| DriveHandle::new(RamMedium::new("ram", size).expect("memory").open(world));
        runtime.run(test(open(runtime.world())));
    }

    async fn mark(drive: &DriveHandle, sector: u64) {
        let buf = BufMut::copy_from(&[7; SECTOR_BYTES as usize], PayloadWidth::REAL).freeze();
        drive.write(Lba(sector), buf, false).await.expect("it is written");
    }

    async fn is_marked(drive: &DriveHandle, sector: u64) -> bool {
        !is_zero(drive, &(sector..sector + 1)).await.expect("it is read")
    }

    /// md 1.0, which lies at the end alone, was taken for nothing.
    #[test]
    fn a_drive_is_blank_only_where_both_ends_are() {
        let last = SIZE.0 / SECTOR_BYTES - 1;
        for (sector, is_blank_with_it) in [
            (0, false),
            (2, false),
            (32_767, false),
            (32_768, true),
            (last - 8191, false),
            (last - 15, false),
            (last, false),
        ] {
            on_a_drive(SIZE, move |drive| async move {
                assert!(is_blank(&drive).await.expect("it is read"), "nothing was written");
                mark(&drive, sector).await;
                assert_eq!(is_blank(&drive).await.expect("it is read"), is_blank_with_it, "sector {sector}");
            });
        }
    }

    #[test]
    fn what_is_erased_is_both_ends_and_the_copies_between() {
        on_a_drive(SIZE, |drive| async move {
            let (last, copy, data) = (SIZE.0 / SECTOR_BYTES - 1, (32 << 20) / SECTOR_BYTES, 40_000);
            for sector in [0, 8, 2048, 32_767, copy, data, last - 8000, last] {
                mark(&drive, sector).await;
            }
            erase_copies(&drive).await.expect("it is erased");
            assert!(
                is_marked(&drive, 0).await && is_marked(&drive, last).await && !is_marked(&drive, copy).await
            );
            erase(&drive).await.expect("it is erased");
            assert!(is_blank(&drive).await.expect("it is read"));
            assert!(is_marked(&drive, data).await, "what lies between is not recognised by anything");
        });
    }

    #[test]
    fn a_new_drive_is_discarded_where_that_is_of_use_to_it() {
        for gains_by_discard in [true, false] {
            let runtime = VirtualRuntime::new(1, PayloadWidth::REAL);
            let options = SimOptions { gains_by_discard, ..SimOptions::new("d0", SectorCount(80_000), 1) };
            let medium = SimMedium::new(options, &PowerSwitch::default());
            let drive = medium.open(runtime.world());
            runtime.run(async move {
                mark(&drive, 79_999).await;
                discard(&drive).await.expect("it ends");
                assert_eq!(is_marked(&drive, 79_999).await, !gains_by_discard);
            });
        }
    }

    #[test]
    fn small_drives_are_erased_as_a_whole() {
        on_a_drive(ByteCount::mib(3), |drive| async move {
            for sector in (0..6144).step_by(500) {
                mark(&drive, sector).await;
            }
            erase(&drive).await.expect("it is erased");
            assert!(is_zero(&drive, &(0..6144)).await.expect("it is read"));
        });
    }

    #[test]
    fn what_a_member_uses_stays_where_the_rest_is_erased() {
        on_a_drive(SIZE, |drive| async move {
            let end = SIZE.0 / SECTOR_BYTES - 128;
            let (rest, used) = ([0, 2, 127, end, end + 127], [128, 255, 2048, end - 1]);
            for sector in rest.into_iter().chain(used) {
                mark(&drive, sector).await;
            }
            erase_unused(&drive, Lba(end)).await.expect("it is erased");
            for sector in rest {
                assert!(!is_marked(&drive, sector).await, "sector {sector}");
            }
            for sector in used {
                assert!(is_marked(&drive, sector).await, "sector {sector}");
            }
        });
    }
}
