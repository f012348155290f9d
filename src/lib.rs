//! The `windlass` command: see [`commands`].

pub mod commands;
mod terminal;
