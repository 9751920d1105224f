//! What the server answers to options ("Option reply types").

use super::super::constants::{BASE_ALLOCATION, OPTION_REPLY_MAGIC, info, rep};
use super::super::export::ExportInfo;
use super::super::wire::{Put, clip, length_u32};

/// Writes the replies to one option.
pub(super) struct Replies<'a> {
    pub(super) out: &'a mut Vec<u8>,
    pub(super) option: u32,
}

impl Replies<'_> {
    /// Magic, option, reply type and length, then the parts of the data.
    fn put(&mut self, reply: u32, parts: &[&[u8]]) {
        self.out.put_u64(OPTION_REPLY_MAGIC);
        self.out.put_u32(self.option);
        self.out.put_u32(reply);
        self.out.put_u32(length_u32(parts.iter().map(|part| part.len()).sum()));
        parts.iter().for_each(|part| self.out.put(part));
    }

    pub(super) fn ack(&mut self) {
        self.put(rep::ACK, &[]);
    }

    /// An error reply with a message for people.
    pub(super) fn error(&mut self, reply: u32, message: &str) {
        debug_assert!(reply & rep::ERROR_BIT != 0);
        self.put(reply, &[clip(message).as_bytes()]);
    }

    /// `REP_SERVER`: the name with its length, and as free text the description.
    pub(super) fn server(&mut self, export: &ExportInfo) {
        let name = export.name.as_bytes();
        self.put(rep::SERVER, &[&length_u32(name.len()).to_be_bytes(), name, export.description.as_bytes()]);
    }

    /// `INFO_EXPORT`, which must precede the acknowledgement of `INFO` and `GO`.
    pub(super) fn info_export(&mut self, export: &ExportInfo, structured_replies: bool) {
        let flags = export.features.to_wire(structured_replies);
        let size = export.size_bytes.to_be_bytes();
        self.put(rep::INFO, &[&info::EXPORT.to_be_bytes(), &size, &flags.to_be_bytes()]);
    }

    pub(super) fn info_text(&mut self, kind: u16, text: &str) {
        self.put(rep::INFO, &[&kind.to_be_bytes(), text.as_bytes()]);
    }

    pub(super) fn info_block_size(&mut self, export: &ExportInfo) {
        let sizes = export.block_sizes;
        let [minimum, preferred, maximum] =
            [sizes.minimum, sizes.preferred, sizes.maximum].map(u32::to_be_bytes);
        self.put(rep::INFO, &[&info::BLOCK_SIZE.to_be_bytes(), &minimum, &preferred, &maximum]);
    }

    /// `REP_META_CONTEXT` for `base:allocation` under `id`.
    pub(super) fn base_allocation(&mut self, id: u32) {
        self.put(rep::META_CONTEXT, &[&id.to_be_bytes(), BASE_ALLOCATION.as_bytes()]);
    }
}
