//! Names of volumes as small numbers.

use std::collections::BTreeMap;
use std::sync::Arc;

/// The memory that the names of a trace may take, bytes: those of some million volumes.
pub(crate) const NAMES_BYTES_MAX: usize = 256 << 20;
/// What a volume takes beside the bytes of its name, which are kept as they stand in the file and as text: two places in
/// lists, one in the index, and what the allocator adds.
const VOLUME_BYTES: usize = 128;
/// The longest name, bytes.
pub(crate) const NAME_BYTES_MAX: usize = 256;
/// How many names that came lately are found without a search.
const RECENT: usize = 64;

/// The names of a trace, in the order in which they came.
#[derive(Debug)]
pub(crate) struct Volumes {
    names: Vec<String>,
    /// The same as they stand in the file.
    keys: Vec<Arc<[u8]>>,
    /// Their numbers.
    numbers: BTreeMap<Arc<[u8]>, u32>,
    recent: [u32; RECENT],
    /// What the names take of memory, and what they may, bytes.
    bytes: usize,
    bytes_max: usize,
}

/// Why a name gets no number.
#[derive(Debug, PartialEq)]
pub(crate) enum Refusal {
    /// It is longer than [`NAME_BYTES_MAX`].
    Long,
    /// There is no more memory for names.
    Full,
}

impl Volumes {
    /// No names yet.
    pub(crate) fn new() -> Volumes {
        Volumes::within(NAMES_BYTES_MAX)
    }

    /// No names yet, and room for some.
    fn within(bytes_max: usize) -> Volumes {
        Volumes {
            names: Vec::new(),
            keys: Vec::new(),
            numbers: BTreeMap::new(),
            recent: [0; RECENT],
            bytes: 0,
            bytes_max,
        }
    }

    /// One volume, for formats without names.
    pub(crate) fn single(name: &str) -> Volumes {
        Volumes { names: vec![name.to_owned()], ..Volumes::new() }
    }

    /// The names.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// The number of the volume that the file calls `key`; `name` is what it is called in the list.
    #[inline]
    pub(crate) fn number(&mut self, key: &[u8], name: impl FnOnce(&[u8]) -> String) -> Result<u32, Refusal> {
        let place = place(key);
        let recent = self.recent[place];
        if self.keys.get(recent as usize).is_some_and(|known| **known == *key) {
            return Ok(recent);
        }
        let number = self.search(key, name)?;
        self.recent[place] = number;
        Ok(number)
    }

    fn search(&mut self, key: &[u8], name: impl FnOnce(&[u8]) -> String) -> Result<u32, Refusal> {
        if let Some(number) = self.numbers.get(key) {
            return Ok(*number);
        }
        if key.len() > NAME_BYTES_MAX {
            return Err(Refusal::Long);
        }
        let name = name(key);
        let bytes = self.bytes + key.len() + name.len() + VOLUME_BYTES;
        let number = u32::try_from(self.keys.len()).map_err(|_| Refusal::Full)?;
        if bytes > self.bytes_max {
            return Err(Refusal::Full);
        }
        self.bytes = bytes;
        let key: Arc<[u8]> = key.into();
        self.names.push(name);
        self.keys.push(key.clone());
        self.numbers.insert(key, number);
        Ok(number)
    }
}

/// Where a name is looked for first: names mostly differ at their end.
fn place(key: &[u8]) -> usize {
    let tail = &key[key.len().saturating_sub(4)..];
    tail.iter().fold(key.len(), |hash, byte| hash.wrapping_mul(31).wrapping_add(usize::from(*byte))) % RECENT
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(key: &[u8]) -> String {
        String::from_utf8_lossy(key).into_owned()
    }

    /// Tencent's traces have 5,584 volumes, and there was a limit of 4,096.
    #[test]
    fn names_keep_their_numbers() {
        let mut volumes = Volumes::new();
        for _ in 0..2 {
            for number in 0..6000 {
                assert_eq!(volumes.number(format!("disk{number}").as_bytes(), text), Ok(number));
            }
        }
        assert_eq!((volumes.names().len(), volumes.names()[7].as_str()), (6000, "disk7"));
    }

    #[test]
    fn names_are_limited_by_their_memory() {
        let mut volumes = Volumes::within(2 * (VOLUME_BYTES + 10));
        assert_eq!(volumes.number(b"disk0", text), Ok(0));
        assert_eq!(volumes.number(b"disk1", text), Ok(1));
        assert_eq!(volumes.number(b"disk2", text), Err(Refusal::Full));
        assert_eq!(volumes.number(b"disk1", text), Ok(1), "what is known stays known");
        assert_eq!(volumes.number(&[b'a'; NAME_BYTES_MAX + 1], text), Err(Refusal::Long));
    }
}
