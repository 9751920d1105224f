//! Real arrays on files: created, found again by identity, run by several shards, with drives lost.

use std::path::Path;

use tier0_array::ArrayError;
use tier0_array::open::{CreateOptions, OpenArray, OpenOptions, create, open};
use tier0_array::real::{ShardContext, Stopper, run};
use tier0_block::BlockTarget;
use tier0_description::{Description, Mismatch};
use tier0_plan::PlanError;
use tier0_units::Lba;
use tier0_world::real::Backend;

fn describe(directory: &Path, raid: &str, set_size: usize, drives: usize, cores: usize) -> Description {
    let text = format!(
        r#"
[array]
name = "test"
cores = {cores}
search = [{directory:?}]

[[drive]]
name = "d{{n}}"
count = {drives}
path = "{}/d{{n}}.img"
size = "64MiB"

[[pool]]
name = "pool0"
raid = "{raid}"
set_size = {set_size}

[[volume]]
name = "lun0"
size = "40MiB"

[[volume]]
name = "lun1"
size = "8MiB"
"#,
        directory.display()
    );
    Description::parse(&text, "test.toml").expect("a correct description")
}

/// Runs `work` in the first shard; the others serve until it is done.
#[expect(clippy::disallowed_methods, reason = "the array is stopped from outside, as a signal does")]
fn with_array<F: Future<Output = ()> + 'static>(
    array: &OpenArray,
    backend: Backend,
    work: impl Fn(ShardContext) -> F + Send + Sync,
) {
    let (done, finished) = std::sync::mpsc::channel();
    let stop = |stopper: Stopper| {
        std::thread::spawn(move || {
            finished.recv().expect("the work ends");
            stopper.stop();
        });
    };
    run(array, backend, stop, |context| {
        let first = (context.index == 0).then(|| (work(context.clone()), done.clone()));
        async move {
            match first {
                Some((work, done)) => {
                    work.await;
                    done.send(()).expect("somebody waits");
                }
                None => context.stopping().await,
            }
        }
    })
    .expect("the array runs");
}

async fn write_pattern(context: ShardContext, seed: u8) {
    let volume = &context.volumes[0];
    let sectors = volume.info().sectors.0;
    let step = 300;
    for first in (0..sectors).step_by(step) {
        let count = (step as u64).min(sectors - first) as u32;
        let mut buf = context.world.buffer(count);
        for (i, sector) in buf.as_mut_slice().chunks_exact_mut(512).enumerate() {
            sector.fill(seed.wrapping_add((first + i as u64) as u8));
            sector[..8].copy_from_slice(&(first + i as u64).to_le_bytes());
        }
        volume.write(Lba(first), buf.freeze(), false).await.expect("a write succeeds");
    }
    volume.flush().await.expect("a flush succeeds");
}

async fn check_pattern(context: ShardContext, seed: u8) {
    let volume = &context.volumes[0];
    let sectors = volume.info().sectors.0;
    let step = 4096;
    for first in (0..sectors).step_by(step) {
        let count = (step as u64).min(sectors - first) as u32;
        let (result, buf) = volume.read(Lba(first), context.world.buffer(count)).await;
        result.expect("a read succeeds");
        for (i, sector) in buf.as_slice().chunks_exact(512).enumerate() {
            let lba = first + i as u64;
            assert_eq!(sector[..8], lba.to_le_bytes(), "sector {lba} is another's");
            assert_eq!(sector[511], seed.wrapping_add(lba as u8), "sector {lba} is old");
        }
    }
}

#[test]
fn an_array_is_found_again_by_identity_and_keeps_its_data() {
    for (raid, set_size) in [("raid0", 3), ("raid10", 4), ("raid5", 5), ("raid6", 5)] {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
        let description = describe(directory.path(), raid, set_size, 5, 2);
        let array = create(&description, CreateOptions::default()).expect("created");
        with_array(&array, Backend::Auto, |context| write_pattern(context, 7));
        drop(array);
        // The drives change places and names.
        let at = |name: &str| directory.path().join(name);
        std::fs::rename(at("d0.img"), at("moved.img")).expect("renamed");
        std::fs::rename(at("d1.img"), at("d0.img")).expect("renamed");
        std::fs::rename(at("d2.img"), at("d1.img")).expect("renamed");
        let array = open(&description, &OpenOptions::default()).expect("found again");
        assert_eq!(array.warnings(), [] as [String; 0]);
        assert_eq!(array.volumes().map(|(name, _)| name).collect::<Vec<_>>(), ["lun0", "lun1"]);
        with_array(&array, Backend::Auto, |context| check_pattern(context, 7));
    }
}

