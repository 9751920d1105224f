//! `cargo xtask bench qos --part lanes`: what writes to flash notice of a saturated group of disks, on modelled drives in virtual
//! time. A volume whose home are the disks is pinned to flash in part, and another one has its home there; both parts get the same
//! writes at the same time, while a flood of writes goes to the disks.
//!
//! A write that is late because others took long counts from when it was due. The pinned part is written through the lane of the disks, because a volume has one lane of the write log (decision 0011).

use std::ops::Range;

use tier0_api::{AdminReply, AdminRequest, VolumePlace};
use tier0_array::Volume;
use tier0_array::engine::{Born, Engine};
use tier0_array::simulated::{ModelShelf, SimulatedArray, build};
use tier0_block::BlockTarget;
use tier0_catalog::Catalog;
use tier0_description::Description;
use tier0_units::{ByteCount, Nanos, SECTOR_BYTES};
use tier0_world::{PayloadWidth, VirtualRuntime, World};

use super::host::{Got, Load, Loaded, measured};
use crate::bench::{judge_at_most, table};
use crate::error::BenchError;

/// What is aimed at: p99 of writes to the pinned part, as a multiple of that of the volume whose home is flash.
const PINNED_MOST: f64 = 1.5;
/// The pinned part, at the beginning of its volume.
const PINNED: ByteCount = ByteCount::gib(2);
/// How long its extents may take to get there.
const PINNING_MAX: Nanos = Nanos::from_secs(3600);
const LOOK: Nanos = Nanos::from_secs(1);

const QUIET: Load =
    Load { hosts: 4, every: Nanos::from_millis(20), sectors: 16, reads: 0, is_sequential: false };
const FLOOD: Load = Load { hosts: 32, every: Nanos::ZERO, sectors: 128, reads: 0, is_sequential: false };

/// Where the flood goes.
#[derive(Clone, Copy, PartialEq)]
enum Flood {
    Nowhere,
    /// To another volume of the disks.
    Other,
    /// To the rest of the volume that is pinned in part.
    Same,
}

impl Flood {
    const ALL: [Flood; 3] = [Flood::Nowhere, Flood::Other, Flood::Same];

    fn name(self) -> &'static str {
        match self {
            Flood::Nowhere => "none",
            Flood::Other => "to another volume of the disks",
            Flood::Same => "to the rest of the same volume",
        }
    }
}

/// Measures it for so long each, and prints.
pub(super) fn run(time: Nanos) -> Result<(), BenchError> {
    println!(
        "\n8 x sas-10k-900gb-sff in RAID 6, 2 x ssd-sas-400gb in RAID 1 with the log of 256 MiB, in virtual time; 8 KiB writes, 200 a \
         second to each part; the flood: 64 KiB writes, {} outstanding",
        FLOOD.hosts
    );
    let mut rows = table(&[
        "flood",
        "home on flash: p50 ms",
        "p99 ms",
        "pinned to flash: p50 ms",
        "p99 ms",
        "writes/s",
        "ratio of p99",
        "flood MB/s",
    ]);
    let mut lines = Vec::new();
    for flood in Flood::ALL {
        let got = simulate(flood, time)?;
        let [flash, pinned] = [&got[0], &got[1]];
        let ratio = pinned.quantile(99) / flash.quantile(99);
        let rate = got.get(2).map_or_else(String::new, |flood| format!("{:.0}", flood.megabytes_per_s()));
        let latencies = [(flash, 50), (flash, 99), (pinned, 50), (pinned, 99)];
        let [flash_p50, flash_p99, pinned_p50, pinned_p99] =
            latencies.map(|(got, percent)| format!("{:.2}", got.quantile(percent)));
        rows.add_row([
            flood.name().to_owned(),
            flash_p50,
            flash_p99,
            pinned_p50,
            pinned_p99,
            format!("{:.0}", pinned.requests_per_s()),
            format!("{ratio:.2}"),
            rate,
        ]);
        if flood != Flood::Nowhere {
            lines.push(format!(
                "p99 of writes to the pinned part, flood {}: {ratio:.2} times that of the volume at home on flash, aimed at \
                 {PINNED_MOST}: {}",
                flood.name(),
                judge_at_most(ratio, PINNED_MOST)
            ));
        }
    }
    println!("{rows}");
    lines.iter().for_each(|line| println!("{line}"));
    Ok(())
}

