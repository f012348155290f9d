//! `windlass catalog`: file-based catalogs, by hand and without a cluster, but for the approval of what the operator follows.
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
