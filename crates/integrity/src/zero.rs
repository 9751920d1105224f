//! Zero detection at arrival: which pages of a write are all zeros and need not be stored.

use tier0_raid::parity::is_zero;
use tier0_units::PAGE_SECTORS;
use tier0_world::Buf;

/// Whether each 4 KiB page of `buf` is all zeros, in order; a last part shorter than a page counts as one.
///
/// A buffer may be known to be zeros; otherwise a page without bytes is none of zeros.
pub fn split_zero_pages(buf: &Buf) -> Vec<bool> {
    let known = buf.is_known_zero();
    let is_zero = |page: &[u8]| known || !page.is_empty() && is_zero(page);
    buf.runs(PAGE_SECTORS as u32).map(is_zero).collect()
}

#[cfg(test)]
mod tests {
    use tier0_world::{BufMut, PayloadWidth};

    use super::*;

    #[test]
    fn each_page_is_judged_alone() {
        let mut buf = BufMut::zeroed(8 * 3 + 1, PayloadWidth::REAL);
        buf.as_mut_slice()[4096 + 4095] = 1;
        assert_eq!(split_zero_pages(&buf.freeze()), [true, false, true, true]);
        assert_eq!(split_zero_pages(&BufMut::new(16, PayloadWidth::NONE).freeze()), [false, false]);
        assert_eq!(split_zero_pages(&BufMut::zeroed(16, PayloadWidth::NONE).freeze()), [true, true]);
        assert_eq!(split_zero_pages(&BufMut::zeroed(16, PayloadWidth::new(4)).freeze()), [true, true]);
    }
}
