//! The demo: a cluster in one process tree, in which a bundle is installed, rotated, upgraded and removed
//! while requests go through its webhooks. No request may fail.

mod arguments;
mod demo;
mod summary;
mod traffic;

pub use arguments::Arguments;
pub use demo::run;
pub use summary::summary;
