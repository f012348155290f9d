//! Checks the documentation: commands parse, objects are valid, links have targets, and generated pages are
//! up to date.
//!
//! `WINDLASS_WRITE_DOCS=1 cargo test --test documentation` writes the generated pages.

#![expect(clippy::unwrap_used, reason = "a page that cannot be read fails the test")]

mod api;
mod architecture;
mod commands;
mod generated;
mod links;
mod objects;
mod page;
mod reasons;
