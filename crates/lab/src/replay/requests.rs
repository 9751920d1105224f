//! A trace in memory: which blocks each request touches, in their order.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use thiserror::Error;
use tier0_units::Nanos;

/// What becomes of writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Writes {
    /// They are requests as reads are, and what they write stays in the cache as long as the policy lets it.
    #[default]
    Allocate,
    /// They go past the cache: what they write is no longer in it, and they do not count.
    Around,
    /// As if there were none.
    Ignore,
}

/// The trace is too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RequestsError {
    /// More different blocks than can be told apart.
    #[error("the trace touches more than {BLOCKS_MAX} different blocks; take larger ones")]
    TooManyBlocks,
    /// More touched blocks than can be counted.
    #[error(
        "the trace touches blocks more than {TOUCHES_MAX} times; take larger blocks, or a part of it (--limit)"
    )]
    TooManyTouches,
    /// More blocks of one request than make sense.
    #[error("a request touches {blocks} blocks, more than {REQUEST_BLOCKS_MAX}; take larger ones")]
    TooLong {
        /// How many.
        blocks: u64,
    },
}

/// Blocks that can be told apart.
const BLOCKS_MAX: u32 = 1 << 29;
/// Touched blocks.
const TOUCHES_MAX: usize = u32::MAX as usize - 1;
/// Blocks of one request.
const REQUEST_BLOCKS_MAX: u64 = 1 << 18;

/// A block that a request touches: a number below the count of different ones, and how it is touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch(u32);

/// Of the request that the touch before is of, too.
const CONTINUES: u32 = 1 << 31;
const WRITE: u32 = 1 << 30;
const FORGET: u32 = 1 << 29;

impl Touch {
    /// The block.
    #[inline]
    pub fn block(self) -> u32 {
        self.0 & (BLOCKS_MAX - 1)
    }

    /// Whether it is of the same request as the one before.
    #[inline]
    pub fn continues(self) -> bool {
        self.0 & CONTINUES != 0
    }

    /// The same as a request of its own.
    #[inline]
    pub fn alone(self) -> Touch {
        Touch(self.0 & !CONTINUES)
    }

    /// Whether it is written.
    #[inline]
    pub fn is_write(self) -> bool {
        self.0 & WRITE != 0
    }

    /// Whether it is forgotten: discarded, or written past the cache.
    #[inline]
    pub fn forgets(self) -> bool {
        self.0 & FORGET != 0
    }
}

/// The unit in which times are kept: 32 bits hold 497 days of it, and a budget of flash writes fills in hours.
const TICK: Nanos = Nanos::from_millis(10);

/// Requests, as they came.
pub struct Requests {
    touches: Vec<Touch>,
    /// When each request and each forgotten block came, in units of [`TICK`]; empty where the trace has no times.
    ticks: Vec<u32>,
    /// That of the request that is taken in now.
    tick: Option<u32>,
    /// Bytes of a block, where it is an object of a size of its own.
    object_bytes: Vec<u32>,
    /// By volume and block.
    numbers: BTreeMap<(u32, u64), u32>,
    block_bytes: u64,
    writes: Writes,
    count: u64,
    reads: u64,
}

impl Requests {
    /// None yet, over blocks of so many bytes.
    pub fn new(block_bytes: u64, writes: Writes) -> Requests {
        assert!(block_bytes > 0, "a block has bytes");
        Requests {
            touches: Vec::new(),
            ticks: Vec::new(),
            tick: None,
            object_bytes: Vec::new(),
            numbers: BTreeMap::new(),
            block_bytes,
            writes,
            count: 0,
            reads: 0,
        }
    }

    /// What comes next came at this time, since the first; none where the trace has no times.
    pub fn set_time(&mut self, at: Option<Nanos>) {
        self.tick = at.map(|at| u32::try_from(at.0 / TICK.0).unwrap_or(u32::MAX));
    }

    /// A read of blocks of a volume.
    ///
    /// # Errors
    /// [`RequestsError`] where it cannot be taken in.
    pub fn read(&mut self, volume: u32, first: u64, blocks: u64) -> Result<(), RequestsError> {
        self.reads += u64::from(blocks > 0);
        self.touch(volume, first, blocks, 0)
    }

