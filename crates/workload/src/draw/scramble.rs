//! A permutation of an address space: gives each rank an address of its own, far from its neighbours'.

/// A pseudo-random permutation of 0 to n - 1, n at least 1.
///
/// A hash, as some load generators use, would map several ranks to one address and leave others untouched; a
/// permutation keeps the law of the ranks exact. This is the generalised Feistel network of Black and Rogaway
/// ("Ciphers with arbitrary finite domains", CT-RSA 2002, §5): the space is a rectangle of rows, 2^k wide; in turn the
/// row moves by a hash of the column and the column by a hash of the row, and a value that lands in the part of the
/// last row that does not belong to the space walks on. That part is less than a row, so walking is rare and the branch
/// well predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scramble {
    space: u64,
    rows: u64,
    column_bits: u32,
    multipliers: [u64; 4],
}

impl Scramble {
    /// The permutation of 0 to `space` - 1 that belongs to `seed`.
    pub fn new(space: u64, seed: u64) -> Scramble {
        assert!((1..=1 << 62).contains(&space), "a permutation is of 1 to 2^62 places, not {space}");
        let column_bits = (u64::BITS - space.leading_zeros()) / 2;
        let rows = space.div_ceil(1 << column_bits);
        let mut random = tier0_world::Random::new(seed, space);
        Scramble { space, rows, column_bits, multipliers: std::array::from_fn(|_| random.bits() | 1) }
    }

    /// Where `rank` (below the space) goes.
    #[inline]
    pub fn apply(&self, rank: u64) -> u64 {
        debug_assert!(rank < self.space, "{rank} is outside a space of {}", self.space);
        let mut place = self.step(rank);
        while place >= self.space {
            place = self.step(place);
        }
        place
    }

    /// One pass of the network over the whole rectangle.
    #[inline]
    fn step(&self, place: u64) -> u64 {
        let mask = (1 << self.column_bits) - 1;
        let (mut row, mut column) = (place >> self.column_bits, place & mask);
        let [a, b, c, d] = self.multipliers;
        row = self.move_row(row, column, a);
        column = (column + hash(row, b)) & mask;
        row = self.move_row(row, column, c);
        column = (column + hash(row, d)) & mask;
        (row << self.column_bits) | column
    }

    /// Adds a hash of the column to the row, modulo the rows.
    #[inline]
    fn move_row(&self, row: u64, column: u64, multiplier: u64) -> u64 {
        // 32 bits of hash times less than 2^32 rows: the high half is a number below the rows.
        let moved = row + ((hash(column, multiplier) * self.rows) >> 32);
        moved.min(moved.wrapping_sub(self.rows))
    }
}

/// 32 bits that depend on all bits of `value` (below 2^32): two rounds of multiplication, between which the
/// high half is folded into the low one. One round alone would leave neighbours a fixed distance apart.
#[inline]
fn hash(value: u64, multiplier: u64) -> u64 {
    let product = (value + 0x9e37_79b9).wrapping_mul(multiplier);
    (product ^ (product >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93) >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_is_hit_once() {
        for space in [1u64, 2, 3, 4, 5, 31, 32, 33, 1000, 65_536, 65_537] {
            let scramble = Scramble::new(space, 9);
            let mut hit = vec![false; space as usize];
            (0..space).for_each(|rank| {
                let address = scramble.apply(rank) as usize;
                assert!(!hit[address], "two ranks of {space} go to {address}");
                hit[address] = true;
            });
        }
    }

    #[test]
    fn the_first_ranks_lie_everywhere() {
        for space in [1_000_000, 12_345_678_901_234] {
            for seed in 0..50 {
                let scramble = Scramble::new(space, seed);
                let mut tenths = [0f64; 10];
                (0..1000).for_each(|rank| tenths[(scramble.apply(rank) * 10 / space) as usize] += 1.0);
                let chi_squared: f64 = tenths.iter().map(|count| (count - 100.0f64).powi(2) / 100.0).sum();
                // The 99.999th percentile of chi-squared with 9 degrees of freedom is 39.3.
                assert!(chi_squared < 39.3, "space {space}, seed {seed}: {tenths:?}");
            }
        }
    }

    #[test]
    fn neighbours_in_rank_are_strangers_in_address() {
        let space = 1_000_000u64;
        for seed in 0..20 {
            let scramble = Scramble::new(space, seed);
            let near = (0..10_000)
                .filter(|&r| scramble.apply(r).abs_diff(scramble.apply(r + 1)) < space / 100)
                .count();
            // Of independent places, 2 % of the pairs lie that near: 200, with a standard deviation of 14.
            assert!(near < 400, "seed {seed}: {near} of 10,000 pairs lie near");
        }
    }

    #[test]
    fn the_ends_of_the_largest_space_stay_inside() {
        let space = 1 << 62;
        let scramble = Scramble::new(space, 1);
        assert!((0..1000).chain(space - 1000..space).all(|rank| scramble.apply(rank) < space));
    }

    #[test]
    fn seeds_differ() {
        let of = |seed| (0..100).map(|rank| Scramble::new(1000, seed).apply(rank)).collect::<Vec<_>>();
        assert_ne!(of(1), of(2));
    }
}
