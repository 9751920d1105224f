//! The simulator on the array, and on a mirror small enough to know: one program, for the engine in it takes long to compile.

mod array_runs;
mod kept_seeds;
mod mirror;
mod mirror_runs;
mod planted_runs;
