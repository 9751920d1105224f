//! Arrays in a world that keeps no data: everything else is stored, and found again after a power cut.

use tier0_array::Volume;
use tier0_block::BlockTarget;
use tier0_units::Lba;
use tier0_world::{BufMut, PayloadWidth};

use crate::rig::{Drives, describe, pool, volume};

/// Whether a range is known to read as zeros.
async fn is_zero(volume: &Volume, lba: u64, sectors: u32) -> bool {
    let (result, buf) = volume.read(Lba(lba), BufMut::new(sectors, PayloadWidth::NONE)).await;
    result.expect("a read succeeds");
    buf.freeze().is_known_zero()
}

async fn write(volume: &Volume, lba: u64, buf: BufMut) {
    volume.write(Lba(lba), buf.freeze(), true).await.expect("a write succeeds");
}

#[test]
fn log_tables_and_maps_are_found_again_without_data() {
    for (seed, raid, columns) in [(1, "raid10", 4), (2, "raid5", 4), (3, "raid6", 4)] {
        let description = describe(raid, columns, columns, "");
        let drives = Drives::in_world(PayloadWidth::NONE, description, columns, 1, seed);
        let mut used = 0;
        // The first life destages what it writes, the others leave it to the log.
        for life in 0..4u64 {
            let now_used = drives.life(seed * 100 + life, move |_, engine, _| async move {
                let lun = volume(&engine, "lun0");
                for before in (0..life).map(|life| life * 2048) {
                    assert!(!is_zero(&lun, before, 16).await, "it was written");
                    assert!(is_zero(&lun, before + 16, 48).await, "it was not written");
                    assert!(is_zero(&lun, before + 64, 8).await, "it was made zeros");
                }
                let first = life * 2048;
                for (lba, sectors) in [(first, 16), (first + 64, 8), (10_240, 16)] {
                    write(&lun, lba, BufMut::new(sectors, PayloadWidth::NONE)).await;
                }
                write(&lun, first + 64, BufMut::zeroed(8, PayloadWidth::NONE)).await;
                if life == 0 {
                    engine.drain().await.expect("it is destaged");
                }
                pool(&engine).await.space.used_bytes
            });
            assert!(now_used >= used, "nothing was given back");
            used = now_used;
        }
        assert!(used > 0, "extents were mapped");
    }
}
