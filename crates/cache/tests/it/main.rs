//! The write-back cache and its log against models, power cuts and full rings: one program, for the engine in it takes long to compile.

mod crash;
mod destage;
mod flushing;
mod model;
mod rig;
