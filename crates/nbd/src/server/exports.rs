//! Exports as NBD tells of them.

use std::rc::Rc;

use tier0_block::BlockTarget;
use tier0_target::{Export, ExportOptions};
use tier0_units::SECTOR_BYTES;

use super::error::ServerError;
use crate::protocol::limits::STRING_BYTES_MAX;
use crate::protocol::{BlockSizes, ExportDirectory, ExportInfo, Features};

/// What clients are told of `target`.
///
/// # Errors
/// Where it cannot be said in the protocol.
pub(super) fn describe<T: BlockTarget>(
    options: &ExportOptions,
    target: &T,
    payload_bytes_max: u32,
) -> Result<ExportInfo, ServerError> {
    let ExportOptions { name, description, read_only, rotational } = options.clone();
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
    let Some(block_sizes) = block_sizes.filter(BlockSizes::are_valid) else {
        return Err(ServerError::BadBlockSize { name, block_bytes });
    };
    let features = Features { read_only, rotational, ..Features::READ_WRITE };
    let size_bytes = facts.sectors.bytes().0;
    Ok(ExportInfo { name, description, size_bytes, features, block_sizes })
}

/// The exports of one moment. What another protocol offers and NBD cannot say is left out.
pub(super) struct Directory<T> {
    of: Rc<[Rc<Export<T>>]>,
    described: Vec<(ExportInfo, Rc<Export<T>>)>,
}

impl<T: BlockTarget> Directory<T> {
    pub(super) fn new(of: Rc<[Rc<Export<T>>]>, payload_bytes_max: u32) -> Directory<T> {
        let describe_one = |export: &Rc<Export<T>>| {
            let info = describe(&export.options, &export.target, payload_bytes_max).ok()?;
            Some((info, export.clone()))
        };
        Directory { described: of.iter().filter_map(describe_one).collect(), of }
    }

    /// Whether these are still the exports.
    pub(super) fn is_of(&self, exports: &Rc<[Rc<Export<T>>]>) -> bool {
        Rc::ptr_eq(&self.of, exports)
    }

    /// The export at `index`, and what was told of it.
    pub(super) fn take(mut self, index: usize) -> (ExportInfo, Rc<Export<T>>) {
        self.described.swap_remove(index)
    }
}

impl<T> ExportDirectory for Directory<T> {
    fn count(&self) -> usize {
        self.described.len()
    }

    fn export(&self, index: usize) -> &ExportInfo {
        &self.described[index].0
    }
}
