//! Where bundles come from: each source yields the same map of path to bytes.

pub mod config_maps;
