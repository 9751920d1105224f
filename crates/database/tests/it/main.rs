//! Tests of modelled databases as a whole.

mod measured;