/// What the volume at home on flash, the pinned part and the flood got.
fn simulate(flood: Flood, time: Nanos) -> Result<Vec<Got>, BenchError> {
    let failed = |error: String| BenchError::Failed(format!("flood {}: {error}", flood.name()));
    let runtime = VirtualRuntime::new(1, PayloadWidth::NONE);
    let world = runtime.world().clone();
    let description = describe();
    let mut shelf = ModelShelf::default();
    shelf.prepare(&Catalog::embedded(), &description).map_err(|error| failed(error.to_string()))?;
    let building = build(&world, &description, &shelf, Born::Full, |_, drive| drive);
    let SimulatedArray { engine, volumes, .. } =
        runtime.run(building).map_err(|error| failed(error.to_string()))?;
    runtime.run(pin(world.clone(), engine)).map_err(failed)?;
    let [flash, part, other] = volumes.try_into().unwrap_or_else(|_| unreachable!("there are three"));
    let pinned: Range<u64> = 0..PINNED.0 / SECTOR_BYTES;
    let rest = pinned.end..part.info().sectors.0;
    let mut loads =
        vec![Loaded::part(flash, QUIET, pinned.clone()), Loaded::part(part.clone(), QUIET, pinned)];
    let flooded: Option<Loaded<Volume>> = match flood {
        Flood::Nowhere => None,
        Flood::Other => Some(Loaded::whole(other, FLOOD)),
        Flood::Same => Some(Loaded::part(part, FLOOD, rest)),
    };
    loads.extend(flooded);
    runtime.run(measured(world, loads, time)).map_err(|error| failed(error.to_string()))
}

fn describe() -> Description {
    let text = "[array]\nname = \"bench\"\n\
        [[drive]]\nname = \"disk{n}\"\ncount = 8\nmodel = \"sas-10k-900gb-sff\"\n\
        [[drive]]\nname = \"ssd{n}\"\ncount = 2\nmodel = \"ssd-sas-400gb\"\n\
        [[pool]]\nname = \"pool0\"\nlog = \"256MiB\"\nlog_drives = [\"ssd*\"]\n\
        [[pool.group]]\nname = \"disks\"\ndrives = [\"disk*\"]\nraid = \"raid6\"\nset_size = 8\n\
        [[pool.group]]\nname = \"flash\"\ndrives = [\"ssd*\"]\nraid = \"raid1\"\nset_size = 2\n\
        [[volume]]\nname = \"flash\"\nsize = \"16GiB\"\ngroup = \"flash\"\n\
        [[volume]]\nname = \"pinned\"\nsize = \"64GiB\"\ngroup = \"disks\"\n\
        [[volume]]\nname = \"other\"\nsize = \"64GiB\"\ngroup = \"disks\"\n";
    Description::parse(text, "the benchmark's array").expect("the benchmark's array is right")
}

/// Pins the part to flash, and waits until it lies there.
async fn pin(world: World, engine: Engine) -> Result<(), String> {
    let (volume, place) = ("pinned".to_owned(), VolumePlace::Fast);
    let request = AdminRequest::VolumePin { volume, from: ByteCount(0), to: PINNED, place, until_unix_s: 0 };
    match engine.administer(request).await {
        AdminReply::Done(_) => {}
        other => return Err(format!("a part cannot be pinned: {other:?}")),
    }
    let until = world.now() + PINNING_MAX;
    while world.now() < until {
        let status = engine.status().await;
        let away = status.pools[0].volumes.iter().find(|volume| volume.name == "pinned");
        if away.is_some_and(|volume| volume.away_bytes >= PINNED.0) {
            return Ok(());
        }
        world.sleep(LOOK).await;
    }
    Err(format!("the pinned part is not on flash after {PINNING_MAX}"))
}
