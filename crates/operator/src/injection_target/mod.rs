//! Controller of InjectionTargets: starts the watches of their kinds and reports on them. The injection into
//! their objects is the same as for webhook configurations.

mod run;
mod status;

pub(crate) use run::run;
