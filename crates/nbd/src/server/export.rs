//! An export: a target under a name.

use std::rc::Rc;

use tier0_drive::BlockTarget;
use tier0_units::SECTOR_BYTES;

use super::error::ServerError;
use crate::protocol::limits::STRING_BYTES_MAX;
use crate::protocol::{BlockSizes, ExportDirectory, ExportInfo, Features};

/// How a target is presented.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportOptions {
    /// Its name; empty makes it the default export.
    pub name: String,
    /// One line for people; may be empty.
    pub description: String,
    /// Refuse every change.
    pub read_only: bool,
    /// Tell clients that seeks cost time.
    pub rotational: bool,
}

impl ExportOptions {
    /// A writable export called `name`.
    pub fn named(name: impl Into<String>) -> ExportOptions {
        ExportOptions { name: name.into(), ..ExportOptions::default() }
    }
}

/// What connections share.
pub(super) struct Export<T> {
    pub(super) info: ExportInfo,
    pub(super) target: T,
}

impl<T: BlockTarget> Export<T> {
    pub(super) fn new(
        options: ExportOptions,
        target: T,
        payload_bytes_max: u32,
    ) -> Result<Export<T>, ServerError> {
        let ExportOptions { name, description, read_only, rotational } = options;
        for text in [&name, &description] {
            if text.len() > STRING_BYTES_MAX || text.contains('\0') {
                return Err(ServerError::BadText { text: text.clone() });
            }
        }
        let facts = target.info();
        let block_bytes = u64::from(facts.block_sectors) * SECTOR_BYTES;
        let block_sizes = u32::try_from(block_bytes).ok().map(|minimum| BlockSizes {
            minimum,
            preferred: minimum.max(4096),
            maximum: payload_bytes_max,
        });
        let block_sizes = block_sizes.filter(BlockSizes::are_valid);
        let Some(block_sizes) = block_sizes else {
            return Err(ServerError::BadBlockSize { name, block_bytes });
        };
        let features = Features { read_only, rotational, ..Features::READ_WRITE };
        let size_bytes = facts.sectors.bytes().0;
        Ok(Export { info: ExportInfo { name, description, size_bytes, features, block_sizes }, target })
    }
}

impl<T> ExportDirectory for [Rc<Export<T>>] {
    fn count(&self) -> usize {
        self.len()
    }

    fn export(&self, index: usize) -> &ExportInfo {
        &self[index].info
    }
}
