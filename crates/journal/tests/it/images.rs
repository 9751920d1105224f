//! Images: one that is frozen, and thousands that are damaged.

use crate::common::kit::{ID, format, marks, media, record, recover, regions};
use crate::common::{MediumHandle, Owner, SECTOR};
use tier0_journal::{Entry, Position, Ring, RingError, Settings, frame, header};
use tier0_units::Nanos;
use tier0_world::{PayloadWidth, Random, VirtualRuntime, World};

/// A ring of 16 blocks in format version 1, whose last frame reaches around the end.
const FROZEN: &[u8] = include_bytes!("../fixtures/ring-v1.img");

/// Writes the ring of [`FROZEN`].
async fn write_frozen(world: &World, media: &[MediumHandle]) {
    let ring = format(world, media, Settings::default()).await.expect("formats");
    for mark in 1..=6 {
        let position = ring.append(record(mark, u32::from(mark) % 3)).await.expect("appends").position;
        ring.release(Position(position.0.saturating_sub(1)));
    }
    ring.persist_tail().await.expect("persists");
    let appends = [7, 8].map(|mark| ring.append(record(mark, 3)));
    for append in appends {
        append.await.expect("appends");
    }
}

fn run_once<T: 'static>(
    media: Vec<MediumHandle>,
    test: impl AsyncFnOnce(World, Vec<MediumHandle>) -> T + 'static,
) -> T {
    let runtime = VirtualRuntime::new(1, PayloadWidth::REAL);
    let world = runtime.world().clone();
    runtime.run(async move { test(world, media).await })
}

#[test]
fn the_frozen_image_of_version_1_is_read() {
    let media = media(1, 16);
    media[0].borrow_mut().stable.copy_from_slice(FROZEN);
    let entries =
        run_once(media, async |world, media| recover(&world, &media).await.expect("recovers").entries);
    assert_eq!(marks(&entries), [(4, 5, 2), (5, 6, 0), (6, 7, 3), (7, 8, 3)]);
}

/// A change of the bytes that are written needs a new format version and another frozen image. After that, write it with
/// `JOURNAL_WRITE_FIXTURE=path`.
#[test]
fn the_frozen_image_is_what_is_written() {
    let media = media(1, 16);
    let written = run_once(media, async |world, media| {
        write_frozen(&world, &media).await;
        media[0].borrow().stable.clone()
    });
    if let Ok(path) = std::env::var("JOURNAL_WRITE_FIXTURE") {
        std::fs::write(path, &written).expect("the fixture can be written");
    }
    assert!(written == FROZEN, "the bytes of format version {} have changed", tier0_journal::VERSION);
}

/// An image with a few dozen records, some of which are released.
fn image(seed: u64) -> Vec<Vec<u8>> {
    let media = media(2, 40);
    run_once(media, async move |world, media| {
        let settings = Settings { frames_in_flight_max: 3, ..Settings::default() };
        let ring = format(&world, &media, settings).await.expect("formats");
        let mut random = Random::new(seed, 1);
        for mark in 0..20 + random.below(40) as u8 {
            let append = ring.append(record(mark, random.below(4) as u32));
            if random.chance(0.5) {
                append.await.expect("appends");
                ring.release(Position(u64::from(mark).saturating_sub(5)));
            }
        }
        world.sleep(Nanos::from_millis(50)).await;
        media.iter().map(|medium| medium.borrow().stable.clone()).collect()
    })
}

/// Damages images as no drive would: garbage, sectors from elsewhere, from the other copy, single bits.
fn damage(images: &mut [Vec<u8>], random: &mut Random) {
    let sectors = (images[0].len() / SECTOR) as u64;
    for _ in 0..1 + random.below(12) {
        let (copy, sector) = (random.below(2) as usize, random.below(sectors) as usize * SECTOR);
        let source = random.below(sectors) as usize * SECTOR;
        let length = SECTOR
            * (1 + random.below(16) as usize).min((sectors as usize * SECTOR - sector.max(source)) / SECTOR);
        match random.below(5) {
            0 => images[copy][sector + random.below(SECTOR as u64) as usize] ^= 1 << random.below(8),
            1 => {
                images[copy][sector..sector + length].iter_mut().for_each(|byte| *byte = random.bits() as u8)
            }
            2 => images[copy][sector..sector + length].fill(0),
            3 => images[copy].copy_within(source..source + length, sector),
            _ => {
                let other = images[1 - copy][source..source + length].to_vec();
                images[copy][sector..sector + length].copy_from_slice(&other);
            }
        }
    }
}

