//! Probes: is a container started, alive, ready?

pub(crate) mod action;
mod threshold;
mod worker;

pub(crate) use worker::ProbeWorker;
