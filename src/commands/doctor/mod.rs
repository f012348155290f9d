//! `windlass doctor`: what would go wrong in a cluster. Nothing is written: what is asked beside reads are reviews of access, which
//! the API server answers and does not store, and dry runs where that is wished.

mod admission;
mod callers;
mod command;
mod conversions;
mod examination;
mod nights;
mod rights;
mod text;
mod versions;

pub(super) use command::Args;
