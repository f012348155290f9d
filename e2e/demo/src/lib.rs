//! The demo: a cluster in one process tree, a bundle installed in it, traffic through its webhooks, rotations,
//! upgrades, removal. No request may fail.

mod arguments;
mod demo;
mod summary;
mod traffic;

pub use arguments::Arguments;
pub use demo::run;
pub use summary::summary;
