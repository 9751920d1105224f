//! Prints how many host I/Os per second of one core the engine simulates: closed loops of 8 KiB through volume, RAID 10
//! and the models of flash and of disks with deep queues.
//!
//! `cargo bench -p tier0-array --bench simulated_rate`

use std::cell::Cell;
use std::rc::Rc;

use tier0_array::engine::Born;
use tier0_array::simulated::{ModelShelf, build};
use tier0_block::BlockTarget;
use tier0_catalog::Catalog;
use tier0_description::Description;
use tier0_units::{Lba, Nanos};
use tier0_world::{PayloadWidth, VirtualRuntime};

fn main() {
    println!("drive                       read share  users  host I/Os simulated  per second of one core");
    for (model, users, ios) in
        [("nvme", 128, 3_000_000), ("ssd-sas-400gb", 128, 3_000_000), ("sas-15k-146gb-sff", 256, 600_000)]
    {
        for read_percent in [100, 70] {
            let rate = rate(model, users, ios, read_percent);
            println!("{model:<27} {read_percent:>9}%  {users:>5}  {ios:>19}  {rate:>22.0}");
        }
    }
}

fn rate(model: &str, users: u64, ios: u64, read_percent: u64) -> f64 {
    let text = format!(
        "[array]\nname = \"a\"\n[[drive]]\nname = \"d{{n}}\"\ncount = 8\nmodel = \"{model}\"\n\
         [[pool]]\nname = \"p\"\nraid = \"raid10\"\n[[volume]]\nname = \"v\"\nsize = \"100GiB\"\n"
    );
    let description = Description::parse(&text, "built in").expect("a correct description");
    let mut shelf = ModelShelf::default();
    shelf.prepare(&Catalog::embedded(), &description).expect("catalogue models");
    let runtime = VirtualRuntime::new(1, PayloadWidth::NONE);
    let building = build(runtime.world(), &description, &shelf, Born::Full, |_, drive| drive);
    let array = runtime.run(building).expect("an array");
    let left = Rc::new(Cell::new(ios));
    let tasks: Vec<_> = (0..users)
        .map(|user| {
            let (world, volume, left) = (runtime.world().clone(), array.volumes[0].clone(), left.clone());
            runtime.world().spawn(async move {
                let mut random = world.random(user);
                let places = volume.info().sectors.0 / 16;
                while left.get() > 0 {
                    left.set(left.get() - 1);
                    let lba = Lba(random.below(places) * 16);
                    let buf = world.buffer(16);
                    if random.below(100) < read_percent {
                        volume.read(lba, buf).await.0.expect("a read succeeds");
                    } else {
                        volume.write(lba, buf.freeze(), false).await.expect("a write succeeds");
                    }
                }
            })
        })
        .collect();
    let start = cpu();
    runtime.run(async move {
        for task in tasks {
            task.await;
        }
    });
    ios as f64 / (cpu() - start).as_secs_f64()
}

/// CPU time of this thread.
fn cpu() -> Nanos {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}
