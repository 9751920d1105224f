//! Tells that a load would read what was never written: such reads are answered from the map, touch no drive, and are
//! faster than any that do.

use tier0_block::BlockTarget;
use tier0_units::{Lba, SECTOR_BYTES};
use tier0_workload::spec::{LoadSpec, StreamSpec};

/// As much is asked about at once as fits an NBD request, sectors.
const PIECE_SECTORS: u64 = (1 << 30) / SECTOR_BYTES;
/// Runs of one answer.
const RUNS_MAX: usize = 4096;
/// Questions of one stream: more holes than that are not worth the time.
const QUESTIONS_MAX: usize = 4096;

/// Warns where a stream of `load` reads space of `target` that was never written; `remedy` is what to do about it.
pub(crate) async fn tell(target: &impl BlockTarget, load: &LoadSpec, remedy: &str) {
    let mut worst = 0.0_f64;
    for stream in load.streams.iter().filter(|stream| stream.read_percent > 0.0) {
        worst = worst.max(share(target, stream).await);
    }
    warn(worst, remedy);
}

/// The same of a file, as its file system knows it.
pub(crate) fn tell_of_file(name: &str, found: &std::fs::Metadata, load: &LoadSpec) {
    let reads = load.streams.iter().any(|stream| stream.read_percent > 0.0);
    if reads && found.is_file() && found.len() > 0 {
        use std::os::unix::fs::MetadataExt;
        let stored = (found.blocks() * SECTOR_BYTES) as f64 / found.len() as f64;
        warn(1.0 - stored, &write_first(name));
    }
}

/// How to write a target that is not simulated.
pub(crate) fn write_first(name: &str) -> String {
    format!(
        "fill it first: tier0 load '{name}' --read 0 --pattern sequential --block 1MiB --bytes SIZE \
         --overwrite (SIZE: the target's size)"
    )
}

/// Says it where it is a percent or more.
fn warn(share: f64, remedy: &str) {
    if share >= 0.01 {
        tracing::warn!(
            "{:.0} % of the space to be read was never written: such reads touch no drive, so the figures do \
             not measure the drives; {remedy}",
            (share * 100.0).floor(),
        );
    }
}

/// What of a stream's range was never written, 0 to 1; 0 where the target does not know.
async fn share(target: &impl BlockTarget, stream: &StreamSpec) -> f64 {
    let capacity = target.info().sectors;
    let start = (stream.start.of(capacity.bytes()).0 / SECTOR_BYTES).min(capacity.0);
    let length = stream.length.map_or(capacity.0, |length| length.of(capacity.bytes()).0 / SECTOR_BYTES);
    let end = start.saturating_add(length).min(capacity.0);
    let (mut at, mut holes) = (start, 0);
    for _ in 0..QUESTIONS_MAX {
        if at >= end {
            break;
        }
        let asked = target.block_status(Lba(at), PIECE_SECTORS.min(end - at), RUNS_MAX).await;
        let Ok(runs) = asked else { return 0.0 };
        for run in runs {
            holes += if run.allocated { 0 } else { run.sectors.min(end - at) };
            at = (at + run.sectors).min(end);
        }
    }
    holes as f64 / (at - start).max(1) as f64
}

#[cfg(test)]
mod tests {
    use tier0_block::{BlockStatus, TargetInfo};
    use tier0_drive::{DriveHandle, RamMedium};
    use tier0_units::ByteCount;
    use tier0_world::{Buf, BufMut, IoError, RealOptions, RealRuntime};

    use super::*;

    /// A drive of which only the first quarter was written.
    struct Young(DriveHandle);

    impl BlockTarget for Young {
        fn info(&self) -> TargetInfo {
            BlockTarget::info(&self.0)
        }

        async fn read(&self, lba: Lba, buf: BufMut) -> (Result<(), IoError>, BufMut) {
            BlockTarget::read(&self.0, lba, buf).await
        }

        async fn write(&self, lba: Lba, buf: Buf, durable: bool) -> Result<(), IoError> {
            BlockTarget::write(&self.0, lba, buf, durable).await
        }

        async fn flush(&self) -> Result<(), IoError> {
            BlockTarget::flush(&self.0).await
        }

        async fn discard(&self, lba: Lba, sectors: u64) -> Result<(), IoError> {
            BlockTarget::discard(&self.0, lba, sectors).await
        }

        async fn write_zeroes(
            &self,
            lba: Lba,
            sectors: u64,
            may: bool,
            durable: bool,
        ) -> Result<(), IoError> {
            self.0.write_zeroes(lba, sectors, may, durable).await
        }

        async fn block_status(&self, lba: Lba, sectors: u64, _: usize) -> Result<Vec<BlockStatus>, IoError> {
            let written = self.info().sectors.0 / 4;
            let sectors = if lba.0 < written { sectors.min(written - lba.0) } else { sectors };
            Ok(vec![BlockStatus { sectors, allocated: lba.0 < written, zero: lba.0 >= written }])
        }
    }

    /// A volume that had never been written was measured, and the figures were taken for its drives'.
    #[test]
    fn what_was_never_written_is_a_share_of_the_range() {
        let runtime = RealRuntime::new(&RealOptions::default()).expect("a real world");
        let world = runtime.world().clone();
        runtime.run(async move {
            let memory = RamMedium::new("ram", ByteCount::mib(16)).expect("memory");
            let young = Young(DriveHandle::new(memory.open(&world)));
            let stream = |start: &str, length: Option<&str>| StreamSpec {
                start: start.parse().expect("a portion"),
                length: length.map(|length| length.parse().expect("a portion")),
                ..StreamSpec::default()
            };
            assert_eq!(share(&young, &stream("0B", None)).await, 0.75);
            assert_eq!(share(&young, &stream("0B", Some("25%"))).await, 0.0);
            assert_eq!(share(&young, &stream("50%", None)).await, 1.0);
            assert_eq!(share(&young.0, &stream("0B", None)).await, 0.0, "a drive does not know");
        });
    }
}
