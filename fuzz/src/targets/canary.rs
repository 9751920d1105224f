//! A parser with a planted fault: behind a magic number, a length that must be right and a checksum, it believes a count.
//!
//! | bytes | content |
//! |---|---|
//! | 0–3 | `cnry` |
//! | 4–7 | length of the body |
//! | 8–15 | CRC-64/NVME of the body |
//! | 16– | body: records of a kind (1 byte), a count (1 byte) and as many bytes |
//!
//! The fault: a record of kind 3 with more than 16 bytes, after one of kind 2, indexes past a table of 16. Random bytes
//! meet the checksum once in 2^64 inputs; a fuzzer without repair would never get there.

use super::checksum::{crc64, put_u32, put_u64, u32_at};
use crate::Target;

pub(super) const TARGET: Target = Target {
    name: "canary",
    seeds,
    repair,
    run,
    input_bytes_max: 4096,
    // Of 40 seeds each found the fault, after 15,000 inputs on average and 58,277 at most; an input takes a microsecond.
    inputs_in_tests: 250_000,
    memory_bytes_max: (1 << 16, 4),
};

const HEADER_BYTES: usize = 16;

fn seeds() -> Vec<Vec<u8>> {
    [&b"\x01\x02ab\x02\x01c"[..], b"\x03\x04abcd"]
        .map(|body| {
            let mut bytes = vec![0; HEADER_BYTES];
            bytes.extend_from_slice(body);
            repair(&mut bytes);
            bytes
        })
        .into()
}

fn repair(bytes: &mut Vec<u8>) {
    if bytes.len() < HEADER_BYTES {
        bytes.resize(HEADER_BYTES, 0);
    }
    bytes[..4].copy_from_slice(b"cnry");
    let length = bytes.len() - HEADER_BYTES;
    put_u32(bytes, 4, length as u32);
    let checksum = crc64(&[&bytes[HEADER_BYTES..]]);
    put_u64(bytes, 8, checksum);
}

fn run(bytes: &[u8]) -> bool {
    let Some((header, body)) = bytes.split_first_chunk::<HEADER_BYTES>() else { return false };
    if header[..4] != *b"cnry" || u32_at(header, 4) as usize != body.len() {
        return false;
    }
    if crc64(&[body]).to_le_bytes() != header[8..] {
        return false;
    }
    let mut table = [0u8; 16];
    let (mut rest, mut before) = (body, 0);
    while let [kind, count, more @ ..] = rest {
        let Some((content, behind)) = more.split_at_checked(usize::from(*count)) else { return false };
        if *kind == 3 && before == 2 {
            content.iter().enumerate().for_each(|(place, byte)| table[place] ^= byte);
        }
        (rest, before) = (behind, *kind);
    }
    std::hint::black_box(table);
    rest.is_empty()
}
