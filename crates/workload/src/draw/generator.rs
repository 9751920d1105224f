//! The requests of one user: kind, address and size of the next.

use std::sync::Arc;

use tier0_units::{Lba, SectorCount};
use tier0_world::Random;

use super::StreamPlan;
use super::plan::Placement;

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IoKind {
    /// Reads.
    Read,
    /// Writes.
    Write,
}

/// A request of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Read or write.
    pub kind: IoKind,
    /// The first sector on the target.
    pub lba: Lba,
    /// The number of sectors.
    pub sectors: SectorCount,
}

/// Draws the requests of one user of a stream. Each user has a random stream of its own, so that what it asks
/// does not depend on when the others are answered.
#[derive(Clone, Debug)]
pub struct RequestGenerator {
    plan: Arc<StreamPlan>,
    random: Random,
    /// Where a sequential pattern goes on, in sectors from the start of the range.
    cursor: u64,
}

impl RequestGenerator {
    /// The generator of user `user` (from 0) of `users`, in stream number `stream` of a load.
    ///
    /// Sequential users start evenly spaced over the range.
    pub fn new(plan: Arc<StreamPlan>, seed: u64, stream: u32, user: u32, users: u32) -> RequestGenerator {
        let share = u128::from(plan.length().0) * u128::from(user) / u128::from(users.max(1));
        let name = u64::from(stream) << 32 | u64::from(user);
        RequestGenerator { plan, random: Random::new(seed, name), cursor: share as u64 }
    }

    /// The next request.
    #[inline]
    pub fn draw(&mut self) -> Request {
        let RequestGenerator { plan, random, cursor } = self;
        let kind = if plan.reads.draw(random) { IoKind::Read } else { IoKind::Write };
        let block = plan.draw_block(random);
        let offset = match plan.placement() {
            Placement::Random => block.random_offset(random),
            Placement::Zipf { law, pieces } => block.align(pieces.offset(law.draw(random)), pieces.granule),
            Placement::HotCold { law, pieces } => {
                block.align(pieces.offset(law.draw(random)), pieces.granule)
            }
            Placement::Sequential => {
                let aligned = cursor.next_multiple_of(block.alignment);
                let offset = if aligned > block.last { 0 } else { aligned };
                *cursor = offset + block.sectors;
                offset
            }
        };
        Request { kind, lba: plan.start() + SectorCount(offset), sectors: SectorCount(block.sectors) }
    }

