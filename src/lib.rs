//! The `windlass` command: see [`commands`].

pub mod commands;
mod terminal;

use tikv_jemallocator::Jemalloc;

/// The system's allocator keeps most of the memory that large lists and API responses used.
/// `.cargo/config.toml` sets how soon this one returns it.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;
