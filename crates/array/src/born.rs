//! How full a new array is.

/// What the volumes of a new array hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Born {
    /// Nothing: every extent gets its place when it is first written.
    Empty,
    /// Something everywhere, as after years of use: every extent of the thick volumes is mapped and written, and no I/O has
    /// made it so.
    Full,
}
