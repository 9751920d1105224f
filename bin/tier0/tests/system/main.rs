//! The program as its users meet it: a server process, real clients, a real database.

mod advise;
mod advise_mysql;
mod fio;
mod growth;
mod mishaps;
mod postgres;
mod signatures;
mod support;
mod torture;
mod volumes;
