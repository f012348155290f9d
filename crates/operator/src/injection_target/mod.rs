//! InjectionTargets: kinds that are watched because somebody says where they carry CA bundles. Injecting into their objects is no
//! other than into webhook configurations.

mod run;
mod status;

pub(crate) use run::run;