/// Mark and position go together: what is recovered is what was appended, in order, without a gap.
fn check(entries: &[Entry]) {
    for (i, (position, mark, _)) in marks(entries).into_iter().enumerate() {
        assert_eq!(position, entries[0].position.0 + i as u64);
        assert_eq!(position, u64::from(mark));
    }
}

#[test]
fn damaged_images_give_what_was_appended_or_an_error() {
    let (mut recovered, mut refused) = (0, 0);
    for seed in 0..600 {
        let mut random = Random::new(seed, 0);
        let mut images = image(seed / 30);
        damage(&mut images, &mut random);
        let media = media(2, 40);
        for (medium, image) in media.iter().zip(images) {
            medium.borrow_mut().stable = image;
        }
        let result = run_once(media, async |world, media| {
            let recovered = recover(&world, &media).await?;
            check(&recovered.entries);
            recovered.ring.release(recovered.ring.stable());
            for mark in 0..30 {
                let position = recovered.ring.append(record(mark, 2)).await?.position;
                recovered.ring.release(position);
            }
            Ok::<(), RingError>(())
        });
        match result {
            Ok(()) => recovered += 1,
            Err(RingError::Damaged { .. } | RingError::NoRing) => refused += 1,
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
    println!("{recovered} recovered, {refused} refused");
    assert!(recovered > 100 && refused > 5, "{recovered} recovered, {refused} refused");
}

#[test]
fn garbage_is_no_ring() {
    for seed in 0..200 {
        let media = media(2, 8 + seed % 20);
        let mut random = Random::new(seed, 0);
        for medium in &media {
            medium.borrow_mut().stable.iter_mut().for_each(|byte| *byte = random.bits() as u8);
        }
        let error = run_once(media, async |world, media| recover(&world, &media).await.err());
        assert_eq!(error, Some(RingError::NoRing));
    }
}

/// Headers whose checksum is right and whose content is not, before frames of a real ring.
#[test]
fn forged_headers_do_no_harm() {
    let images = image(1);
    let header::HeaderPlace::Valid(sound) = header::decode(&images[0]) else {
        panic!("the image has a header")
    };
    for seed in 0..500 {
        let mut random = Random::new(seed, 0);
        let mut forged = sound;
        let mut number = |sound: u64| match random.below(6) {
            0 => random.bits() >> random.below(64),
            1 => (1 << 62) - 1 - random.below(3),
            2 => sound.wrapping_add(random.below(5)).wrapping_sub(2),
            _ => sound,
        };
        forged.generation = number(sound.generation);
        forged.incarnation = number(sound.incarnation);
        forged.blocks = number(sound.blocks);
        forged.tail.block = number(sound.tail.block);
        forged.tail.sequence = number(sound.tail.sequence);
        forged.tail.position = number(sound.tail.position);
        forged.stable = number(sound.stable);
        forged.fence = number(sound.fence);
        let media = media(2, 40);
        for (medium, image) in media.iter().zip(&images) {
            let mut stable = image.clone();
            header::encode(&forged, &mut stable[..4096]);
            header::encode(&forged, &mut stable[4096..8192]);
            medium.borrow_mut().stable = stable;
        }
        run_once(media, async |world, media| {
            let all = regions(&world, &media).into_iter().map(Some).collect();
            let owner = Owner::of_good_copies(&world);
            if let Ok(recovered) = Ring::recover(&world, all, ID, Settings::default(), owner).await {
                check(&recovered.entries);
                // Whatever a forged header makes of it, nothing is out of bounds.
                let _ = recovered.ring.append(record(1, 1)).await;
            }
        });
    }
}

#[test]
fn a_frame_is_parsed_only_if_every_bit_is_right() {
    let images = image(2);
    let header::HeaderPlace::Valid(sound) = header::decode(&images[0]) else {
        panic!("the image has a header")
    };
    let start = 8192 + (sound.tail.block % sound.blocks) as usize * 4096;
    let section = &images[0][start..start + 4096];
    let (_, extent) = frame::peek(section).expect("the tail is a frame");
    let parsed = frame::parse(section).expect("the tail is a frame");
    assert_eq!(parsed.extent(), extent);
    for bit in 0..extent.header_bytes as usize * 8 {
        let mut damaged = section.to_vec();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(frame::parse(&damaged), None, "bit {bit}");
    }
    for length in 0..extent.header_bytes as usize {
        assert_eq!(frame::parse(&section[..length]), None, "cut at {length}");
    }
}
