//! Rings with simple records on good drives.

use tier0_journal::{Entry, Record, Recovered, Region, Ring, RingError, Settings};
use tier0_world::{BufMut, PayloadWidth, VirtualRuntime, World};
use uuid::Uuid;

use super::{CrashDrive, Medium, MediumHandle, Owner};

pub const ID: Uuid = Uuid::from_u128(42);

pub fn media(count: usize, blocks: u64) -> Vec<MediumHandle> {
    (0..count).map(|_| Medium::new((2 + blocks) * 8)).collect()
}

pub fn regions(world: &World, media: &[MediumHandle]) -> Vec<Region> {
    (0..).zip(media).map(|(i, medium)| CrashDrive::region(world, medium, i)).collect()
}

pub async fn format(world: &World, media: &[MediumHandle], settings: Settings) -> Result<Ring, RingError> {
    Ring::format(world, regions(world, media), ID, settings, Owner::of_good_copies(world)).await
}

pub async fn recover(world: &World, media: &[MediumHandle]) -> Result<Recovered, RingError> {
    let regions = regions(world, media).into_iter().map(Some).collect();
    Ring::recover(world, regions, ID, Settings::default(), Owner::of_good_copies(world)).await
}

pub fn record(mark: u8, pages: u32) -> Record {
    let mut buf = BufMut::new(pages * 8, PayloadWidth::REAL);
    buf.as_mut_slice().fill(mark);
    Record { header: vec![mark; 10], pages: if pages > 0 { vec![buf.freeze()] } else { vec![] } }
}

pub fn marks(entries: &[Entry]) -> Vec<(u64, u8, usize)> {
    let mark = |entry: &Entry| {
        assert!(entry.pages.iter().all(|page| page.as_slice() == [entry.header[0]; 4096]));
        (entry.position.0, entry.header[0], entry.pages.len())
    };
    entries.iter().map(mark).collect()
}

/// Runs `test` in a world of its own.
pub fn run<F: Future + 'static>(test: impl FnOnce(World) -> F + 'static) -> F::Output
where
    F::Output: 'static,
{
    let runtime = VirtualRuntime::new(1, PayloadWidth::REAL);
    let world = runtime.world().clone();
    runtime.run(async move { test(world).await })
}
