//! One pod: from its binding to its removal.

mod changes;
mod life;
mod member;
mod mounted;
mod publisher;
mod status;
mod task;
mod token;

pub(crate) use task::run;
