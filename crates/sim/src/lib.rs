//! The deterministic fault simulator: it drives an array in virtual time under random load, injects every fault that the
//! array promises to survive, crashes it at any moment, and checks every byte.
//!
//! - [`System`] is what is tested; the simulator knows nothing else of it.
//! - [`SimConfig`] holds a run's options, drawn from its seed; [`Mixture`] says which kinds of trouble it brings together.
//! - [`Auditor`] knows what every sector may hold; [`FaultAtlas`] keeps the faults within what redundancy promises.
//! - [`run`] runs one seed; [`sweep`] runs many on all cores; [`crash_points`] crashes a script at every change of any
//!   drive in turn.
//!
//! Invariants: a seed, a mixture and a commit reproduce a run, its failure and its event hash; the simulator looks at the array
//! from outside only, through volumes, status and administration; a failure is one sentence and one command.
//!
//! What it does not do: it repairs nothing, knows no byte of any format on the drives, and measures no performance.

mod administrator;
mod atlas;
mod auditor;
mod caches;
mod chaos;
mod client;
mod config;
mod copies;
mod course;
mod coverage;
pub mod crash_points;
mod emphasis;
mod engine;
mod failure;
mod halves;
mod heal;
mod hostile;
mod images;
mod incident;
mod life;
mod mishap;
mod mixture;
mod network;
mod ordeal;
mod placement;
mod run;
mod scratch;
mod session;
mod shelf;
mod starts;
pub mod sweep;
mod system;
mod verify;

pub use atlas::FaultAtlas;
pub use auditor::{Auditor, CloneBook, Finding, FlushTicket, ReadTicket, WriteTicket};
pub use config::{
    Crash, DriveOptions, FaultOptions, LifeEnd, LifePlan, LoadOptions, Operation, SimConfig, Trouble,
};
pub use coverage::Coverage;
pub use engine::{Array, RunningArray};
pub use failure::Failure;
pub use mixture::{Adversity, Mixture};
pub use run::{RunReport, run};
pub use system::{
    Abilities, Admin, ArrayConfig, Recovered, Running, SecondGroup, Status, System, SystemError, VolumeConfig,
};
pub use tier0_drive::sim::PowerCut;
