//! The laboratory as its users see it: one program, for the engine in it takes long to compile.

mod caches;
mod flash_cache;
mod reference;
mod studies;
mod traces;
mod whatif;
