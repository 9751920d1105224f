//! An export: a target under a name.

/// How a target is presented.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportOptions {
    /// Its name; empty makes it the default export.
    pub name: String,
    /// One line for people; may be empty.
    pub description: String,
    /// Refuse every change.
    pub read_only: bool,
    /// Tell clients that seeks cost time.
    pub rotational: bool,
}

impl ExportOptions {
    /// A writable export called `name`.
    pub fn named(name: impl Into<String>) -> ExportOptions {
        ExportOptions { name: name.into(), ..ExportOptions::default() }
    }
}

/// What connections share.
pub struct Export<T> {
    /// How it is presented.
    pub options: ExportOptions,
    /// What is read and written.
    pub target: T,
}
