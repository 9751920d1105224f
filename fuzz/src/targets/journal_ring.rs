//! Recovery of a mirrored ring from the blocks of its two copies, whatever they hold.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use tier0_drive::DriveHandle;
use tier0_journal::{LossReport, Record, Region, Ring, Settings};
use tier0_units::Lba;
use tier0_world::{IoError, World};
use uuid::Uuid;

use super::image::Image;
use crate::Target;

pub(super) const TARGET: Target = Target {
    name: "journal-ring",
    seeds,
    repair,
    run,
    input_bytes_max: 64 << 10,
    inputs_in_tests: 2000,
    // Both copies whole are 144 KiB, kept by the drives, read through windows and held as recovered pages; the drives keep
    // pieces of 128 KiB.
    memory_bytes_max: (4 << 20, 128),
};

/// Blocks of a copy: two of its header, and the ring proper.
const COPY_BLOCKS: u16 = 2 + 16;
const RING: Uuid = Uuid::from_u128(42);

fn seeds() -> Vec<Vec<u8>> {
    let blank = Image::of(&[], 2, COPY_BLOCKS);
    let image = blank.run(|world, drives| async move {
        let regions = drives.iter().cloned().map(region).collect();
        let ring = Ring::format(&world, regions, RING, Settings::default(), owner()).await.expect("it fits");
        let mut last = None;
        for (mark, pages) in [(1, 0), (2, 1), (3, 0), (4, 2)] {
            last = Some(ring.append(record(&world, mark, pages)).await.expect("there is room"));
        }
        ring.release(tier0_journal::Position(1));
        ring.persist_tail().await.expect("the drives are good");
        ring.append(record(&world, 5, 0)).await.expect("there is room");
        assert!(last.is_some(), "records were appended");
        Image::taken(&drives).await
    });
    vec![image.to_input()]
}

fn record(world: &World, mark: u8, pages: u32) -> Record {
    let mut data = world.buffer(pages * 8);
    data.as_mut_slice().fill(mark);
    Record { header: vec![mark; 20], pages: if pages > 0 { vec![data.freeze()] } else { Vec::new() } }
}

fn region(drive: DriveHandle) -> Region {
    Region { drive, first: Lba(0), sectors: u64::from(COPY_BLOCKS) * 8 }
}

fn repair(input: &mut Vec<u8>) {
    let mut image = Image::of(input, 2, COPY_BLOCKS);
    image.repair();
    *input = image.to_input();
}

fn run(input: &[u8]) -> bool {
    let image = Image::of(input, 2, COPY_BLOCKS);
    image.run(|world, drives| async move {
        let Ok(first) = recover(&world, &drives).await else { return false };
        // What was recovered once is what is recovered again, and the ring can go on.
        let again = recover(&world, &drives).await.expect("a recovered ring is recovered again");
        assert!(first == again, "recovery changes its mind: {first:?}, then {again:?}");
        true
    })
}

/// Positions, headers and pages of what is recovered.
type Entries = Vec<(u64, Vec<u8>, Vec<Vec<u8>>)>;

async fn recover(world: &World, drives: &[DriveHandle]) -> Result<Entries, tier0_journal::RingError> {
    let regions = drives.iter().cloned().map(|drive| Some(region(drive))).collect();
    let recovered = Ring::recover(world, regions, RING, Settings::default(), owner()).await?;
    let pages = |pages: &[tier0_world::Buf]| pages.iter().map(|page| page.as_slice().to_vec()).collect();
    let entries = recovered.entries.iter();
    Ok(entries.map(|entry| (entry.position.0, entry.header.clone(), pages(&entry.pages))).collect())
}

fn owner() -> Rc<dyn LossReport> {
    Rc::new(GoodDrives)
}

/// The owner of copies that do not fail.
struct GoodDrives;

impl LossReport for GoodDrives {
    fn report(&self, copy: usize, error: IoError) -> Pin<Box<dyn Future<Output = ()>>> {
        unreachable!("copy {copy} of a store fails: {error}")
    }
}
