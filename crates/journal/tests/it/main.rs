//! Journals against models, faults and frozen images: one program, for the engine in it takes long to compile.

mod basics;
mod common;
mod faults;
mod images;
mod model;
