//! The arithmetic of one row: recovering what is lost, computing what parity becomes.

use tier0_units::SectorCount;
use tier0_world::Buf;

use crate::io::scratch::Scratch;
use crate::layout::{ColumnMask, Layout, Piece, Unit, UnitMask, WriteBand, WriteMethod};
use crate::parity;

/// The old contents of the units in `recover` at these offsets, from what was read.
pub(crate) fn recover_lost(
    layout: &Layout,
    piece: &Piece,
    offset: SectorCount,
    sectors: SectorCount,
    recover: UnitMask,
    reads: ColumnMask,
    scratch: &Scratch,
) -> Vec<(Unit, Vec<u8>)> {
    if recover.is_empty() {
        return Vec::new();
    }
    let units = layout.group_unit_mask(piece.group);
    let read = |unit| scratch.bytes(layout.data_column(piece.row, unit), offset, sectors);
    let data: Vec<Option<&[u8]>> =
        units.iter().map(|unit| (!recover.contains(unit)).then(|| read(unit))).collect();
    let parities = layout.parity_columns(piece.row, piece.group);
    let parity = |column: Option<crate::layout::Column>| {
        column.filter(|column| reads.contains(*column)).map(|column| scratch.bytes(column, offset, sectors))
    };
    let (p, q) = (parity(parities.p), parity(parities.q));
    let length = p.or(q).map_or(0, <[u8]>::len);
    let mut recovered: Vec<(Unit, Vec<u8>)> = recover.iter().map(|unit| (unit, vec![0; length])).collect();
    let mut lost: Vec<&mut [u8]> = recovered.iter_mut().map(|(_, bytes)| bytes.as_mut_slice()).collect();
    parity::recover(&mut lost, &data, p, q);
    recovered
}

/// Computes the new parity of a band into `p` and `q`, as far as they are there.
pub(crate) fn new_parity(
    layout: &Layout,
    piece: &Piece,
    band: &WriteBand,
    scratch: &Scratch,
    new: &Buf,
    p: Option<&mut [u8]>,
    q: Option<&mut [u8]>,
) {
    if p.is_none() && q.is_none() {
        return;
    }
    let (offset, sectors) = (band.offset, band.sectors);
    let old = |unit| scratch.bytes(layout.data_column(piece.row, unit), offset, sectors);
    let written = |unit| new_bytes(layout, piece, band, unit, new);
    let units = layout.group_unit_mask(piece.group);
    if band.method == WriteMethod::ReadModifyWrite {
        let parities = layout.parity_columns(piece.row, piece.group);
        let base = units.first().map_or(0, |unit| unit.0);
        if let (Some(p), Some(column)) = (p, parities.p) {
            p.copy_from_slice(scratch.bytes(column, offset, sectors));
            band.written.iter().for_each(|unit| parity::update_p(p, old(unit), written(unit)));
        }
        if let (Some(q), Some(column)) = (q, parities.q) {
            q.copy_from_slice(scratch.bytes(column, offset, sectors));
            let update =
                |unit: Unit| parity::update_q(q, usize::from(unit.0 - base), old(unit), written(unit));
            band.written.iter().for_each(update);
        }
        return;
    }
    let recovered = recover_lost(layout, piece, offset, sectors, band.recover, band.reads, scratch);
    let content = |unit: Unit| -> &[u8] {
        if band.written.contains(unit) {
            return new_bytes(layout, piece, band, unit, new);
        }
        match recovered.iter().find(|(lost, _)| *lost == unit) {
            Some((_, bytes)) => bytes,
            None => scratch.bytes(layout.data_column(piece.row, unit), offset, sectors),
        }
    };
    let data: Vec<&[u8]> = units.iter().map(content).collect();
    match (p, q) {
        (Some(p), Some(q)) => parity::pq(p, q, &data),
        (Some(p), None) => parity::xor_many(p, &data),
        (None, Some(q)) => parity::q(q, &data),
        (None, None) => unreachable!("there is a parity to compute"),
    }
}

/// The new bytes of a written unit at the offsets of a band.
fn new_bytes<'a>(layout: &Layout, piece: &Piece, band: &WriteBand, unit: Unit, new: &'a Buf) -> &'a [u8] {
    let width = new.width().bytes();
    let start = layout.position_in(piece, unit, band.offset).0 as usize * width;
    &new.as_slice()[start..start + band.sectors.0 as usize * width]
}
