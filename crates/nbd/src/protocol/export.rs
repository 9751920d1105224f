//! What a server says about an export, and where the handshake looks exports up.
//!
//! An [`ExportInfo`] is built by the owner of the export and is constant while it is served. A client gets one from the
//! handshake and asks it the same questions.

use super::constants::transmission_flag as flag;
use super::limits::{PAYLOAD_BYTES_MAX, STRING_BYTES_MAX};

/// Alignment and length limits of requests ("Block size constraints").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSizes {
    /// Offsets and lengths must be multiples of this, in bytes; a power of two up to 64 KiB.
    pub minimum: u32,
    /// Multiples of this are served best, in bytes; a power of two of at least 512 and `minimum`.
    pub preferred: u32,
    /// Longest payload of a read or write, in bytes; a multiple of `minimum`, at least `preferred`.
    pub maximum: u32,
}

impl Default for BlockSizes {
    /// What holds where nothing was said ("Block size constraints"): 1 byte, 4 KiB, 32 MiB.
    fn default() -> BlockSizes {
        BlockSizes { minimum: 1, preferred: 4096, maximum: PAYLOAD_BYTES_MAX }
    }
}

impl BlockSizes {
    /// Whether the three obey the rules of the specification.
    pub fn are_valid(&self) -> bool {
        self.minimum.is_power_of_two()
            && self.minimum <= 64 << 10
            && self.preferred.is_power_of_two()
            && self.preferred >= self.minimum.max(512)
            && self.maximum >= self.preferred
            && (self.maximum.is_multiple_of(self.minimum) || self.maximum == u32::MAX)
    }
}

/// What an export can do besides reading and writing ("Transmission flags").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// No command may change it.
    pub read_only: bool,
    /// Serves `FLUSH`.
    pub flush: bool,
    /// Honours `FUA`.
    pub fua: bool,
    /// Seeks cost time: the client may sort its requests.
    pub rotational: bool,
    /// Serves `TRIM`.
    pub trim: bool,
    /// Serves `WRITE_ZEROES`.
    pub write_zeroes: bool,
    /// Refuses a `WRITE_ZEROES` with `FAST_ZERO` that would be as slow as a write.
    pub fast_zero: bool,
    /// Serves `CACHE`.
    pub cache: bool,
    /// A flush on one connection covers the writes answered on every other.
    pub multi_conn: bool,
    /// Honours `DF` (known to clients only; a server sets it with structured replies).
    pub dont_fragment: bool,
}

impl Features {
    /// Everything a writable export of this crate's server can offer but fast zeroes and caching.
    pub const READ_WRITE: Features = Features {
        read_only: false,
        flush: true,
        fua: true,
        rotational: false,
        trim: true,
        write_zeroes: true,
        fast_zero: false,
        cache: false,
        multi_conn: true,
        dont_fragment: false,
    };

    fn bits(&self) -> [(bool, u16); 10] {
        [
            (self.read_only, flag::READ_ONLY),
            (self.flush, flag::SEND_FLUSH),
            (self.fua, flag::SEND_FUA),
            (self.rotational, flag::ROTATIONAL),
            (self.trim, flag::SEND_TRIM),
            (self.write_zeroes, flag::SEND_WRITE_ZEROES),
            (self.fast_zero, flag::SEND_FAST_ZERO),
            (self.cache, flag::SEND_CACHE),
            (self.multi_conn, flag::CAN_MULTI_CONN),
            (self.dont_fragment, flag::SEND_DF),
        ]
    }

    /// The flags as sent. `SEND_DF` goes out exactly where structured replies were negotiated.
    pub(crate) fn to_wire(self, structured_replies: bool) -> u16 {
        let features = Features { dont_fragment: structured_replies, ..self };
        let set = features.bits().iter().filter(|(on, _)| *on).fold(0, |bits, (_, bit)| bits | bit);
        flag::HAS_FLAGS | set
    }

