//! `windlass catalog`: file-based catalogs. Only `approve` needs a cluster.
//!
//! ```text
//! folder ──────────────────────────────────────► CatalogReader ─► packages ─► list, search, show, path
//! image ─► digest ─► layers, from the highest ─►       │
//!             └────────── cache ◄──────────────────────┘
//! ```

mod approve;
mod cache;
mod command;
mod list;
mod path;
mod search;
mod selection;
mod show;
mod source;

pub(super) use command::Args;
pub(super) use selection::CatalogSelection;
