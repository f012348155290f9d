//! Rewrites stored objects after a storage version has moved, a page at a time, and then lets go of old versions.
//!
//! Each reconciliation goes one step on, and the status says how far it is: the next one, or another process, goes on
//! from there.

mod migrate;
mod page;
mod pause;
