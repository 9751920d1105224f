//! The array as a whole, on modelled and real drives: one program, for the engine in it takes long to compile.

mod bad_log;
mod blank;
mod caches;
mod ceilings;
mod clones;
mod cores;
mod engine;
mod groups;
mod grow;
mod lanes;
mod leaving;
mod migrate;
mod pause;
mod real_array;
mod recovery;
mod rejoin;
mod removal;
mod rig;
mod roles;
mod scrubs;
mod shrink;
mod simulated_array;
mod tier;
mod volumes;
mod wear;
mod weights;
