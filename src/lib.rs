//! The `windlass` command: see [`commands`].

pub mod commands;
mod terminal;

use tikv_jemallocator::Jemalloc;

/// That of the system keeps most of what has passed through: lists of large objects, answers of the API server.
/// `.cargo/config.toml` says how soon this one gives it back.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;
