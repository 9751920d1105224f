//! Every kind of drive through the one shared suite.

use tier0_drive::{
    DriveHandle, Fault, FaultDrive, FaultPlan, FileMedium, OpenError, RamMedium, StoreDrive, conformance,
};
use tier0_units::{ByteCount, Lba, SectorCount};
use tier0_world::{BufMut, IoError, PayloadWidth, RealOptions, RealRuntime, VirtualRuntime, World};

fn store_drive(world: &World, sectors: u64) -> DriveHandle {
    DriveHandle::new(StoreDrive::new(world, "store", SectorCount(sectors)))
}

/// A RAM drive that only the caller has open.
fn ram_drive(world: &World, mib: u64) -> DriveHandle {
    DriveHandle::new(RamMedium::new("ram", ByteCount::mib(mib)).expect("memory").open(world))
}

#[test]
fn ram_conforms() {
    let runtime = RealRuntime::new(&RealOptions::default()).expect("a real world");
    let drive = ram_drive(runtime.world(), 8);
    runtime.run(async move { conformance::run(&drive, 1).await });
}

#[test]
fn ram_lends_what_is_read_and_leaves_it_as_it_was() {
    let runtime = RealRuntime::new(&RealOptions::default()).expect("a real world");
    let world = runtime.world().clone();
    let drive = ram_drive(&world, 1);
    runtime.run(async move {
        let page = |mark: u8| BufMut::copy_from(&[mark; 4096], PayloadWidth::REAL).freeze();
        let read = async |first, sectors| drive.read(Lba(first), world.buffer(sectors)).await.1;
        drive.write(Lba(8), page(1), false).await.expect("a write");
        let (before, again) = (read(8, 8).await, read(8, 8).await);
        assert_eq!(before.as_slice().as_ptr(), again.as_slice().as_ptr(), "both are on loan");
        drive.write(Lba(8), page(2), false).await.expect("a write");
        let after = read(8, 8).await;
        drive.discard(Lba(0), 2048).await.expect("a discard");
        drop(drive);
        assert_eq!(before.as_slice(), [1; 4096]);
        assert_eq!(after.as_slice(), [2; 4096]);
    });
}

#[test]
fn ram_fills_parts_of_a_buffer_where_they_are() {
    let runtime = RealRuntime::new(&RealOptions::default()).expect("a real world");
    let world = runtime.world().clone();
    let drive = ram_drive(&world, 1);
    runtime.run(async move {
        let mut rest = world.buffer(16);
        let address = rest.as_slice().as_ptr();
        let front = rest.split_to(8);
        let (_, mut front) = drive.read(Lba(0), front).await;
        front.append(drive.read(Lba(64), rest).await.1);
        assert_eq!((front.as_slice().as_ptr(), front.as_slice()), (address, &[0; 8192][..]));
    });
}

#[test]
fn files_conform() {
    let runtime = RealRuntime::new(&RealOptions::default()).expect("a real world");
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let path = directory.path().join("drive");
    std::fs::File::create(&path).and_then(|file| file.set_len(8 << 20)).expect("a file");
    let medium = FileMedium::open(&path).expect("a drive");
    let drive = DriveHandle::new(medium.drive(runtime.world()).expect("a descriptor"));
    runtime.run(async move { conformance::run(&drive, 1).await });
    assert!(matches!(FileMedium::open(&path), Err(OpenError::Busy { .. })), "an open drive is locked");
}

#[test]
fn what_is_no_drive_is_refused_with_a_remedy() {
    let directory = tempfile::tempdir().expect("a directory");
    let missing = FileMedium::open(&directory.path().join("none")).err().expect("refused").to_string();
    assert!(missing.contains("does not exist; create"), "{missing}");
    let not_a_drive = FileMedium::open(directory.path()).err().expect("refused").to_string();
    assert!(not_a_drive.contains("neither a regular file nor a block device"), "{not_a_drive}");
}

#[test]
fn a_faultless_fault_drive_conforms_in_virtual_time() {
    for width in [PayloadWidth::REAL, PayloadWidth::new(8)] {
        let runtime = VirtualRuntime::new(1, width);
        let store = store_drive(runtime.world(), 10_000);
        let drive = DriveHandle::new(FaultDrive::new(store, 9));
        runtime.run(async move { conformance::run(&drive, 1).await });
    }
}

#[test]
fn each_fault_does_what_it_says_and_nothing_else() {
    let runtime = VirtualRuntime::new(5, PayloadWidth::new(4));
    let world = runtime.world().clone();
    runtime.run(async move {
        let store = store_drive(&world, 1000);
        let faulty = FaultDrive::new(store.clone(), 1);
        let drive = DriveHandle::new(faulty.clone());
        let ones = {
            let mut buf = world.buffer(8);
            buf.as_mut_slice().fill(1);
            buf.freeze()
        };
        let stored = |from: u64, sectors: u32| {
            let (store, world) = (store.clone(), world.clone());
            async move { store.read(Lba(from), world.buffer(sectors)).await.1.as_slice().to_vec() }
        };

        faulty.inject(FaultPlan::once(Fault::LostWrite));
        drive.write(Lba(0), ones.clone(), true).await.expect("acknowledged");
        assert!(stored(0, 8).await.iter().all(|&byte| byte == 0), "a lost write leaves nothing");

        faulty.inject(FaultPlan::once(Fault::TornWrite));
        drive.write(Lba(0), ones.clone(), true).await.expect("acknowledged");
        let torn = stored(0, 8).await;
        let kept = torn.iter().position(|&byte| byte == 0).expect("a torn write leaves a part");
        assert!(kept % 4 == 0 && torn[kept..].iter().all(|&byte| byte == 0), "torn at a sector: {torn:?}");

        faulty.inject(FaultPlan::once(Fault::MisdirectedWrite));
        drive.write(Lba(500), ones.clone(), true).await.expect("acknowledged");
        assert!(stored(500, 8).await.contains(&0));
        assert!(stored(0, 1000).await.iter().filter(|&&byte| byte == 1).count() >= 32, "written elsewhere");

        faulty.inject(FaultPlan::once(Fault::BitRot));
        drive.write(Lba(0), ones.clone(), true).await.expect("acknowledged");
        let flipped: u32 = stored(0, 8).await.iter().map(|&byte| (byte ^ 1).count_ones()).sum();
        assert_eq!(flipped, 1);

        faulty.inject(FaultPlan::always_in(Fault::ReadError, 4..5));
        assert_eq!(drive.read(Lba(0), world.buffer(4)).await.0, Ok(()));
        assert_eq!(drive.read(Lba(0), world.buffer(8)).await.0, Err(IoError::Medium));
        faulty.inject(FaultPlan::share(Fault::Latency(tier0_units::Nanos(700)), 1.0));
        let before = world.now();
        drive.flush().await.expect("a flush");
        assert_eq!((world.now() - before).0, 700);
        faulty.clear();
        faulty.set_gone(true);
        assert_eq!(drive.flush().await, Err(IoError::Gone));
        faulty.set_gone(false);
        assert_eq!(drive.read(Lba(0), world.buffer(8)).await.0, Ok(()));
        assert_eq!(faulty.struck_count(), 6);
    });
}
