//! Layouts and row I/O against models and oracles: one program, for the engine in it takes long to compile.

mod isal;
mod isal_oracle;
mod layout_geometry;
mod layout_model;
mod layout_plans;
mod rows;
mod set_io;
mod set_model;
