//! Replies to options as the client reads them.

use super::super::constants::{OPTION_REPLY_MAGIC, info, rep};
use super::super::error::ProtocolError;
use super::super::export::{BlockSizes, ExportInfo, Features};
use super::super::limits::OPTION_BYTES_MAX;
use super::super::wire::{Cursor, string};
use super::client::ListedExport;

/// Header of a reply to an option, in bytes: magic, option, type, length.
const REPLY_HEADER_BYTES: usize = 20;

/// A reply, its data whole.
pub(super) struct RawReply<'a> {
    pub(super) option: u32,
    pub(super) reply: u32,
    pub(super) data: &'a [u8],
}

impl<'a> RawReply<'a> {
    /// The first reply of `input`, which must answer option `sent`; `None` where more bytes are needed.
    pub(super) fn parse(input: &'a [u8], sent: u32) -> Result<Option<RawReply<'a>>, ProtocolError> {
        let mut cursor = Cursor::new(input);
        let Some(magic) = cursor.u64() else { return Ok(None) };
        if magic != OPTION_REPLY_MAGIC {
            return Err(ProtocolError::BadOptionReplyMagic { found: magic });
        }
        let (Some(option), Some(reply), Some(length)) = (cursor.u32(), cursor.u32(), cursor.u32()) else {
            return Ok(None);
        };
        if option != sent {
            return Err(ProtocolError::ReplyToOtherOption { sent, found: option });
        }
        if length > OPTION_BYTES_MAX {
            return Err(ProtocolError::MalformedOptionReply { option, reply, reason: "too long" });
        }
        Ok(cursor.bytes(length as usize).map(|data| RawReply { option, reply, data }))
    }

    pub(super) fn message_bytes(&self) -> usize {
        REPLY_HEADER_BYTES + self.data.len()
    }

    pub(super) fn malformed(&self, reason: &'static str) -> ProtocolError {
        ProtocolError::MalformedOptionReply { option: self.option, reply: self.reply, reason }
    }

    pub(super) fn is_error(&self) -> bool {
        self.reply & rep::ERROR_BIT != 0
    }

    /// The message of an error reply; what is no string is left out.
    pub(super) fn message(&self) -> String {
        string(self.data).unwrap_or_default().to_owned()
    }

    /// The data of `REP_SERVER`.
    pub(super) fn listed_export(&self) -> Result<ListedExport, ProtocolError> {
        let mut cursor = Cursor::new(self.data);
        let name = cursor.counted().ok_or_else(|| self.malformed("name is cut off"))?;
        let name = string(name).map_err(|_| self.malformed("name is not valid"))?;
        let description = string(cursor.rest()).unwrap_or_default();
        Ok(ListedExport { name: name.to_owned(), description: description.to_owned() })
    }

    /// The data of `REP_META_CONTEXT`: identifier and name.
    pub(super) fn meta_context(&self) -> Result<(u32, &'a str), ProtocolError> {
        let mut cursor = Cursor::new(self.data);
        let id = cursor.u32().ok_or_else(|| self.malformed("identifier is cut off"))?;
        let name = string(cursor.rest()).map_err(|_| self.malformed("name is not valid"))?;
        Ok((id, name))
    }

    /// Enters the data of `REP_INFO` into what is known of the export; unknown types are ignored, as they must.
    pub(super) fn info(&self, facts: &mut ExportFacts) -> Result<(), ProtocolError> {
        let mut cursor = Cursor::new(self.data);
        let cut = || self.malformed("cut off");
        match cursor.u16().ok_or_else(cut)? {
            info::EXPORT => {
                let size = cursor.u64().ok_or_else(cut)?;
                facts.size_and_flags = Some((size, cursor.u16().ok_or_else(cut)?));
            }
            info::NAME => facts.name = Some(self.text(cursor)?),
            info::DESCRIPTION => facts.description = self.text(cursor)?,
            info::BLOCK_SIZE => {
                let mut size = || cursor.u32().ok_or_else(cut);
                let sizes = BlockSizes { minimum: size()?, preferred: size()?, maximum: size()? };
                if !sizes.are_valid() {
                    return Err(self.malformed("block sizes contradict each other"));
                }
                facts.block_sizes = sizes;
            }
            _ => {}
        }
        Ok(())
    }

    fn text(&self, cursor: Cursor<'_>) -> Result<String, ProtocolError> {
        string(cursor.rest()).map(str::to_owned).map_err(|_| self.malformed("text is not valid"))
    }
}

/// What the server said about the export so far.
#[derive(Debug, Default)]
pub(super) struct ExportFacts {
    pub(super) size_and_flags: Option<(u64, u16)>,
    name: Option<String>,
    description: String,
    block_sizes: BlockSizes,
}

impl ExportFacts {
    /// The export, or `None` where the server never told its size.
    pub(super) fn into_export(self, asked: &str) -> Option<ExportInfo> {
        let (size_bytes, flags) = self.size_and_flags?;
        Some(ExportInfo {
            name: self.name.unwrap_or_else(|| asked.to_owned()),
            description: self.description,
            size_bytes,
            features: Features::from_wire(flags),
            block_sizes: self.block_sizes,
        })
    }
}
