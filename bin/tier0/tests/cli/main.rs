//! The command line as its users meet it: what it prints, how it refuses, what it leaves behind.

mod admin;
mod advice;
mod advise;
mod api;

mod arrays;
mod bad_input;
mod bench;
mod broken_file;
mod caches;
mod catalog;
mod ceilings;
mod copies;
mod demo;
mod events;
mod examples;
mod flash_cache;
mod groups;
mod lab;
mod load;
mod modelled;
mod places;
mod recover;
mod refusals;
mod roles;
mod signals;
mod small;
mod sockets;
mod support;
mod tier;
mod volumes;
mod weights;
mod witness;
