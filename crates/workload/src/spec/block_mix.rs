//! How large a stream's requests are: one size, or a weighted mix of sizes.

use std::fmt;
use std::str::FromStr;

use tier0_units::ByteCount;

use super::SpecError;
use super::text::{exact_bytes, serde_as_text};

/// A block size and how often it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeightedBlock {
    /// Bytes per request.
    pub size: ByteCount,
    /// How often, in proportion to the other weights of the mix.
    pub weight: u32,
}

/// Block sizes with their weights, at least one. As text: `8KiB`, or `8KiB:70 64KiB:30`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockMix(Vec<WeightedBlock>);

impl BlockMix {
    /// Requests of one size.
    pub fn single(size: ByteCount) -> BlockMix {
        BlockMix(vec![WeightedBlock { size, weight: 1 }])
    }

    /// The sizes and weights, in the order given.
    pub fn blocks(&self) -> &[WeightedBlock] {
        &self.0
    }

    /// The largest size in bytes.
    pub fn size_max(&self) -> ByteCount {
        self.0.iter().map(|block| block.size).max().unwrap_or_default()
    }
}

impl Default for BlockMix {
    /// 8 KiB, the page of most databases.
    fn default() -> BlockMix {
        BlockMix::single(ByteCount::kib(8))
    }
}

impl FromStr for BlockMix {
    type Err = SpecError;

    /// Sizes separated by spaces or commas, each with a weight after a colon where there are several.
    fn from_str(text: &str) -> Result<BlockMix, SpecError> {
        let fail = || SpecError::BlockMix(text.to_owned());
        let read = |word: &str| {
            let (size, weight) = word.split_once(':').unwrap_or((word, "1"));
            let size = size.parse().map_err(|_| fail())?;
            Ok(WeightedBlock { size, weight: weight.parse().map_err(|_| fail())? })
        };
        let words = text.split([' ', ',']).filter(|word| !word.is_empty());
        let blocks = words.map(read).collect::<Result<Vec<_>, SpecError>>()?;
        if blocks.is_empty() { Err(fail()) } else { Ok(BlockMix(blocks)) }
    }
}

impl fmt::Display for BlockMix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [WeightedBlock { size, weight: 1 }] = self.0[..] {
            return f.write_str(&exact_bytes(size));
        }
        for (index, WeightedBlock { size, weight }) in self.0.iter().enumerate() {
            let gap = if index == 0 { "" } else { " " };
            write!(f, "{gap}{}:{weight}", exact_bytes(*size))?;
        }
        Ok(())
    }
}

serde_as_text!(BlockMix);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_back_what_it_prints() {
        for text in ["8KiB", "8KiB:70 64KiB:30", "512B:1 1MiB:1", "1706496B"] {
            assert_eq!(text.parse::<BlockMix>().expect(text).to_string(), text);
        }
        assert_eq!("4k,8k".parse::<BlockMix>().expect("commas").blocks().len(), 2);
    }

    #[test]
    fn refuses_what_is_no_mix() {
        for text in ["", "big", "8KiB:x", "8KiB:-1", ":3"] {
            assert_eq!(text.parse::<BlockMix>(), Err(SpecError::BlockMix(text.to_owned())), "{text}");
        }
    }
}
