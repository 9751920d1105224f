//! A whole checkpoint as tests need it: the root as it lies in its slot, then all stored pages.

use uuid::Uuid;

use super::*;
use crate::features::Features;
use crate::samples::area;
use crate::{MetaError, PoolState};

/// The generation of these checkpoints.
const GENERATION: u64 = 7;

pub(crate) fn header_of(body: &[u8]) -> Header {
    Header {
        version: VERSION,
        pool: Uuid::from_u128(1),
        generation: GENERATION,
        journal: Uuid::from_u128(8),
        position: 99,
        body_bytes: body.len() as u64,
        features: Features::NONE,
    }
}

/// The body of a state's first checkpoint, and the pages that are stored.
pub(crate) fn encode_parts(state: &PoolState) -> (Vec<u8>, Vec<Vec<u8>>) {
    let count = page_count(state.slot_count());
    let mut table = PageTable::empty(count, 0);
    if state.has_families() {
        table.begin_families();
    }
    let mut stored = Vec::new();
    for page in 0..count {
        let bytes = encode_page_of(state, page);
        stored.extend(table.turn(page, &bytes).into_iter().map(|(_, bytes)| bytes.to_vec()));
    }
    (encode_state(state).with_table(&table), stored)
}

/// A page of a state.
pub(crate) fn encode_page_of(state: &PoolState, page: u64) -> PageBytes {
    encode_page(state.id(), state.slot_count(), page, GENERATION, |slot| state.tenant(slot))
}

/// The state of a body and its pages.
pub(crate) fn decode_parts(
    header: &Header,
    body: &[u8],
    stored: &[u8],
) -> Option<Result<PoolState, MetaError>> {
    let Body { mut state, table } = match decode_body(body, header, &area()) {
        Ok(body) => body,
        Err(error) => return Some(Err(error)),
    };
    let Some(table) = table else { return Some(Ok(state)) };
    let mut pages = stored.chunks(PAGE_BYTES);
    for page in 0..table.count() {
        let (Some(own), branches) = table.stored(page) else { continue };
        let mut next = |stored: Stored| pages.next().filter(|bytes| is_page(bytes, stored.sum));
        let own = next(own)?;
        let branches = if let Some(branches) = branches { Some(next(branches)?) } else { None };
        if let Err(error) = state.take_in(&decode_page(own, branches, state.id(), page)?) {
            return Some(Err(error));
        }
    }
    Some(state.verify().map(|()| state))
}

pub(crate) fn encode(state: &PoolState) -> Vec<u8> {
    let (body, stored) = encode_parts(state);
    let features = encode_state(state).features();
    [encode_pieces(&Header { features, ..header_of(&body) }, &body), stored.concat()].concat()
}

pub(crate) fn decode(bytes: &[u8]) -> Option<Result<PoolState, MetaError>> {
    let HeaderPlace::Valid(header) = decode_header(&bytes[..HEADER_BYTES]) else { return None };
    let (root, stored) = bytes.split_at_checked(slot_bytes(header.body_bytes) as usize)?;
    let body = join_pieces(&header, &root[HEADER_BYTES..])?;
    decode_parts(&header, &body, stored)
}
