//! A stream made concrete for a target: shares become sectors, laws get their constants. Drawn from, never
//! changed.

use tier0_units::{ByteCount, Lba, SectorCount};
use tier0_world::Random;

use super::{HotCold, Scramble, Share, Zipf, below};
use crate::spec::{Pattern, Portion, SpecError, StreamSpec};

/// What a stream asks of one target; shared by all its users.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamPlan {
    start: Lba,
    length: SectorCount,
    pub(super) reads: Share,
    blocks: Vec<Block>,
    placement: Placement,
}

/// One block size of the mix. All lengths in sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// Drawn when 64 random bits are at most this and above the ones before.
    bits_max: u64,
    pub(super) sectors: u64,
    pub(super) alignment: u64,
    /// The last offset at which it fits into the range.
    pub(super) last: u64,
    /// How many offsets it may have.
    pub(super) starts: u64,
}

/// How a pattern finds the offset of a request.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Placement {
    Random,
    Sequential,
    Zipf { law: Zipf, pieces: Pieces },
    HotCold { law: HotCold, pieces: Pieces },
}

/// The units in which a skewed pattern counts its range, and where each lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pieces {
    /// Sectors of one unit.
    pub(super) granule: u64,
    /// Units that stay together.
    piece: u64,
    /// Units in whole pieces; a remainder at the end stays where it is.
    whole: u64,
    scramble: Option<Scramble>,
}

impl StreamPlan {
    /// Plans `spec` for a target of `capacity`; `seed` decides where a skewed pattern's pieces lie.
    ///
    /// # Errors
    /// [`SpecError::BeyondTarget`] and [`SpecError::RangeTooSmall`].
    pub fn new(spec: &StreamSpec, capacity: ByteCount, seed: u64) -> Result<StreamPlan, SpecError> {
        let (start, length) = range_of(spec, capacity)?;
        let block_max = spec.block.size_max();
        if length.bytes() < block_max {
            let range = length.bytes();
            return Err(SpecError::RangeTooSmall { stream: spec.name.clone(), range, block: block_max });
        }
        let blocks = plan_blocks(spec, length);
        let placement = plan_placement(spec, &blocks, length, seed);
        Ok(StreamPlan { start, length, reads: Share::percent(spec.read_percent), blocks, placement })
    }

    /// The first sector of the range.
    pub fn start(&self) -> Lba {
        self.start
    }

    /// The sectors of the range.
    pub fn length(&self) -> SectorCount {
        self.length
    }

    /// The largest piece, in sectors, of which every request of this stream covers whole ones, counted from the
    /// start of the target: the natural block of verification.
    pub fn granule(&self) -> SectorCount {
        let of_blocks = |granule, block: &Block| gcd(gcd(granule, block.alignment), block.sectors);
        SectorCount(self.blocks.iter().fold(self.start.0, of_blocks))
    }

    /// The largest request.
    pub fn block_sectors_max(&self) -> SectorCount {
        SectorCount(self.blocks.iter().map(|block| block.sectors).max().unwrap_or(0))
    }

    /// The sectors of the size that is drawn most often.
    pub fn main_sectors(&self) -> u64 {
        self.main_block().sectors
    }

    /// The size that is drawn most often.
    pub(super) fn main_block(&self) -> &Block {
        let mut least = 0;
        let weights = self.blocks.iter().map(|block| {
            let weight = block.bits_max - least;
            least = block.bits_max;
            (weight, block)
        });
        weights.max_by_key(|(weight, _)| *weight).expect("a mix has sizes").1
    }

    pub(super) fn placement(&self) -> &Placement {
        &self.placement
    }

    #[inline]
    pub(super) fn draw_block(&self, random: &mut Random) -> &Block {
        if let [only] = &self.blocks[..] {
            return only;
        }
        let bits = random.bits();
        let found = self.blocks.iter().find(|block| bits <= block.bits_max);
        found.expect("the last block's threshold is the largest number")
    }
}

/// Where a range begins at a share of the target, it begins at a multiple of this, as partitions do: a start in the
/// middle of a block or a stripe would make every request touch one more.
const START_STEP: ByteCount = ByteCount::mib(1);