    /// The flags as received; unknown ones are ignored.
    pub(crate) fn from_wire(bits: u16) -> Features {
        let on = |bit: u16| bits & bit != 0;
        Features {
            read_only: on(flag::READ_ONLY),
            flush: on(flag::SEND_FLUSH),
            fua: on(flag::SEND_FUA),
            rotational: on(flag::ROTATIONAL),
            trim: on(flag::SEND_TRIM),
            write_zeroes: on(flag::SEND_WRITE_ZEROES),
            fast_zero: on(flag::SEND_FAST_ZERO),
            cache: on(flag::SEND_CACHE),
            multi_conn: on(flag::CAN_MULTI_CONN),
            dont_fragment: on(flag::SEND_DF),
        }
    }
}

/// An export as a client sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportInfo {
    /// Its name, at most [`STRING_BYTES_MAX`] bytes without NUL.
    pub name: String,
    /// One line for people; empty where there is none. Same limits as the name.
    pub description: String,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// What it can do.
    pub features: Features,
    /// Alignment and length limits.
    pub block_sizes: BlockSizes,
}

impl ExportInfo {
    /// A writable export with every feature of [`Features::READ_WRITE`] and blocks of `minimum` bytes.
    ///
    /// # Panics
    /// Where `minimum` is no power of two up to 64 KiB.
    pub fn new(name: impl Into<String>, size_bytes: u64, minimum: u32) -> ExportInfo {
        let block_sizes = BlockSizes { minimum, preferred: minimum.max(4096), ..BlockSizes::default() };
        let info = ExportInfo {
            name: name.into(),
            description: String::new(),
            size_bytes,
            features: Features::READ_WRITE,
            block_sizes,
        };
        info.assert_valid();
        info
    }

    /// Holds the owner of an export to the limits above.
    ///
    /// # Panics
    /// Where a string cannot be sent or the block sizes contradict each other: a fault of the program.
    pub fn assert_valid(&self) {
        for text in [&self.name, &self.description] {
            assert!(text.len() <= STRING_BYTES_MAX && !text.contains('\0'), "not sendable: {text:?}");
        }
        assert!(self.block_sizes.are_valid(), "export {:?}: {:?}", self.name, self.block_sizes);
    }
}

/// The exports a handshake may offer.
pub trait ExportDirectory {
    /// How many exports there are.
    fn count(&self) -> usize;

    /// The export at `index`, below [`ExportDirectory::count`].
    fn export(&self, index: usize) -> &ExportInfo;

    /// The index of the export called `name`. The empty name stands for the default export
    /// ("Option types", `EXPORT_NAME`): the one of that name, else the only one there is.
    fn find(&self, name: &str) -> Option<usize> {
        let named = (0..self.count()).find(|index| self.export(*index).name == name);
        named.or_else(|| (name.is_empty() && self.count() == 1).then_some(0))
    }
}

impl ExportDirectory for [ExportInfo] {
    fn count(&self) -> usize {
        self.len()
    }

    fn export(&self, index: usize) -> &ExportInfo {
        &self[index]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_survive_the_wire() {
        let all = Features::READ_WRITE;
        assert_eq!(Features::from_wire(all.to_wire(true)), Features { dont_fragment: true, ..all });
        assert_eq!(Features::from_wire(all.to_wire(false)), all);
        let read_only = Features { read_only: true, cache: true, rotational: true, ..Features::default() };
        assert_eq!(Features::from_wire(read_only.to_wire(false)), read_only);
        assert_eq!(Features::default().to_wire(false), 1, "HAS_FLAGS is always set");
    }

    #[test]
    fn the_empty_name_is_the_only_export() {
        let two = [ExportInfo::new("a", 512, 512), ExportInfo::new("b", 512, 512)];
        assert_eq!(two[..].find("b"), Some(1));
        assert_eq!(two[..].find(""), None);
        assert_eq!(two[..1].find(""), Some(0));
        assert_eq!(two[..1].find("b"), None);
    }

    #[test]
    fn block_sizes_obey_the_specification() {
        let ok = BlockSizes { minimum: 512, preferred: 4096, maximum: 1 << 20 };
        assert!(ok.are_valid());
        for bad in [
            BlockSizes { minimum: 0, ..ok },
            BlockSizes { minimum: 3, ..ok },
            BlockSizes { minimum: 8192, ..ok },
            BlockSizes { preferred: 256, minimum: 256, ..ok },
            BlockSizes { maximum: 2048, ..ok },
            BlockSizes { maximum: 4097, ..ok },
        ] {
            assert!(!bad.are_valid(), "{bad:?}");
        }
    }
}
