//! Where the mirror keeps things on a drive, and how they look.
//!
//! Two copies of a superblock in sectors 0 and 1; from [`DATA_START`] on, four sectors for each sector of the volumes:
//! two places in turn, each a header and the data.

use tier0_units::SECTOR_BYTES;

/// Where data begins.
pub(crate) const DATA_START: u64 = 64;
/// Bytes of a sector.
pub(crate) const SECTOR: usize = SECTOR_BYTES as usize;

const SUPER_MAGIC: u64 = 0x6d69_7272_6f72_5f73;
const HEADER_MAGIC: u64 = 0x6d69_7272_6f72_5f68;

/// A drive as its superblock describes it and the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Superblock {
    pub(crate) generation: u64,
    /// Number of this drive.
    pub(crate) own: u64,
    /// Numbers of the drives in service.
    pub(crate) members: Vec<u64>,
    /// The highest number given.
    pub(crate) given: u64,
}

impl Superblock {
    pub(crate) fn encode(&self) -> [u8; SECTOR] {
        let mut words = vec![SUPER_MAGIC, self.generation, self.own, self.given, self.members.len() as u64];
        words.extend(&self.members);
        let check = hash(words.iter().copied());
        words.push(check);
        let mut bytes = [0; SECTOR];
        for (word, at) in words.iter().zip(bytes.chunks_exact_mut(8)) {
            at.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Superblock> {
        let words = words(bytes);
        let count = usize::try_from(words[4]).ok().filter(|count| *count < 32)?;
        let valid = words[0] == SUPER_MAGIC && hash(words[..5 + count].iter().copied()) == words[5 + count];
        valid.then(|| Superblock {
            generation: words[1],
            own: words[2],
            given: words[3],
            members: words[5..5 + count].to_vec(),
        })
    }
}

/// What stands before a sector's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Counts the writes of this sector.
    pub(crate) sequence: u64,
    /// The sector, counted through all volumes.
    pub(crate) sector: u64,
}

impl Header {
    /// Header and data, two sectors.
    pub(crate) fn encode(&self, data: &[u8]) -> Vec<u8> {
        let check = self.check(data);
        let mut bytes = vec![0; SECTOR];
        for (word, at) in
            [HEADER_MAGIC, self.sequence, self.sector, check].iter().zip(bytes.chunks_exact_mut(8))
        {
            at.copy_from_slice(&word.to_le_bytes());
        }
        bytes.extend_from_slice(data);
        bytes
    }

    /// The header of two sectors; none if it does not fit `sector` or, unless `trusting`, the data.
    pub(crate) fn decode(bytes: &[u8], sector: u64, trusting: bool) -> Option<Header> {
        let words = words(&bytes[..SECTOR]);
        let header = Header { sequence: words[1], sector: words[2] };
        let valid = words[0] == HEADER_MAGIC && header.sector == sector;
        (valid && (trusting || header.check(&bytes[SECTOR..]) == words[3])).then_some(header)
    }

    fn check(&self, data: &[u8]) -> u64 {
        hash([self.sequence, self.sector].into_iter().chain(words(data)))
    }
}

/// First sector of a place of a volume sector.
pub(crate) fn place(sector: u64, place: u64) -> u64 {
    DATA_START + sector * 4 + place * 2
}

fn words(bytes: &[u8]) -> Vec<u64> {
    let words = bytes.chunks_exact(8);
    words.map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes"))).collect()
}

fn hash(words: impl Iterator<Item = u64>) -> u64 {
    words.fold(0x9e37_79b9_7f4a_7c15, |hash, word| {
        (hash.rotate_left(23) ^ word).wrapping_mul(0xd6e8_feb8_6659_fd93)
    })
}
