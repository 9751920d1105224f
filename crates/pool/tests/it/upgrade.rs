//! Pools of earlier formats: the frozen image of a whole pool is opened, goes on as it was, and is of today's format then.
//!
//! `pool-v2.img` is what the last program of superblock format 2 left on the three drives of 32 MiB of a RAID 1 pool, killed
//! while it served: per block of 4 KiB of the metadata areas that is not zeros, its number (4 bytes, through all drives),
//! the bytes kept (2), and these.

use std::cell::Cell;
use std::rc::Rc;

use tier0_drive::DriveHandle;
use tier0_drive::sim::{PowerSwitch, SimMedium, SimOptions};
use tier0_pool::PoolState;
use tier0_pool::metadata::{Metadata, superblock, survey};
use tier0_units::{Lba, SectorCount};
use tier0_world::{BufMut, PayloadWidth, World};

use crate::common::{Rack, no_hook, only_pool};

const BLOCK_SECTORS: u64 = 8;
const BLOCK_BYTES: usize = 4096;
const DRIVE_SECTORS: u64 = 65_536;
const BLOCKS: u32 = (DRIVE_SECTORS / BLOCK_SECTORS) as u32;
const DRIVES: usize = 3;
const VERSION_BYTE: usize = 8;

fn rack(seed: u64) -> Rack {
    let switch = PowerSwitch::new();
    let medium = |number| {
        let options =
            SimOptions::new(&format!("sim{number}"), SectorCount(DRIVE_SECTORS), seed * 100 + number);
        SimMedium::new(options, &switch)
    };
    let media = (0..DRIVES as u64).map(medium).collect();
    Rack { switch, media, seed }
}

/// Puts the image on drives that hold nothing.
async fn put(drives: &[DriveHandle]) {
    let mut rest: &[u8] = include_bytes!("../fixtures/pool-v2.img");
    while let [a, b, c, d, e, f, more @ ..] = rest {
        let number = u32::from_le_bytes([*a, *b, *c, *d]);
        let (kept, behind) = more.split_at(usize::from(u16::from_le_bytes([*e, *f])));
        let mut block = kept.to_vec();
        block.resize(BLOCK_BYTES, 0);
        let drive = &drives[(number / BLOCKS) as usize];
        let at = Lba(u64::from(number % BLOCKS) * BLOCK_SECTORS);
        let buf = BufMut::copy_from(&block, PayloadWidth::REAL).freeze();
        drive.write(at, buf, true).await.expect("the drive is good");
        rest = behind;
    }
    for drive in drives {
        drive.flush().await.expect("the drive is good");
    }
}

async fn open(world: &World, drives: &[DriveHandle]) -> Metadata {
    let found = only_pool(survey(drives.to_vec()).await).expect("there is a pool");
    found.open(world, no_hook()).await.expect("it opens")
}

/// The formats of both copies of all superblocks.
async fn versions(drives: &[DriveHandle]) -> Vec<u8> {
    let mut versions = Vec::new();
    for drive in drives {
        for at in [128, 256] {
            let (result, buf) = drive.read(Lba(at), drive.world().buffer(BLOCK_SECTORS as u32)).await;
            result.expect("the drive is good");
            versions.push(buf.as_slice()[VERSION_BYTE]);
        }
    }
    versions
}

fn check(state: &PoolState) {
    state.verify().expect("sound");
    assert_eq!((state.array(), state.members().len()), ("old", DRIVES));
    assert!(state.members().iter().all(|member| member.is_active() && member.path.is_empty()));
    let volume = state.volume_named("data").expect("it is there");
    assert_eq!(volume.sectors, (8 << 20) / 512);
    assert_eq!(state.map(volume.number).expect("it has a map").count(), 8, "all extents were written");
}

#[test]
fn a_pool_of_superblock_2_and_checkpoint_1_opens_and_is_of_today() {
    let rack = rack(1);
    let checked = rack.run(0, |world, drives| async move {
        put(&drives).await;
        assert_eq!(versions(&drives).await, [2; 2 * DRIVES]);
        let pool = open(&world, &drives).await;
        check(&pool.state());
        let (generation, path) = (pool.generation(), "/dev/disk/by-id/d1");
        pool.remember_paths(vec![(1, path.to_owned())]).await.expect("the drives are good");
        assert_eq!(versions(&drives).await, [superblock::VERSION as u8; 2 * DRIVES]);
        drop(pool);
        let found = only_pool(survey(drives.clone()).await).expect("there is a pool");
        assert_eq!((found.generation, found.label.settled), (generation + 1, generation));
        assert_eq!(found.label.members[1].path, path);
        let pool = found.open(&world, no_hook()).await.expect("it opens");
        assert_eq!(pool.state().members()[1].path, path);
    });
    checked.expect("the power stays");
}

#[test]
fn a_crash_anywhere_in_the_upgrade_leaves_a_pool_that_opens() {
    let mixed = Rc::new(Cell::new(0));
    for seed in 0..120 {
        let rack = rack(seed);
        rack.run(0, |_, drives| async move { put(&drives).await }).expect("the power stays");
        rack.switch.arm(1 + seed % 60);
        rack.run(1, |world, drives| async move { drop(open(&world, &drives).await) });
        rack.power_cut();
        let mixed = mixed.clone();
        let checked = rack.run(2, |world, drives| async move {
            let versions = versions(&drives).await;
            let is_mixed = versions.contains(&2) && versions.contains(&(superblock::VERSION as u8));
            mixed.set(mixed.get() + u32::from(is_mixed));
            check(&open(&world, &drives).await.state());
        });
        checked.expect("the power stays");
    }
    assert!(mixed.get() > 5, "only {} crashes left both formats", mixed.get());
}