    /// The user's random stream, from which its think times come too.
    pub fn random(&mut self) -> &mut Random {
        &mut self.random
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use tier0_units::ByteCount;

    use super::*;
    use crate::spec::{Pattern, Portion, SpecError, StreamSpec};

    fn draws(spec: &StreamSpec, capacity: ByteCount, count: usize) -> Vec<Request> {
        let plan = Arc::new(StreamPlan::new(spec, capacity, 1).expect("a valid plan"));
        let mut generator = RequestGenerator::new(plan, 1, 0, 0, 1);
        (0..count).map(|_| generator.draw()).collect()
    }

    fn spec(block: &str, pattern: &str) -> StreamSpec {
        let block = block.parse().expect("a mix");
        StreamSpec { block, pattern: pattern.parse().expect("a pattern"), ..StreamSpec::default() }
    }

    #[test]
    fn sequential_runs_through_and_wraps() {
        let spec = StreamSpec { start: Portion::Bytes(ByteCount(1024)), ..spec("2KiB", "sequential") };
        let lbas: Vec<u64> =
            draws(&spec, ByteCount(1024 + 3 * 2048 + 512), 7).iter().map(|r| r.lba.0).collect();
        assert_eq!(lbas, [2, 6, 10, 2, 6, 10, 2]);
    }

    #[test]
    fn sequential_users_start_apart() {
        let plan =
            StreamPlan::new(&spec("1KiB", "sequential"), ByteCount(16 * 1024), 1).expect("a valid plan");
        let plan = Arc::new(plan);
        let first = |user| RequestGenerator::new(plan.clone(), 1, 0, user, 4).draw().lba.0;
        assert_eq!([first(0), first(1), first(2), first(3)], [0, 8, 16, 24]);
    }

    #[test]
    fn a_mix_keeps_its_weights_and_each_size_its_alignment() {
        let requests = draws(&spec("8KiB:70 64KiB:30", "random"), ByteCount::mib(100), 100_000);
        let small = requests.iter().filter(|r| r.sectors.0 == 16).count();
        // Five standard deviations of a binomial(100,000, 0.7) are 725.
        assert!(small.abs_diff(70_000) < 725, "{small}");
        assert!(requests.iter().all(|r| r.lba.0.is_multiple_of(r.sectors.0)));
    }

    #[test]
    fn zipf_hits_its_favourite_and_every_block_has_a_rank() {
        let requests = draws(&spec("8KiB", "zipf:0.99"), ByteCount::kib(8 * 100), 100_000);
        let mut counts = BTreeMap::new();
        requests.iter().for_each(|r| *counts.entry(r.lba.0).or_insert(0u32) += 1);
        assert_eq!(counts.len(), 100, "every block is asked for");
        // Rank 1 has 1 / sum(k^-0.99, k = 1..100) = 1 / 5.292 = 18.9 % of the accesses.
        let most = *counts.values().max().expect("there are counts");
        assert!(most.abs_diff(18_900) < 700, "{most}");
    }

    #[test]
    fn scatter_moves_the_hot_space_in_whole_pieces() {
        let hot = |scatter: Option<ByteCount>| {
            let spec = StreamSpec { scatter, ..spec("8KiB", "hot-cold:100/10") };
            let requests = draws(&spec, ByteCount::mib(100), 20_000);
            requests.iter().map(|r| r.lba.byte_offset() >> 20).collect::<std::collections::BTreeSet<u64>>()
        };
        assert_eq!(hot(None), (0..10).collect());
        let scattered = hot(Some(ByteCount::mib(1)));
        assert_eq!(scattered.len(), 10, "ten pieces of 1 MiB stay whole: {scattered:?}");
        assert_ne!(scattered, (0..10).collect());
    }

    #[test]
    fn a_start_at_a_share_is_aligned() {
        let spec = StreamSpec { start: Portion::Percent(33.3), ..StreamSpec::default() };
        let plan = StreamPlan::new(&spec, ByteCount(300_000_000_000), 1).expect("it fits");
        assert!(
            plan.start().byte_offset().is_multiple_of(1 << 20) && plan.start().byte_offset() > 99_000_000_000
        );
        assert_eq!(plan.granule(), SectorCount(16));
    }

    #[test]
    fn users_differ_and_repeat() {
        let plan =
            Arc::new(StreamPlan::new(&spec("8KiB", "random"), ByteCount::gib(1), 1).expect("a valid plan"));
        let of = |user| {
            let mut generator = RequestGenerator::new(plan.clone(), 1, 0, user, 2);
            (0..10).map(|_| generator.draw().lba).collect::<Vec<_>>()
        };
        assert_eq!(of(0), of(0));
        assert_ne!(of(0), of(1));
    }

    #[test]
    fn ranges_that_do_not_fit_are_refused() {
        let plan =
            |spec: &StreamSpec| StreamPlan::new(spec, ByteCount::mib(1), 1).expect_err("it does not fit");
        let beyond = StreamSpec { start: Portion::Bytes(ByteCount::mib(2)), ..StreamSpec::default() };
        assert!(matches!(plan(&beyond), SpecError::BeyondTarget { .. } | SpecError::RangeTooSmall { .. }));
        let long = StreamSpec { length: Some(Portion::Bytes(ByteCount::gib(1))), ..StreamSpec::default() };
        let text = plan(&long).to_string();
        assert!(text.contains("1GiB") && text.contains("1MiB"), "{text}");
        assert!(matches!(plan(&spec("2MiB", "random")), SpecError::RangeTooSmall { .. }));
    }

    proptest! {
        #[test]
        fn requests_stay_inside_and_aligned(
            blocks in proptest::collection::vec((1u64..40, 1u32..5), 1..4),
            alignment in proptest::option::of(1u64..20),
            scatter in proptest::option::of(1u64..100),
            start in 0u64..50,
            length in 40u64..5000,
            pattern in prop_oneof![
                Just(Pattern::Random),
                Just(Pattern::Sequential),
                (0.1f64..3.0).prop_map(|theta| Pattern::Zipf { theta }),
                (0.0f64..100.0, 0.1f64..99.0).prop_map(|(access_percent, space_percent)|
                    Pattern::HotCold { access_percent, space_percent }),
            ],
        ) {
            let bytes = |sectors: u64| ByteCount(sectors * 512);
            let text: Vec<String> = blocks.iter().map(|(s, w)| format!("{}:{w}", s * 512)).collect();
            let spec = StreamSpec {
                block: text.join(" ").parse().expect("a mix"),
                alignment: alignment.map(bytes),
                scatter: scatter.map(bytes),
                start: Portion::Bytes(bytes(start)),
                length: Some(Portion::Bytes(bytes(length))),
                pattern,
                ..StreamSpec::default()
            };
            let plan = StreamPlan::new(&spec, bytes(start + length), 1).expect("it fits");
            let granule = plan.granule().0;
            for request in draws(&spec, bytes(start + length), 200) {
                let offset = request.lba.0 - start;
                prop_assert!(offset + request.sectors.0 <= length);
                prop_assert!(offset.is_multiple_of(alignment.unwrap_or(request.sectors.0)));
                prop_assert!(request.lba.0.is_multiple_of(granule) && request.sectors.0.is_multiple_of(granule));
            }
        }
    }
}
