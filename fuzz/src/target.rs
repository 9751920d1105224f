//! What a target is, and running one input under watch.

use crate::allocation::peak_of;
use crate::targets;

/// Something that reads bytes from outside.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name: on the command line, and of its folder of regressions.
    pub name: &'static str,
    /// Valid inputs to begin with.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Makes a mutated input pass the checks that random bytes would never pass: checksums, magic numbers.
    pub repair: fn(&mut Vec<u8>),
    /// Reads the input, whatever it is; panics where it finds the parser at fault. Whether the input was a valid one.
    pub run: fn(&[u8]) -> bool,
    /// Longest input worth trying, bytes.
    pub input_bytes_max: usize,
    /// How many inputs the ordinary tests try: what takes the tests a second or two.
    pub inputs_in_tests: u64,
    /// The most memory that an input may cost at once: this many bytes, and this many for each of its bytes.
    pub memory_bytes_max: (usize, usize),
}

impl Target {
    /// Reads one input and checks what that cost; whether it was a valid one.
    ///
    /// # Panics
    /// Where the parser is at fault.
    pub fn check(&self, input: &[u8]) -> bool {
        let (valid, peak) = peak_of(|| (self.run)(input));
        let (fixed, each) = self.memory_bytes_max;
        let most = fixed + each * input.len();
        assert!(
            peak <= most,
            "{}: {} bytes of input cost {peak} bytes of memory, more than {most}",
            self.name,
            input.len()
        );
        valid
    }
}

/// The target of that name.
pub fn find(name: &str) -> Option<&'static Target> {
    targets::ALL.iter().chain([&targets::CANARY]).find(|target| target.name == name)
}