    /// A write of blocks of a volume.
    ///
    /// # Errors
    /// [`RequestsError`] where it cannot be taken in.
    pub fn write(&mut self, volume: u32, first: u64, blocks: u64) -> Result<(), RequestsError> {
        match self.writes {
            Writes::Allocate => self.touch(volume, first, blocks, WRITE),
            Writes::Around => self.forget(volume, first, blocks),
            Writes::Ignore => Ok(()),
        }
    }

    /// Blocks of a volume are worth nothing any more. That is no request.
    ///
    /// # Errors
    /// [`RequestsError`] where it cannot be taken in.
    pub fn forget(&mut self, volume: u32, first: u64, blocks: u64) -> Result<(), RequestsError> {
        // What was never touched is in no cache.
        let Some(span) = span(first, blocks) else { return Ok(()) };
        let known = self.numbers.range((volume, *span.start())..=(volume, *span.end()));
        let forgotten: Vec<Touch> = known.map(|(_, number)| Touch(number | FORGET)).collect();
        self.check_room(forgotten.len() as u64)?;
        self.ticks.extend(self.tick.iter().flat_map(|tick| std::iter::repeat_n(*tick, forgotten.len())));
        self.touches.extend(forgotten);
        Ok(())
    }

    /// A read of an object of so many bytes, which is a block of its own.
    ///
    /// # Errors
    /// [`RequestsError`] where it cannot be taken in.
    pub fn read_object(&mut self, id: u64, bytes: u32) -> Result<(), RequestsError> {
        self.read(0, id, 1)?;
        let number = self.numbers[&(0, id)] as usize;
        if self.object_bytes.len() <= number {
            self.object_bytes.resize(number + 1, 0);
        }
        self.object_bytes[number] = bytes;
        Ok(())
    }

    fn touch(&mut self, volume: u32, first: u64, blocks: u64, how: u32) -> Result<(), RequestsError> {
        if blocks > REQUEST_BLOCKS_MAX {
            return Err(RequestsError::TooLong { blocks });
        }
        let Some(span) = span(first, blocks) else { return Ok(()) };
        self.check_room(blocks)?;
        let mut continues = 0;
        for block in span {
            let next = self.numbers.len() as u32;
            if next == BLOCKS_MAX {
                return Err(RequestsError::TooManyBlocks);
            }
            let number = *self.numbers.entry((volume, block)).or_insert(next);
            self.touches.push(Touch(number | how | continues));
            continues = CONTINUES;
        }
        self.count += 1;
        self.ticks.extend(self.tick);
        Ok(())
    }

    fn check_room(&self, blocks: u64) -> Result<(), RequestsError> {
        match self.touches.len() as u64 + blocks > TOUCHES_MAX as u64 {
            true => Err(RequestsError::TooManyTouches),
            false => Ok(()),
        }
    }

    /// Touched blocks, in their order.
    pub fn touches(&self) -> &[Touch] {
        &self.touches
    }

    /// When each request and each forgotten block came, in the order of [`Requests::touches`], where the trace has times: for each
    /// touch that does not continue the one before.
    pub fn times(&self) -> Option<impl Iterator<Item = Nanos> + '_> {
        let is_complete = !self.ticks.is_empty();
        is_complete.then(|| self.ticks.iter().map(|tick| Nanos(u64::from(*tick) * TICK.0)))
    }

    /// Where each block lies in its pair of neighbours, of even and odd number: a number of the pair, and which of the two it is.
    /// In the order of the blocks' numbers here.
    pub fn pairs(&self) -> Vec<(u32, u8)> {
        let mut pairs = vec![(0, 0); self.numbers.len()];
        let mut last = None;
        let mut count = 0;
        for ((volume, block), number) in &self.numbers {
            let pair = (*volume, block / 2);
            count += u32::from(last.is_some_and(|last| last != pair));
            last = Some(pair);
            pairs[*number as usize] = (count, (block % 2) as u8);
        }
        pairs
    }

    /// Requests that count.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Reads among them.
    pub fn reads(&self) -> u64 {
        self.reads
    }

    /// Different blocks.
    pub fn distinct(&self) -> u32 {
        self.numbers.len() as u32
    }

    /// Bytes of a block, or of an object.
    pub fn bytes_of(&self, block: u32) -> u64 {
        match self.object_bytes.get(block as usize) {
            Some(bytes) => (*bytes).into(),
            None => self.block_bytes,
        }
    }

    /// Bytes of a block that is no object.
    pub fn block_bytes(&self) -> u64 {
        self.block_bytes
    }

    /// Bytes of all different blocks.
    pub fn distinct_bytes(&self) -> u64 {
        (0..self.distinct()).map(|block| self.bytes_of(block)).fold(0, u64::saturating_add)
    }

    /// Whether blocks are objects with sizes of their own.
    pub fn has_objects(&self) -> bool {
        !self.object_bytes.is_empty()
    }
}