fn range_of(spec: &StreamSpec, capacity: ByteCount) -> Result<(Lba, SectorCount), SpecError> {
    let total = SectorCount::in_bytes(capacity);
    let start = SectorCount::in_bytes(match spec.start {
        Portion::Bytes(bytes) => bytes,
        Portion::Percent(_) => ByteCount(spec.start.of(capacity).0 / START_STEP.0 * START_STEP.0),
    });
    let rest = SectorCount(total.0.saturating_sub(start.0));
    let length = spec.length.map_or(rest, |length| SectorCount::in_bytes(length.of(capacity)));
    match start.0.checked_add(length.0).filter(|end| *end <= total.0) {
        Some(_) => Ok((Lba(start.0), length)),
        None => {
            let end = ByteCount(start.bytes().0.saturating_add(length.bytes().0));
            Err(SpecError::BeyondTarget { stream: spec.name.clone(), end, capacity })
        }
    }
}

fn plan_blocks(spec: &StreamSpec, length: SectorCount) -> Vec<Block> {
    let weighted = || spec.block.blocks().iter().filter(|block| block.weight > 0);
    let total: u128 = weighted().map(|block| u128::from(block.weight)).sum();
    let mut so_far: u128 = 0;
    let mut blocks: Vec<Block> = Vec::new();
    for block in weighted() {
        so_far += u128::from(block.weight);
        // The sums of weights, scaled to 2^64, are where one size ends and the next begins.
        let bits_max =
            u64::try_from((so_far << 64) / total - 1).expect("a sum of weights is at most their total");
        let sectors = SectorCount::in_bytes(block.size).0;
        let alignment = SectorCount::in_bytes(spec.alignment.unwrap_or(block.size)).0;
        let last = (length.0 - sectors) / alignment * alignment;
        blocks.push(Block { bits_max, sectors, alignment, last, starts: last / alignment + 1 });
    }
    blocks
}

fn plan_placement(spec: &StreamSpec, blocks: &[Block], length: SectorCount, seed: u64) -> Placement {
    let granule = blocks.iter().fold(0, |granule, block| gcd(granule, block.alignment));
    let smallest = blocks.iter().map(|block| block.sectors).min().unwrap_or(1);
    let units = (length.0 - smallest) / granule + 1;
    let pieces = |scatter: Option<ByteCount>| {
        let piece =
            scatter.map_or(units, |scatter| (SectorCount::in_bytes(scatter).0 / granule).clamp(1, units));
        let count = units / piece;
        let scramble = (count > 1).then(|| Scramble::new(count, seed));
        Pieces { granule, piece, whole: count * piece, scramble }
    };
    match spec.pattern {
        Pattern::Random => Placement::Random,
        Pattern::Sequential => Placement::Sequential,
        Pattern::Zipf { theta } => {
            let scatter = spec.scatter.unwrap_or(SectorCount(granule).bytes());
            Placement::Zipf { law: Zipf::new(units, theta), pieces: pieces(Some(scatter)) }
        }
        Pattern::HotCold { access_percent, space_percent } => {
            let law = HotCold::new(units, access_percent, space_percent);
            Placement::HotCold { law, pieces: pieces(spec.scatter) }
        }
    }
}

impl Block {
    /// The offset of a random request.
    #[inline]
    pub(super) fn random_offset(&self, random: &mut Random) -> u64 {
        below(random, self.starts) * self.alignment
    }

    /// The offset nearest below `offset`, a multiple of `granule`, at which it may begin.
    #[inline]
    pub(super) fn align(&self, offset: u64, granule: u64) -> u64 {
        // Of one size, every unit of the pattern is a place already; that saves the division.
        let aligned =
            if granule == self.alignment { offset } else { offset / self.alignment * self.alignment };
        aligned.min(self.last)
    }
}

impl Pieces {
    /// The offset in sectors of the unit of that rank.
    #[inline]
    pub(super) fn offset(&self, rank: u64) -> u64 {
        let unit = match &self.scramble {
            Some(scramble) if self.piece == 1 => scramble.apply(rank),
            Some(scramble) if rank < self.whole => {
                scramble.apply(rank / self.piece) * self.piece + rank % self.piece
            }
            _ => rank,
        };
        unit * self.granule
    }
}

/// The greatest common divisor, which for zero is the other number.
fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
