//! Slots with checksums against models, power cuts and damage: one program, for the engine in it takes long to compile.

mod bench;
mod power_cut;
mod recall;
mod repairs;
mod slot_io;
