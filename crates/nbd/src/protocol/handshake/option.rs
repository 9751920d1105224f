//! The data of each option, read by the server and written by the client ("Option types").

use super::super::constants::{IHAVEOPT, info};
use super::super::error::ProtocolError;
use super::super::limits::{OPTION_BYTES_MAX, OPTION_HEADER_BYTES};
use super::super::wire::{Cursor, Put, length_u32, string};

/// An option as received, its data whole.
pub(super) struct RawOption<'a> {
    pub(super) option: u32,
    pub(super) data: &'a [u8],
}

impl<'a> RawOption<'a> {
    /// The first option of `input`, or `None` where more bytes are needed. The length is checked as soon as the header
    /// is there, so that the server buffers no more than [`OPTION_BYTES_MAX`].
    pub(super) fn parse(input: &'a [u8]) -> Result<Option<RawOption<'a>>, ProtocolError> {
        let mut cursor = Cursor::new(input);
        let Some(magic) = cursor.u64() else { return Ok(None) };
        if magic != IHAVEOPT {
            return Err(ProtocolError::BadOptionMagic { found: magic });
        }
        let (Some(option), Some(length)) = (cursor.u32(), cursor.u32()) else { return Ok(None) };
        if length > OPTION_BYTES_MAX {
            return Err(ProtocolError::OptionTooLong { option, length });
        }
        Ok(cursor.bytes(length as usize).map(|data| RawOption { option, data }))
    }

    /// Bytes of the message.
    pub(super) fn message_bytes(&self) -> usize {
        OPTION_HEADER_BYTES + self.data.len()
    }
}

/// Appends an option.
pub(super) fn put_option(out: &mut Vec<u8>, option: u32, data: &[u8]) {
    out.put_u64(IHAVEOPT);
    out.put_u32(option);
    out.put_u32(length_u32(data.len()));
    out.put(data);
}

/// The data of `INFO` and `GO`.
pub(super) struct InfoRequest<'a> {
    pub(super) name: &'a str,
    pub(super) wants_name: bool,
    pub(super) wants_description: bool,
}

impl<'a> InfoRequest<'a> {
    /// 32 bits of name length, the name, 16 bits of count, and that many information types; unknown types are
    /// ignored, repeated ones count once. The error says what is wrong, for the reply `ERR_INVALID`.
    pub(super) fn parse(data: &'a [u8]) -> Result<InfoRequest<'a>, &'static str> {
        let mut cursor = Cursor::new(data);
        let name = cursor.counted().ok_or("name is cut off")?;
        let name = string(name).map_err(|_| "name is not valid")?;
        let count = cursor.u16().ok_or("count of requests is cut off")?;
        if cursor.rest().len() != 2 * usize::from(count) {
            return Err("count of requests does not match the length");
        }
        let (mut wants_name, mut wants_description) = (false, false);
        while let Some(kind) = cursor.u16() {
            wants_name |= kind == info::NAME;
            wants_description |= kind == info::DESCRIPTION;
        }
        Ok(InfoRequest { name, wants_name, wants_description })
    }
}

/// The data of `GO`, asking for everything.
pub(super) fn info_request_data(name: &str) -> Vec<u8> {
    let kinds = [info::NAME, info::DESCRIPTION, info::BLOCK_SIZE];
    let mut data = Vec::with_capacity(4 + name.len() + 2 + 2 * kinds.len());
    data.put_u32(length_u32(name.len()));
    data.put(name.as_bytes());
    data.put_u16(kinds.len() as u16);
    kinds.iter().for_each(|kind| data.put_u16(*kind));
    data
}

/// The data of `LIST_META_CONTEXT` and `SET_META_CONTEXT`.
pub(super) struct MetaContextRequest<'a> {
    pub(super) name: &'a str,
    count: u32,
    queries: Cursor<'a>,
}

impl<'a> MetaContextRequest<'a> {
    /// 32 bits of name length, the name, 32 bits of count, and per query 32 bits of length and the query.
    pub(super) fn parse(data: &'a [u8]) -> Result<MetaContextRequest<'a>, &'static str> {
        let mut cursor = Cursor::new(data);
        let name = cursor.counted().ok_or("name is cut off")?;
        let name = string(name).map_err(|_| "name is not valid")?;
        let count = cursor.u32().ok_or("count of queries is cut off")?;
        let request = MetaContextRequest { name, count, queries: cursor };
        for _ in 0..count {
            let query = cursor.counted().ok_or("query is cut off")?;
            string(query).map_err(|_| "query is not valid")?;
        }
        if cursor.rest().is_empty() { Ok(request) } else { Err("bytes follow the last query") }
    }

    pub(super) fn has_queries(&self) -> bool {
        self.count > 0
    }

    /// Whether any query satisfies `matches`.
    pub(super) fn any(&self, matches: impl Fn(&str) -> bool) -> bool {
        let mut cursor = self.queries;
        std::iter::from_fn(|| cursor.counted()).any(|query| string(query).is_ok_and(&matches))
    }
}

/// The data of `SET_META_CONTEXT` with one query.
pub(super) fn meta_context_data(name: &str, query: &str) -> Vec<u8> {
    let mut data = Vec::with_capacity(12 + name.len() + query.len());
    data.put_u32(length_u32(name.len()));
    data.put(name.as_bytes());
    data.put_u32(1);
    data.put_u32(length_u32(query.len()));
    data.put(query.as_bytes());
    data
}
