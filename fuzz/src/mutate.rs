//! Inputs from inputs.
//!
//! One to four small changes, then mostly the target's repair, so that the change is seen by what lies behind the
//! checksum. The same random stream gives the same inputs.

use tier0_world::Random;

use crate::Target;

/// Numbers at which lengths, counts and offsets go wrong.
const EDGES: [u64; 12] = [
    0,
    1,
    7,
    0x7f,
    0xff,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x7fff_ffff_ffff_ffff,
    0xffff_ffff_ffff_ffff,
];

/// Of eight inputs, so many keep the damage that their mutation did to checksums.
const UNREPAIRED_OF_8: u64 = 1;

/// Changes `input`; `other` is another input of the same target, to be spliced in.
pub fn mutate(target: &Target, input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    for _ in 0..1 + random.below(4) {
        change(input, other, random);
    }
    input.truncate(target.input_bytes_max);
    if random.below(8) >= UNREPAIRED_OF_8 {
        (target.repair)(input);
    }
}

fn change(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    if input.is_empty() {
        input.extend_from_slice(&other[..index(other.len() + 1, random)]);
        return;
    }
    match random.below(12) {
        0 => {
            let at = index(input.len(), random);
            input[at] ^= 1 << random.below(8);
        }
        1 => {
            let at = index(input.len(), random);
            input[at] = random.bits() as u8;
        }
        2 | 3 => number(input, random),
        4 => {
            let range = range(input.len(), random);
            input.drain(range);
        }
        5 => {
            let range = range(input.len(), random);
            let (piece, at) = (input[range].to_vec(), index(input.len() + 1, random));
            splice(input, at, &piece);
        }
        6 => {
            let piece = &other[range(other.len(), random)];
            let at = index(input.len() + 1, random);
            splice(input, at, piece);
        }
        7 => {
            // The same place of another input: fields stay where they belong.
            let range = range(input.len().min(other.len()), random);
            input[range.clone()].copy_from_slice(&other[range]);
        }
        8 | 9 => counted(input, random),
        // Formats are rows of records: what follows in one input often may follow in another.
        10 => input.extend_from_slice(&other[index(other.len() + 1, random)..]),
        // Shrinking is rare: short inputs reach less.
        _ if random.chance(0.25) => {
            let most = input.len();
            input.truncate(index(most, random));
        }
        _ => {
            let at = index(input.len() + 1, random);
            let filling = vec![random.bits() as u8; 1 + index(64, random)];
            splice(input, at, &filling);
        }
    }
}

/// Overwrites a number by an edge, by itself and a little, or by anything.
fn number(input: &mut [u8], random: &mut Random) {
    let Some(field) = Field::draw(input, random) else { return };
    let value = match random.below(3) {
        0 => EDGES[index(EDGES.len(), random)],
        1 => field.get(input).wrapping_add(random.below(9)).wrapping_sub(4),
        _ => random.bits() >> random.below(64),
    };
    field.set(input, value);
}

/// Takes a number for the count of the bytes behind it, and adds some to both: so that what is counted grows and is still
/// counted rightly.
fn counted(input: &mut Vec<u8>, random: &mut Random) {
    // Counts are small numbers; most fields that are drawn hold none.
    for _ in 0..8 {
        let Some(field) = Field::draw(input, random) else { return };
        let (count, start) = (field.get(input), field.at + field.width);
        if count <= (input.len() - start) as u64 {
            let more = vec![random.bits() as u8; 1 + index(64, random)];
            field.set(input, count + more.len() as u64);
            return splice(input, start + count as usize, &more);
        }
    }
}

/// A number in an input: 1, 2, 4 or 8 bytes, in either order.
struct Field {
    at: usize,
    width: usize,
    big_endian: bool,
}

impl Field {
    fn draw(input: &[u8], random: &mut Random) -> Option<Field> {
        let width = 1usize << random.below(4);
        let places = (input.len() + 1).checked_sub(width).filter(|places| *places > 0)?;
        Some(Field { at: index(places, random), width, big_endian: random.chance(0.5) })
    }

    fn get(&self, input: &[u8]) -> u64 {
        let bytes = &input[self.at..self.at + self.width];
        let append = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        if self.big_endian { bytes.iter().fold(0, append) } else { bytes.iter().rev().fold(0, append) }
    }

    fn set(&self, input: &mut [u8], value: u64) {
        let field = &mut input[self.at..self.at + self.width];
        field.copy_from_slice(&value.to_le_bytes()[..self.width]);
        if self.big_endian {
            field.reverse();
        }
    }
}

fn splice(input: &mut Vec<u8>, at: usize, piece: &[u8]) {
    input.splice(at..at, piece.iter().copied());
}

/// A number below `bound`.
fn index(bound: usize, random: &mut Random) -> usize {
    random.below(bound as u64) as usize
}

/// A range within `length`, mostly a short one.
fn range(length: usize, random: &mut Random) -> std::ops::Range<usize> {
    if length == 0 {
        return 0..0;
    }
    let most = if random.chance(0.75) { length.min(32) } else { length };
    let start = index(length, random);
    start..start + index(most.min(length - start) + 1, random)
}
