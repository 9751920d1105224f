//! Names of volumes as small numbers.

/// The most names that a trace may have.
pub(crate) const VOLUMES_MAX: usize = 4096;
/// The longest name, bytes.
pub(crate) const NAME_BYTES_MAX: usize = 256;
/// How many names that came lately are found without a search.
const RECENT: usize = 64;

/// The names of a trace, in the order in which they came.
#[derive(Debug)]
pub(crate) struct Volumes {
    names: Vec<String>,
    /// The same as they stand in the file.
    keys: Vec<Box<[u8]>>,
    /// Their numbers, in the order of the keys.
    sorted: Vec<u32>,
    recent: [u32; RECENT],
}

/// Why a name gets no number.
#[derive(Debug, PartialEq)]
pub(crate) enum Refusal {
    /// It is longer than [`NAME_BYTES_MAX`].
    Long,
    /// There are [`VOLUMES_MAX`] others.
    Many,
}

impl Volumes {
    /// No names yet.
    pub(crate) fn new() -> Volumes {
        Volumes { names: Vec::new(), keys: Vec::new(), sorted: Vec::new(), recent: [0; RECENT] }
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
        let found = self.sorted.binary_search_by(|&number| (*self.keys[number as usize]).cmp(key));
        let place = match found {
            Ok(place) => return Ok(self.sorted[place]),
            Err(place) => place,
        };
        if key.len() > NAME_BYTES_MAX {
            return Err(Refusal::Long);
        }
        if self.keys.len() == VOLUMES_MAX {
            return Err(Refusal::Many);
        }
        let number = self.keys.len() as u32;
        self.names.push(name(key));
        self.keys.push(key.into());
        self.sorted.insert(place, number);
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

    #[test]
    fn names_keep_their_numbers_and_are_limited() {
        let mut volumes = Volumes::new();
        let text = |key: &[u8]| String::from_utf8_lossy(key).into_owned();
        for _ in 0..2 {
            for number in 0..VOLUMES_MAX as u32 {
                assert_eq!(volumes.number(format!("disk{number}").as_bytes(), text), Ok(number));
            }
        }
        assert_eq!(volumes.number(b"another", text), Err(Refusal::Many));
        assert_eq!(volumes.number(b"disk7", text), Ok(7));
        assert_eq!((volumes.names().len(), volumes.names()[7].as_str()), (VOLUMES_MAX, "disk7"));
        assert_eq!(Volumes::new().number(&[b'a'; NAME_BYTES_MAX + 1], text), Err(Refusal::Long));
    }
}
