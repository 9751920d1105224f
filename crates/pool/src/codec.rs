//! Integers, texts and checksums as they lie on drives: little-endian, every length checked before it is used.

use uuid::Uuid;

/// Writes values one after the other.
#[derive(Debug, Default)]
pub(crate) struct Writer(pub(crate) Vec<u8>);

impl Writer {
    pub(crate) fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(crate) fn u16(&mut self, value: u16) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn uuid(&mut self, value: Uuid) {
        self.0.extend_from_slice(value.as_bytes());
    }

    /// The length in two bytes, then the text. Texts are limited to [`crate::TEXT_BYTES_MAX`] before they come here.
    pub(crate) fn text(&mut self, value: &str) {
        self.u16(u16::try_from(value.len()).expect("names are checked to be shorter than 64 KiB"));
        self.0.extend_from_slice(value.as_bytes());
    }

    /// How many there are; collections are limited to 2^32 before they come here.
    pub(crate) fn count(&mut self, value: usize) {
        self.u32(u32::try_from(value).expect("collections are checked to have fewer than 2^32 elements"));
    }
}

/// Reads values one after the other; none once the bytes end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (front, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*front)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn flag(&mut self) -> Option<bool> {
        match self.u8()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    pub(crate) fn uuid(&mut self) -> Option<Uuid> {
        self.array().map(Uuid::from_bytes)
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(front)
    }

    pub(crate) fn text(&mut self) -> Option<String> {
        let count = self.u16()?;
        let bytes = self.bytes(usize::from(count))?;
        std::str::from_utf8(bytes).ok().map(str::to_owned)
    }

    /// How many elements follow, none if fewer than `bytes_each` bytes are left for each: so a damaged count never
    /// makes the reader allocate more than what is there.
    pub(crate) fn count(&mut self, bytes_each: usize) -> Option<usize> {
        let count = self.u32()? as usize;
        (count.checked_mul(bytes_each)? <= self.0.len()).then_some(count)
    }

    /// `count` elements, each read by `read`.
    pub(crate) fn many<T>(
        &mut self,
        bytes_each: usize,
        read: impl Fn(&mut Reader<'a>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let count = self.count(bytes_each)?;
        (0..count).map(|_| read(self)).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// CRC-64/NVME (NVM Express NVM Command Set Specification 1.0, section 5.2.1.3.4) of the parts, one after the other.
pub(crate) fn crc64(parts: &[&[u8]]) -> u64 {
    let mut digest = crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc64Nvme);
    parts.iter().for_each(|part| digest.update(part));
    digest.finalize()
}
