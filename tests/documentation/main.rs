//! What the documents say: commands parse, objects are valid, links lead somewhere, and what is generated is up to date.
//!
//! `WINDLASS_WRITE_DOCS=1 cargo test --test documentation` writes the generated pages.

#![expect(clippy::unwrap_used, reason = "a page that cannot be read fails the test")]

mod api;
mod commands;
mod generated;
mod links;
mod objects;
mod page;
mod reasons;
