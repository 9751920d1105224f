//! Array files as they are read from disk, with the files that they name.

mod reading;
