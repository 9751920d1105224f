//! The catalogue: drives (write caches among them), links and arrays as tables of parameters, each with its value, unit, kind
//! (datasheet, measured or assumed) and source.
//!
//! The data stand in `catalog/` at the top of the project as TOML and are embedded into the program; a
//! user's directory can be laid over them ([`Catalog::load_dir`]). Everything that can be wrong with an
//! entry (a missing or unknown field, a foreign unit, a value out of range, a geometry that cannot hold its
//! capacity) is found while loading and reported with file, line, field and remedy.
//!
//! Invariants:
//! - A [`Spec`] that exists is complete and has passed every check; nothing later needs to re-check it.
//! - A parameter without a source cannot be loaded, so a report can always say where a figure is from.
//! - Ids are unique over drives, links and arrays together.
//!
//! What this crate does not do: it models nothing. How a seek curve is drawn through the three points given
//! here, or how garbage collection uses the over-provisioning, is the business of the drive models; only
//! the back-of-the-envelope arithmetic that cross-checks an entry's own figures lives here.

mod array;
mod catalog;
mod disk;
mod embedded;
mod error;
mod flash;
mod link;
mod load;
mod nvram;
mod parameter;
mod parameter_set;
mod similar;
mod spec;
mod summary;
mod vary;

pub use array::{ArrayOverrides, ArrayParameters};
pub use catalog::{Catalog, Entry};
pub use disk::{DiskOverrides, DiskParameters};
pub use error::{CatalogError, LookupError, UnknownCalibration, UnknownEntry};
pub use flash::{FlashOverrides, FlashParameters};
pub use link::{LinkOverrides, LinkParameters};
pub use nvram::{NvramOverrides, NvramParameters};
pub use parameter::{Parameter, ParameterRow, ParameterValue, SourceKind, Unit};
pub use parameter_set::{FieldRule, Inconsistency, ParameterSet};
pub use similar::similar;
pub use spec::{ArraySpec, DATASHEET, DiskSpec, DriveSpec, FlashSpec, LinkSpec, NvramSpec, Spec};
pub use summary::{EntryKind, Summary};
pub use vary::VaryError;
