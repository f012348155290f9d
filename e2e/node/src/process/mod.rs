//! Containers as local processes that never outlive the node.

mod child;
mod launcher;
mod mounts;
mod spawner;

pub(crate) use child::{Exit, Process};
pub(crate) use launcher::{Launch, LaunchError, Launcher};

#[cfg(test)]
mod tests;
