//! Memory behind modelled drives: sparse, as wide per sector as the world, zero where nothing was written. Where the world
//! keeps no data, it has the whole sectors that have content all the same: logs, tables, metadata.

use std::collections::BTreeMap;

use tier0_units::Lba;
use tier0_world::{Buf, PayloadWidth};

/// Sectors per piece of memory where data is kept.
const PIECE_SECTORS: u64 = 256;

/// A sparse store of sectors.
#[derive(Clone, Debug)]
pub struct SparseStore {
    width: usize,
    /// What is kept without data lies scattered, and is little.
    piece_sectors: u64,
    pieces: BTreeMap<u64, Box<[u8]>>,
}

impl SparseStore {
    /// An empty store: all zeros.
    pub fn new(width: PayloadWidth) -> SparseStore {
        let (width, piece_sectors) = match width {
            PayloadWidth::NONE => (PayloadWidth::REAL, 1),
            width => (width, PIECE_SECTORS),
        };
        SparseStore { width: width.bytes(), piece_sectors, pieces: BTreeMap::new() }
    }

    /// Makes it empty.
    pub(crate) fn clear(&mut self) {
        self.pieces.clear();
    }

    /// Copies sectors out; `bytes` is a whole number of them.
    pub fn read(&self, lba: Lba, bytes: &mut [u8]) {
        self.each_piece(lba, bytes.len(), |piece, inside, range| match self.pieces.get(&piece) {
            Some(memory) => bytes[range.clone()].copy_from_slice(&memory[inside..inside + range.len()]),
            None => bytes[range].fill(0),
        });
    }

    /// Takes over what a buffer holds; what it has no content of reads as zeros.
    pub fn write_buf(&mut self, lba: Lba, buf: &Buf) {
        debug_assert!(buf.as_slice().is_empty() || buf.width().bytes() == self.width, "one width per store");
        self.write(lba, buf.as_slice());
        let kept = (buf.as_slice().len() / self.width) as u64;
        self.discard(Lba(lba.0 + kept), u64::from(buf.sectors()) - kept);
    }

    /// Copies sectors in.
    pub fn write(&mut self, lba: Lba, bytes: &[u8]) {
        let mut pieces = std::mem::take(&mut self.pieces);
        let piece_bytes = self.piece_sectors as usize * self.width;
        self.each_piece(lba, bytes.len(), |piece, inside, range| {
            if inside == 0 && range.len() == piece_bytes && bytes[range.clone()].iter().all(|byte| *byte == 0)
            {
                pieces.remove(&piece);
                return;
            }
            let memory = pieces.entry(piece).or_insert_with(|| vec![0; piece_bytes].into_boxed_slice());
            memory[inside..inside + range.len()].copy_from_slice(&bytes[range]);
        });
        self.pieces = pieces;
    }

    /// Makes sectors zero, freeing whole pieces.
    pub fn discard(&mut self, lba: Lba, sectors: u64) {
        if sectors == 0 || self.pieces.is_empty() {
            return;
        }
        let (first, end, piece_sectors) = (lba.0, lba.0 + sectors, self.piece_sectors);
        let whole = first.div_ceil(piece_sectors)..(end / piece_sectors).max(first.div_ceil(piece_sectors));
        let freed: Vec<u64> = self.pieces.range(whole).map(|(piece, _)| *piece).collect();
        for piece in freed {
            self.pieces.remove(&piece);
        }
        let width = self.width;
        for (piece, memory) in self.pieces.range_mut(first / piece_sectors..end.div_ceil(piece_sectors)) {
            let start = first.max(piece * piece_sectors) - piece * piece_sectors;
            let stop = end.min((piece + 1) * piece_sectors) - piece * piece_sectors;
            memory[start as usize * width..stop as usize * width].fill(0);
        }
    }

    /// A hash of all content: equal stores have equal ones.
    pub(crate) fn fingerprint(&self, hasher: &mut impl std::hash::Hasher) {
        for (piece, memory) in self.pieces.iter().filter(|(_, memory)| memory.iter().any(|byte| *byte != 0)) {
            hasher.write_u64(*piece);
            hasher.write(memory);
        }
    }

    /// A random sector of a random piece that is kept; none where all is zeros.
    pub(crate) fn sample(&self, random: &mut tier0_world::Random) -> Option<Lba> {
        let count = self.pieces.len() as u64;
        let chosen = (count > 0).then(|| random.below(count) as usize)?;
        let piece = *self.pieces.keys().nth(chosen)?;
        Some(Lba(piece * self.piece_sectors + random.below(self.piece_sectors)))
    }

    /// Calls `act(piece, first byte inside the piece, range of the caller's bytes)` for every piece of a range.
    fn each_piece(&self, lba: Lba, bytes: usize, mut act: impl FnMut(u64, usize, std::ops::Range<usize>)) {
        let mut done = 0;
        let mut sector = lba.0;
        while done < bytes {
            let inside = (sector % self.piece_sectors) as usize;
            let step = ((self.piece_sectors as usize - inside) * self.width).min(bytes - done);
            act(sector / self.piece_sectors, inside * self.width, done..done + step);
            done += step;
            sector += (step / self.width) as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behaves_as_a_flat_array() {
        let mut store = SparseStore::new(PayloadWidth::new(2));
        let mut flat = vec![0u8; 4000];
        let mut random = tier0_world::Random::new(3, 0);
        for _ in 0..2000 {
            let first = random.below(1990);
            let sectors = 1 + random.below(2000 - first);
            let range = first as usize * 2..(first + sectors) as usize * 2;
            match random.below(3) {
                0 => {
                    let value = random.bits() as u8;
                    flat[range.clone()].fill(value);
                    store.write(Lba(first), &flat[range]);
                }
                1 => {
                    flat[range].fill(0);
                    store.discard(Lba(first), sectors);
                }
                _ => {
                    let mut bytes = vec![0xff; range.len()];
                    store.read(Lba(first), &mut bytes);
                    assert_eq!(bytes, flat[range]);
                }
            }
        }
    }
}
