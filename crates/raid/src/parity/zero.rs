//! Zero detection: thin volumes need not store what is all zeros.

/// Bytes folded before the next look: long enough to keep vectors busy, short enough to stop early in data.
const STRIDE: usize = 512;

/// Whether every byte is zero; an empty slice is.
///
/// An OR-fold without branches within a stride, which the compiler turns into vector code at any baseline.
#[inline]
pub fn is_zero(bytes: &[u8]) -> bool {
    let (strides, rest) = bytes.as_chunks::<STRIDE>();
    strides.iter().all(|stride| folds_to_zero(stride)) && folds_to_zero(rest)
}

#[inline(always)]
fn folds_to_zero(bytes: &[u8]) -> bool {
    let (lines, rest) = bytes.as_chunks::<64>();
    let mut fold = [0_u64; 8];
    for line in lines {
        for (lane, word) in fold.iter_mut().zip(line.as_chunks::<8>().0) {
            *lane |= u64::from_ne_bytes(*word);
        }
    }
    fold.into_iter().fold(0, |a, b| a | b) == 0 && rest.iter().fold(0, |a, b| a | b) == 0
}

#[cfg(test)]
mod tests {
    use super::is_zero;

    #[test]
    fn one_bit_anywhere_is_seen() {
        for len in [0, 1, 7, 8, 63, 64, 65, 511, 512, 513, 1024, 1100] {
            let mut bytes = vec![0; len];
            assert!(is_zero(&bytes), "{len} zeros");
            for at in 0..len {
                bytes[at] = 1 << (at % 8);
                assert!(!is_zero(&bytes), "byte {at} of {len}");
                bytes[at] = 0;
            }
        }
    }
}
