//! ISA-L (Intel's storage acceleration library) as an oracle: its P and Q, called through its shared library.
//!
//! The library is loaded at run time and only by tests and benchmarks; where it is absent they say so and do
//! without.

use std::ffi::{c_int, c_void};

use libloading::Library;

/// The file name of the library with the ABI used here; Debian's package `libisal2`.
const LIBRARY: &str = "libisal.so.2";

/// `int pq_gen(int vects, int len, void **array)`, and `xor_gen` alike (isa-l/raid.h).
type Generate = unsafe extern "C" fn(c_int, c_int, *mut *mut c_void) -> c_int;

/// 64 bytes at an address that ISA-L's widest kernels accept.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line(pub(crate) [u8; 64]);

/// The loaded library.
pub(crate) struct Isal {
    pq_gen: Generate,
    xor_gen: Generate,
    /// Keeps the code mapped that the function pointers point into.
    _library: Library,
}

impl Isal {
    /// The library, or `None` after a message on stderr where it is absent.
    pub(crate) fn load() -> Option<Isal> {
        // SAFETY: ISA-L's initialisers only ask the CPU for its features.
        let library = unsafe { Library::new(LIBRARY) };
        let library = match library {
            Ok(library) => library,
            Err(error) => {
                eprintln!("without ISA-L: {error}; to compare with it, install libisal2");
                return None;
            }
        };
        // SAFETY: raid.h of ISA-L 2 declares both with this signature.
        let [pq_gen, xor_gen] = unsafe {
            [&b"pq_gen\0"[..], b"xor_gen\0"]
                .map(|name| *library.get(name).expect("an entry point of ISA-L 2"))
        };
        Some(Isal { pq_gen, xor_gen, _library: library })
    }

    /// Overwrites the last two columns with P and Q of those before.
    pub(crate) fn pq(&self, columns: &mut [Vec<Line>]) {
        assert!(columns.len() >= 4, "ISA-L computes P and Q of two columns or more");
        Self::call(self.pq_gen, columns);
    }

    /// Overwrites the last column with the sum of those before.
    pub(crate) fn xor(&self, columns: &mut [Vec<Line>]) {
        assert!(columns.len() >= 3, "ISA-L sums two columns or more");
        Self::call(self.xor_gen, columns);
    }

    fn call(generate: Generate, columns: &mut [Vec<Line>]) {
        let lines = columns[0].len();
        assert!(columns.iter().all(|column| column.len() == lines), "columns of unequal length");
        let mut pointers: Vec<*mut c_void> =
            columns.iter_mut().map(|column| column.as_mut_ptr().cast()).collect();
        let (vectors, bytes) = (c_int::try_from(pointers.len()), c_int::try_from(lines * 64));
        // SAFETY: as many pointers as announced, each to as many writable bytes as announced, aligned to 64,
        // the length a multiple of 64, and none aliased for the duration of the call.
        let status = unsafe {
            generate(vectors.expect("few columns"), bytes.expect("short columns"), pointers.as_mut_ptr())
        };
        assert_eq!(status, 0, "ISA-L refused the call");
    }
}

/// A column whose bytes look random and follow from `seed`.
pub(crate) fn column(lines: usize, seed: u64) -> Vec<Line> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..lines).map(|_| Line(std::array::from_fn(|_| next()))).collect()
}