#[test]
fn a_missing_drive_is_done_without_and_never_believed_again() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let description = describe(directory.path(), "raid5", 5, 5, 1);
    let array = create(&description, CreateOptions::default()).expect("created");
    with_array(&array, Backend::Auto, |context| write_pattern(context, 1));
    drop(array);
    let (here, away) = (directory.path().join("d3.img"), directory.path().with_extension("away"));
    std::fs::rename(&here, &away).expect("renamed");
    let array = open(&description, &OpenOptions::default()).expect("degraded");
    assert!(array.warnings().iter().any(|text| text.contains("\"d3\"") && text.contains("missing")));
    with_array(&array, Backend::Auto, |context| async move {
        check_pattern(context.clone(), 1).await;
        write_pattern(context, 2).await;
    });
    drop(array);
    std::fs::rename(&away, &here).expect("renamed");
    let array = open(&description, &OpenOptions::default()).expect("degraded still");
    assert!(array.warnings().iter().any(|text| text.contains("stale")), "{:?}", array.warnings());
    with_array(&array, Backend::Auto, |context| check_pattern(context, 2));
    drop(array);
    std::fs::remove_file(directory.path().join("d1.img")).expect("removed");
    let error =
        open(&description, &OpenOptions::default()).err().expect("two drives of a RAID 5 are too many");
    assert!(matches!(error, ArrayError::Missing { .. }), "{error}");
}

/// What opening an array refuses is what it says, and the drive that was away serves again afterwards.
fn refuse_with(
    directory: &Path,
    description: &Description,
    wrong: &Description,
    away: &[&str],
    is_expected: fn(&ArrayError) -> bool,
) {
    let place = |name: &&str| directory.join(format!("{name}.img"));
    let aside = |name: &&str| directory.with_extension(name);
    away.iter().for_each(|name| std::fs::rename(place(name), aside(name)).expect("renamed"));
    let error = open(wrong, &OpenOptions::default()).err().expect("refused");
    assert!(is_expected(&error), "{error}");
    away.iter().for_each(|name| std::fs::rename(aside(name), place(name)).expect("renamed"));
    let array = open(description, &OpenOptions::default()).expect("nothing was lost");
    assert_eq!(array.warnings(), [] as [String; 0], "after {error}");
}

/// A start with a wrong volume size or level while a drive was away was refused, but had written before that the drive
/// is lost: it was stale for good when it came back.
#[test]
fn a_start_that_the_description_spoils_loses_no_drive() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let description = describe(directory.path(), "raid5", 5, 5, 1);
    drop(create(&description, CreateOptions::default()).expect("created"));
    let changed: fn(&ArrayError) -> bool =
        |error| matches!(error, ArrayError::Mismatch(Mismatch::Changed { .. }));
    let level = describe(directory.path(), "raid6", 5, 5, 1);
    refuse_with(directory.path(), &description, &level, &["d0"], changed);
    let mut one_more = description.clone();
    one_more.volumes.push(one_more.volumes[0].clone());
    one_more.volumes[2].name = "lun2".into();
    one_more.volumes[2].sectors.0 = 1 << 40;
    let no_space: fn(&ArrayError) -> bool =
        |error| matches!(error, ArrayError::Plan(PlanError::NoSpace { .. }));
    refuse_with(directory.path(), &description, &one_more, &["d4"], no_space);
    // What was created counts: another size in the file is told.
    let mut larger = description.clone();
    larger.volumes[1].sectors.0 *= 2;
    let opened = open(&larger, &OpenOptions::default()).expect("it opens");
    assert!(opened.warnings().iter().any(|warning| warning.contains("volume resize")), "nothing is told");
}

/// A start with both log drives absent was refused, but had written before that they are lost: with them back, the array
/// never opened again.
#[test]
fn a_start_without_the_log_loses_no_drive() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let text = format!(
        r#"
[array]
name = "test"

[[drive]]
name = "d{{n}}"
count = 6
path = "{}/d{{n}}.img"
size = "64MiB"

[[pool]]
name = "pool0"
raid = "raid10"
set_size = 4
drives = ["d0", "d1", "d2", "d3"]
log_drives = ["d4", "d5"]

[[volume]]
name = "lun0"
size = "8MiB"
"#,
        directory.path().display()
    );
    let description = Description::parse(&text, "test.toml").expect("a correct description");
    drop(create(&description, CreateOptions::default()).expect("created"));
    let no_log: fn(&ArrayError) -> bool = |error| matches!(error, ArrayError::NoLog { .. });
    refuse_with(directory.path(), &description, &description, &["d4", "d5"], no_log);
}

