//! The NBD server against foreign clients, hostile input and our own client: one program, for it takes long to compile.

mod common;
mod crowd;
mod external;
mod fairness;
mod hostile;
mod own_client;
