//! The order of an upgrade, checked over every interleaving.

mod explorer;
mod model;
mod versions;
mod world;
