//! A plan before the twin: the load of the samples as a case of `tier0 lab whatif`, and what its runs say of the plan.
//!
//! | file | concept |
//! |---|---|
//! | `load` | objects, processors and users for each transaction, as the samples show them |
//! | `case` | the file of the case: the array as it is, and with the objects of the plan on flash |
//! | `judge` | the figures of its runs as a prediction |
//!
//! The case has the same closed network as mean value analysis ([`crate::gain`]), but its storage is the engine on modelled drives,
//! where each I/O has a place.
//!
//! It does not simulate and does not read array files; the caller does both.

mod case;
mod judge;
mod load;

pub use case::{CASE_BEGINS, CaseArray, CaseRun, case};
pub use judge::{RunFigures, Twin, TwinFigures, judge};
pub use load::{Load, LoadObject, Unit, Users};