#[test]
fn creating_never_overwrites_unasked_and_leaves_nothing_behind() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let description = describe(directory.path(), "raid10", 4, 4, 1);
    assert!(matches!(
        open(&description, &OpenOptions::default()),
        Err(ArrayError::Mismatch(Mismatch::NoPool { .. }))
    ));
    assert_eq!(std::fs::read_dir(directory.path()).expect("a directory").count(), 0, "opening makes no file");

    std::fs::write(directory.path().join("d2.img"), vec![b'x'; 64 << 20]).expect("written");
    let error = create(&description, CreateOptions::default()).err().expect("refused");
    assert!(matches!(&error, ArrayError::Foreign { drive } if drive == "d2"), "{error}");
    assert_eq!(std::fs::read_dir(directory.path()).expect("a directory").count(), 1, "nothing was made");
    assert_eq!(std::fs::read(directory.path().join("d2.img")).expect("read"), vec![b'x'; 64 << 20]);

    drop(create(&description, CreateOptions { force: true }).expect("forced"));
    let error = create(&description, CreateOptions::default()).err().expect("refused");
    assert!(matches!(&error, ArrayError::CreatedAlready { .. }), "{error}");

    std::fs::copy(directory.path().join("d0.img"), directory.path().join("copy.img")).expect("copied");
    assert!(matches!(open(&description, &OpenOptions::default()), Err(ArrayError::Twice { .. })));
}

#[test]
fn a_full_disk_is_an_error_that_leaves_nothing_behind() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let mut description = describe(directory.path(), "raid10", 4, 4, 1);
    let disk = rustix::fs::statvfs(directory.path()).expect("a file system");
    let more_than_free = disk.f_bavail * disk.f_frsize + (1 << 30);
    description.drives[3].size = Some(tier0_units::ByteCount(more_than_free & !4095));
    let error = create(&description, CreateOptions::default()).err().expect("so much is not free");
    assert!(matches!(&error, ArrayError::NoRoom { needed, .. } if needed.0 > more_than_free), "{error}");
    assert_eq!(
        std::fs::read_dir(directory.path()).expect("a directory").count(),
        0,
        "nothing is left behind"
    );
}

#[test]
fn the_other_driver_runs_it_too() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let description = describe(directory.path(), "raid10", 4, 4, 2);
    let array = create(&description, CreateOptions::default()).expect("created");
    with_array(&array, Backend::Threads, |context| async move {
        write_pattern(context.clone(), 9).await;
        check_pattern(context, 9).await;
    });
}

#[test]
fn modelled_disks_against_the_wall_clock_are_as_slow_as_the_model() {
    let text = r#"
[array]
name = "spinning"
[[drive]]
name = "d{n}"
count = 2
model = "sas-10k-900gb-sff"
ram = "901GB"
[[pool]]
name = "pool0"
raid = "raid1"
[[volume]]
name = "lun0"
size = "500GiB"
"#;
    let description = Description::parse(text, "test.toml").expect("a correct description");
    let array = open(&description, &OpenOptions::default()).expect("opened");
    assert_eq!(array.cores(), 1, "a mechanism cannot be in two threads");
    with_array(&array, Backend::Auto, |context| async move {
        let volume = &context.volumes[0];
        let before = context.world.now();
        let mut random = context.world.random(1);
        for _ in 0..20 {
            let lba = Lba(random.below(volume.info().sectors.0 / 16) * 16);
            let mut buf = context.world.buffer(16);
            buf.as_mut_slice().fill(lba.0 as u8);
            volume.write(lba, buf.freeze(), false).await.expect("a write succeeds");
            let (result, buf) = volume.read(lba, context.world.buffer(16)).await;
            result.expect("a read succeeds");
            assert!(buf.as_slice().iter().all(|byte| *byte == lba.0 as u8));
        }
        // 20 random writes on two 10k disks at once cannot take less than 20 times half a revolution (3 ms).
        let took = context.world.now() - before;
        assert!(took.as_millis_f64() > 60.0, "the disks were too fast: {took}");
    });
}
