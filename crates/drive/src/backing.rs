//! Memory behind modelled drives: sparse, as wide per sector as the world, zero where nothing was written.

use std::collections::BTreeMap;

use tier0_units::Lba;
use tier0_world::PayloadWidth;

/// Sectors per piece of memory.
const PIECE_SECTORS: u64 = 256;

/// A sparse store of sectors.
#[derive(Clone, Debug)]
pub struct SparseStore {
    width: usize,
    pieces: BTreeMap<u64, Box<[u8]>>,
}

impl SparseStore {
    /// An empty store: all zeros.
    pub fn new(width: PayloadWidth) -> SparseStore {
        SparseStore { width: width.bytes(), pieces: BTreeMap::new() }
    }

    /// Copies sectors out; `bytes` is a whole number of them.
    pub fn read(&self, lba: Lba, bytes: &mut [u8]) {
        self.each_piece(lba, bytes.len(), |piece, inside, range| match self.pieces.get(&piece) {
            Some(memory) => bytes[range.clone()].copy_from_slice(&memory[inside..inside + range.len()]),
            None => bytes[range].fill(0),
        });
    }

    /// Copies sectors in.
    pub fn write(&mut self, lba: Lba, bytes: &[u8]) {
        let mut pieces = std::mem::take(&mut self.pieces);
        let piece_bytes = PIECE_SECTORS as usize * self.width;
        self.each_piece(lba, bytes.len(), |piece, inside, range| {
            let memory = pieces.entry(piece).or_insert_with(|| vec![0; piece_bytes].into_boxed_slice());
            memory[inside..inside + range.len()].copy_from_slice(&bytes[range]);
        });
        self.pieces = pieces;
    }

    /// Makes sectors zero, freeing whole pieces.
    pub fn discard(&mut self, lba: Lba, sectors: u64) {
        let (first, end) = (lba.0, lba.0 + sectors);
        let whole = first.div_ceil(PIECE_SECTORS)..(end / PIECE_SECTORS).max(first.div_ceil(PIECE_SECTORS));
        let freed: Vec<u64> = self.pieces.range(whole).map(|(piece, _)| *piece).collect();
        for piece in freed {
            self.pieces.remove(&piece);
        }
        let width = self.width;
        for (piece, memory) in self.pieces.range_mut(first / PIECE_SECTORS..end.div_ceil(PIECE_SECTORS)) {
            let start = first.max(piece * PIECE_SECTORS) - piece * PIECE_SECTORS;
            let stop = end.min((piece + 1) * PIECE_SECTORS) - piece * PIECE_SECTORS;
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
        Some(Lba(piece * PIECE_SECTORS + random.below(PIECE_SECTORS)))
    }

    /// Calls `act(piece, first byte inside the piece, range of the caller's bytes)` for every piece of a range.
    fn each_piece(&self, lba: Lba, bytes: usize, mut act: impl FnMut(u64, usize, std::ops::Range<usize>)) {
        let mut done = 0;
        let mut sector = lba.0;
        while done < bytes {
            let inside = (sector % PIECE_SECTORS) as usize;
            let step = ((PIECE_SECTORS as usize - inside) * self.width).min(bytes - done);
            act(sector / PIECE_SECTORS, inside * self.width, done..done + step);
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
