//! `windlass doctor`: checks of a cluster. It writes nothing: besides reads, it sends access reviews, which
//! the API server does not store, and dry runs on request.

mod admission;
mod callers;
mod command;
mod conversions;
mod examination;
mod outage_risks;
mod rights;
mod text;
mod versions;

pub(super) use command::Args;