/// The numbers of so many blocks from a first one on, as far as 64 bits hold them; none of none.
fn span(first: u64, blocks: u64) -> Option<RangeInclusive<u64>> {
    blocks.checked_sub(1).map(|more| first..=first.saturating_add(more))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touched(requests: &Requests) -> Vec<(u32, bool, bool, bool)> {
        let of = |touch: &Touch| (touch.block(), touch.continues(), touch.is_write(), touch.forgets());
        requests.touches().iter().map(of).collect()
    }

    #[test]
    fn requests_are_cut_into_blocks_that_have_numbers() {
        let mut requests = Requests::new(4096, Writes::Allocate);
        requests.read(0, 7, 2).expect("room");
        requests.write(0, 8, 1).expect("room");
        requests.read(1, 7, 1).expect("room");
        assert_eq!(
            touched(&requests),
            [
                (0, false, false, false),
                (1, true, false, false),
                (1, false, true, false),
                (2, false, false, false),
            ]
        );
        assert_eq!((requests.count(), requests.reads(), requests.distinct()), (3, 2, 3));
        assert_eq!(requests.read(0, 0, 1 << 30), Err(RequestsError::TooLong { blocks: 1 << 30 }));
        // A whole volume may be discarded, and costs what is known of it.
        requests.forget(0, 0, u64::MAX).expect("room");
        let forgotten: Vec<u32> =
            requests.touches().iter().filter(|touch| touch.forgets()).map(|touch| touch.block()).collect();
        assert_eq!(forgotten, [0, 1]);
    }

    /// An object of the greatest number panicked: the end behind it does not fit into 64 bits.
    #[test]
    fn the_last_block_is_a_block() {
        for block in [0, u64::MAX - 1, u64::MAX] {
            let mut requests = Requests::new(4096, Writes::Allocate);
            requests.read_object(block, 512).expect("room");
            requests.read(0, block, 1).expect("room");
            requests.write(0, block, 1).expect("room");
            requests.forget(0, block, 1).expect("room");
            requests.forget(0, 0, u64::MAX).expect("room");
            assert_eq!((requests.count(), requests.distinct(), requests.bytes_of(0)), (3, 1, 512), "{block}");
            let forgotten = requests.touches().iter().filter(|touch| touch.forgets()).count();
            // A discard of 2^64 - 1 bytes ends before the last block.
            assert_eq!(forgotten, if block == u64::MAX { 1 } else { 2 }, "{block}");
            requests.read(0, block, 0).expect("nothing is asked for");
            assert_eq!((requests.count(), requests.touches().len()), (3, 3 + forgotten));
        }
    }

    #[test]
    fn neighbours_are_pairs_and_requests_have_times() {
        let mut requests = Requests::new(4096, Writes::Allocate);
        assert!(requests.times().is_none());
        requests.set_time(Some(Nanos::from_millis(20)));
        requests.read(0, 7, 4).expect("room");
        requests.set_time(Some(Nanos::from_secs(1)));
        requests.read(1, 8, 1).expect("room");
        requests.forget(0, 0, 9).expect("room");
        assert_eq!(requests.pairs(), [(0, 1), (1, 0), (1, 1), (2, 0), (3, 0)]);
        let times: Vec<u64> = requests.times().expect("times").map(|at| at.0 / 1_000_000).collect();
        assert_eq!(times, [20, 1000, 1000, 1000]);
        let begun = requests.touches().iter().filter(|touch| !touch.continues()).count();
        assert_eq!(begun, times.len());
    }

    #[test]
    fn writes_may_go_past_the_cache_or_be_ignored() {
        for (writes, touches) in [(Writes::Around, 2), (Writes::Ignore, 1)] {
            let mut requests = Requests::new(4096, writes);
            requests.read(0, 1, 1).expect("room");
            requests.write(0, 1, 1).expect("room");
            requests.write(0, 5, 1).expect("room");
            assert_eq!((requests.touches().len(), requests.count()), (touches, 1), "{writes:?}");
        }
    }
}
