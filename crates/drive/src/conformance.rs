//! The suite that every drive passes, real or modelled: it is code, not a test, so that each kind of drive can be
//! put through it where that drive lives.
//!
//! It overwrites the whole drive.

use tier0_units::Lba;
use tier0_world::{BufMut, IoError};

use crate::DriveHandle;

/// Puts `drive` through the suite; panics with what it breaks. `seed` chooses the random part. Content is checked
/// only where the world has payload.
pub async fn run(drive: &DriveHandle, seed: u64) {
    refuses_what_is_out_of_range(drive).await;
    keeps_what_was_written(drive, seed).await;
    many_commands_at_once(drive, seed).await;
    discards(drive).await;
    drive.flush().await.expect("a flush succeeds");
}

fn pattern(drive: &DriveHandle, sectors: u32, mark: u8) -> BufMut {
    let mut buf = drive.world().buffer(sectors);
    buf.as_mut_slice().fill(mark);
    buf
}

async fn refuses_what_is_out_of_range(drive: &DriveHandle) {
    let end = drive.info().sectors.0;
    let block = drive.info().block_sectors;
    let last = Lba(end - u64::from(block));
    assert_eq!(
        drive.read(Lba(end), pattern(drive, block, 0)).await.0,
        Err(IoError::OutOfRange),
        "read behind the end"
    );
    assert_eq!(
        drive.read(last, pattern(drive, 2 * block, 0)).await.0,
        Err(IoError::OutOfRange),
        "read over the end"
    );
    let write =
        drive.write(Lba(u64::MAX - 7 * u64::from(block) + 1), pattern(drive, block, 0).freeze(), false).await;
    assert!(write.is_err(), "write at an address that overflows");
    assert_eq!(drive.read(Lba(0), pattern(drive, 0, 0)).await.0, Err(IoError::Misaligned), "read of nothing");
    if block > 1 {
        let (result, buf) = drive.read(Lba(1), pattern(drive, block, 0)).await;
        assert_eq!((result, buf.sectors()), (Err(IoError::Misaligned), block), "misaligned read");
    }
    drive.read(last, pattern(drive, block, 0)).await.0.expect("the last block can be read");
}

async fn keeps_what_was_written(drive: &DriveHandle, seed: u64) {
    let block = u64::from(drive.info().block_sectors);
    let blocks = drive.info().sectors.0 / block;
    let mut random = tier0_world::Random::new(seed, 1);
    // The first writes, each of another length, do not overlap: block i * stride holds mark i + 1.
    let count = 32.min(blocks / 4);
    let stride = blocks / count;
    for i in 0..count {
        let length = 1 + random.below(stride.min(16)) as u32;
        let buf = pattern(drive, length * block as u32, i as u8 + 1).freeze();
        drive.write(Lba(i * stride * block), buf, i % 2 == 0).await.expect("a write succeeds");
    }
    drive.flush().await.expect("a flush succeeds");
    for i in 0..count {
        expect_mark(drive, Lba(i * stride * block), block as u32, i as u8 + 1).await;
    }
}

async fn many_commands_at_once(drive: &DriveHandle, seed: u64) {
    let block = drive.info().block_sectors;
    let places = (drive.info().sectors.0 / u64::from(block)).min(256);
    let mut random = tier0_world::Random::new(seed, 2);
    let tasks: Vec<_> = (0..places)
        .map(|place| {
            let (drive, mark) = (drive.clone(), random.bits() as u8);
            drive.world().clone().spawn(async move {
                let lba = Lba(place * u64::from(block));
                drive
                    .write(lba, pattern(&drive, block, mark).freeze(), false)
                    .await
                    .expect("a write succeeds");
                expect_mark(&drive, lba, block, mark).await;
            })
        })
        .collect();
    for task in tasks {
        task.await;
    }
}

async fn discards(drive: &DriveHandle) {
    let block = drive.info().block_sectors;
    let all = pattern(drive, 4 * block, 0xaa).freeze();
    drive.write(Lba(0), all, false).await.expect("a write succeeds");
    match drive.discard(Lba(u64::from(block)), 2 * u64::from(block)).await {
        Err(IoError::Unsupported) => return,
        result => result.expect("a discard succeeds or is not supported"),
    }
    expect_mark(drive, Lba(0), block, 0xaa).await;
    expect_mark(drive, Lba(3 * u64::from(block)), block, 0xaa).await;
    if drive.info().discard_zeroes {
        expect_mark(drive, Lba(u64::from(block)), 2 * block, 0).await;
    }
}

async fn expect_mark(drive: &DriveHandle, lba: Lba, sectors: u32, mark: u8) {
    let (result, buf) = drive.read(lba, pattern(drive, sectors, !mark)).await;
    result.expect("a read succeeds");
    let found = buf.as_slice().iter().position(|&byte| byte != mark);
    assert_eq!(found, None, "sector {lba} does not hold what was written last");
}
