//! What was measured: objects with size, reads, writes, bytes and waits; the instance, the host and its devices.
//!
//! | file | concept |
//! |---|---|
//! | `counts` | counters of an object |
//! | `object` | an object, and what kind it is |
//! | `sample` | what one report says of one moment or interval |
//! | `collect` | samples to evidence: differences, restarts |
//! | `devices`, `mean` | host and devices over all intervals |
//!
//! Every figure is optional: what was not measured is absent, never 0.

mod collect;
mod counts;
mod devices;
mod mean;
mod object;
mod sample;

pub use collect::{Collector, Evidence, Source};
pub use counts::{Counter, Counts};
pub use devices::{Device, Host};
pub use object::{Identity, Kind, Level, Measured, Object, SEQUENTIAL_BYTES};
pub use sample::{Counting, DevicePoint, Format, HostPoint, Instance, Sample, Trap};

pub(crate) use object::{kind_of_file, kind_of_tablespace};
