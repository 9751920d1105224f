//! Which places of a stream are asked for most: what a cache holds of it once it is warm.
//!
//! The order follows from the stream's law, and nothing is drawn. Places of the same probability come in the order of a
//! permutation, so that a part of them lies as scattered as the whole.

use tier0_units::{Lba, SectorCount};

use super::plan::{Block, Placement};
use super::{Scramble, StreamPlan};

/// Places of the same probability.
struct Class {
    first_rank: u64,
    count: u64,
    scramble: Option<Scramble>,
}

impl Class {
    fn rank(&self, number: u64) -> u64 {
        self.first_rank + self.scramble.map_or(number, |scramble| scramble.apply(number))
    }
}

impl StreamPlan {
    /// The `most` likeliest places of its requests, the likeliest last: a start, and the length of the most frequent size. A
    /// sequential stream comes back to a place only after all the others, so it has all of them, or none where they are more
    /// than `most`. The `seed` orders places of the same probability.
    pub fn likeliest(&self, most: u64, seed: u64) -> impl Iterator<Item = (Lba, SectorCount)> + '_ {
        let block = *self.main_block();
        let classes = self.classes(&block, seed);
        let all: u64 = classes.iter().map(|class| class.count).sum();
        let is_scan = matches!(self.placement(), Placement::Sequential);
        let count = if is_scan && all > most { 0 } else { all.min(most) };
        (0..count).rev().map(move |place| {
            let first = &classes[0];
            let rank = match place.checked_sub(first.count) {
                None => first.rank(place),
                Some(beyond) => classes[1].rank(beyond),
            };
            (self.start() + SectorCount(self.offset_of(rank, &block)), SectorCount(block.sectors))
        })
    }

    /// By falling probability: one or two, as many as a law has.
    fn classes(&self, block: &Block, seed: u64) -> Vec<Class> {
        let even = |ranks: std::ops::Range<u64>| {
            let count = ranks.end - ranks.start;
            let scramble = (count > 1).then(|| Scramble::new(count, seed));
            Class { first_rank: ranks.start, count, scramble }
        };
        match self.placement() {
            Placement::Random => vec![even(0..block.starts)],
            Placement::Sequential => vec![Class { first_rank: 0, count: block.starts, scramble: None }],
            Placement::Zipf { law, .. } => {
                vec![Class { first_rank: 0, count: law.ranks(), scramble: None }]
            }
            Placement::HotCold { law, .. } => law.likelier_first().map(even).into(),
        }
    }

    fn offset_of(&self, rank: u64, block: &Block) -> u64 {
        match self.placement() {
            Placement::Random | Placement::Sequential => rank * block.alignment,
            Placement::Zipf { pieces, .. } | Placement::HotCold { pieces, .. } => {
                block.align(pieces.offset(rank), pieces.granule)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use tier0_units::ByteCount;

    use super::*;
    use crate::draw::RequestGenerator;
    use crate::spec::StreamSpec;

    const CAPACITY: ByteCount = ByteCount::mib(8);

    fn plan(pattern: &str) -> StreamPlan {
        let spec = StreamSpec { pattern: pattern.parse().expect("a pattern"), ..StreamSpec::default() };
        StreamPlan::new(&spec, CAPACITY, 3).expect("it fits")
    }

    /// How many of many draws go to the places that are said to be the likeliest, and to as many as were in fact drawn most.
    fn drawn(plan: StreamPlan, most: usize) -> (u32, u32) {
        let plan = Arc::new(plan);
        let mut generator = RequestGenerator::new(plan.clone(), 1, 0, 0, 1);
        let mut counts: BTreeMap<u64, u32> = BTreeMap::new();
        (0..200_000).for_each(|_| *counts.entry(generator.draw().lba.0).or_default() += 1);
        let told = plan.likeliest(most as u64, 9).map(|(lba, _)| counts.get(&lba.0).copied().unwrap_or(0));
        let told = told.sum();
        let mut all: Vec<u32> = counts.into_values().collect();
        all.sort_unstable_by(|a, b| b.cmp(a));
        (told, all.into_iter().take(most).sum())
    }

    #[test]
    fn they_are_those_that_are_drawn_most() {
        for (pattern, most) in [("zipf:0.99", 100), ("hot-cold:80/20", 204), ("hot-cold:10/50", 500)] {
            let (told, best) = drawn(plan(pattern), most);
            // Of places that are as likely, chance decides which were drawn most.
            assert!(f64::from(told) > 0.93 * f64::from(best), "{pattern}: {told} of {best}");
        }
    }

    #[test]
    fn the_likeliest_comes_last_and_none_twice() {
        for pattern in ["random", "zipf:1.2", "hot-cold:90/10", "sequential"] {
            let plan = plan(pattern);
            let places: Vec<Lba> = plan.likeliest(u64::MAX, 9).map(|(lba, _)| lba).collect();
            let different: std::collections::BTreeSet<Lba> = places.iter().copied().collect();
            assert_eq!((places.len(), different.len()), (1024, 1024), "{pattern}");
            let some: Vec<Lba> = plan.likeliest(1023, 9).map(|(lba, _)| lba).collect();
            let expected = if pattern == "sequential" { &[][..] } else { &places[1..] };
            assert_eq!(some, expected, "{pattern}");
        }
    }

    #[test]
    fn a_part_of_even_places_lies_everywhere() {
        let plan = plan("random");
        let half = CAPACITY.0 / 512 / 2;
        let low = plan.likeliest(200, 9).filter(|(lba, _)| lba.0 < half).count();
        assert!((70..130).contains(&low), "{low} of 200 lie in the first half");
    }
}
