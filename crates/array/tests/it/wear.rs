//! What freed space is worth to flash drives that are told of it: fewer pages moved for each page written.

use tier0_array::engine::{StartOptions, create, start};
use tier0_drive::flash::{FlashModel, FlashParameters, Precondition, ReadScheduling};
use tier0_drive::{Command, Content, Drive, DriveHandle, DriveInfo, FlashDrive};
use tier0_units::{ByteCount, Nanos};
use tier0_world::{Completion, World};

use crate::rig::{MIB, create_volume, describe, done, live, volume, write};

const DRIVE: ByteCount = ByteCount::mib(96);
/// Sectors of one random write: 16 KiB.
const WRITE: u32 = 32;

/// A consumer's flash drive, with the least spare flash there is: 7 %.
fn flash(seed: u64) -> FlashModel {
    let parameters = FlashParameters {
        capacity: DRIVE,
        over_provisioning: 0.07,
        channels: 1,
        dies_per_channel: 2,
        planes_per_die: 1,
        page_bytes: 4096,
        mapping_bytes: 4096,
        pages_per_block: 32,
        read_time: Nanos::from_micros(50),
        read_time_spread: 0.0,
        program_time: Nanos::from_micros(800),
        erase_time: Nanos::from_millis(3),
        channel_bytes_per_second: 400_000_000,
        read_scheduling: ReadScheduling::BetweenOperations,
        controller_cores: 4,
        controller_read_time: Nanos::from_micros(20),
        controller_write_time: Nanos::from_micros(20),
        interface_bytes_per_second: 550_000_000,
        interface_full_duplex: true,
        controller_read_bytes_per_second: 550_000_000,
        controller_write_bytes_per_second: 550_000_000,
        write_buffer: ByteCount::mib(1),
        power_loss_protected: true,
        queue_depth: 32,
        endurance_cycles: 3_000,
        modelled_span: DRIVE,
    };
    let mut model = FlashModel::new(parameters, seed).expect("the parameters are in range");
    model.precondition(Precondition::default());
    model
}

/// A flash drive that takes discards and, if it is deaf, does not say so.
#[derive(Clone)]
struct Flash {
    drive: FlashDrive,
    deaf: bool,
}

impl Drive for Flash {
    fn info(&self) -> &DriveInfo {
        self.drive.info()
    }

    fn world(&self) -> &World {
        self.drive.world()
    }

    fn submit(&self, command: Command, completion: Completion) {
        self.drive.submit(command, completion);
    }

    fn gains_by_discard(&self) -> bool {
        !self.deaf
    }
}

/// NAND writes for each page that a pool of mirrored flash writes to its drives under random writes, after a volume that took 30 % of
/// it has been deleted.
fn write_amplification(deaf: bool) -> f64 {
    live(61, move |world| async move {
        let open = |number: u64| {
            let drive =
                FlashDrive::new(&world, &format!("d{number}"), flash(number), Content::memory(&world));
            Flash { drive, deaf }
        };
        let drives = [open(0), open(1)];
        let handles = || drives.iter().cloned().map(DriveHandle::new).collect::<Vec<_>>();
        create(&world, &describe("raid1", 2, 2, ""), handles(), 1).await.expect("created");
        let engine = start(&world, handles(), &StartOptions::default()).await.expect("started");
        let usable = engine.status().await.pools[0].space.usable_bytes;
        let [kept_mib, deleted_mib] = [70, 28].map(|percent| (usable * percent / 100) >> 20);
        for (name, extents) in [("kept", kept_mib), ("deleted", deleted_mib)] {
            done(&engine, create_volume(name, ByteCount::mib(extents), true)).await;
            for extent in 0..extents {
                write(&world, &volume(&engine, name), extent * MIB, MIB as u32, 1).await;
            }
        }
        engine.drain().await.expect("destaged");
        let delete = tier0_api::AdminRequest::VolumeDelete { volume: "deleted".into(), force: false };
        done(&engine, delete).await;
        let mut random = world.random(7);
        let written = |drive: &Flash| drive.drive.with_model(|model| model.statistics());
        let kept = volume(&engine, "kept");
        let mut overwrite = async |bytes: u64| {
            for _ in 0..bytes / 512 / u64::from(WRITE) {
                let place = random.below(kept_mib * MIB / u64::from(WRITE));
                write(&world, &kept, place * u64::from(WRITE), WRITE, 2).await;
            }
            engine.drain().await.expect("destaged");
        };
        overwrite(DRIVE.0).await;
        let before = written(&drives[0]);
        overwrite(DRIVE.0).await;
        let after = written(&drives[0]);
        let nand = after.nand_pages_written - before.nand_pages_written;
        nand as f64 / (after.host_pages_written - before.host_pages_written) as f64
    })
}

#[test]
fn freed_space_spares_a_flash_drive() {
    let [told, deaf] = [false, true].map(write_amplification);
    println!("write amplification, 70 % full: {told:.2} with discards, {deaf:.2} without");
    assert!(told < 0.7 * deaf, "{told:.2} with discards, {deaf:.2} without");
}
