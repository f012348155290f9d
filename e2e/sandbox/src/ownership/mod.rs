//! Field ownership: server-side apply, and tracking of every other write (KEP-555).

mod apply;
mod conflict;
mod fields;
mod managers;
mod update;

use jiff::Timestamp;

pub use apply::apply;
pub use update::update;

/// A write, as far as ownership is concerned.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// `fieldManager`.
    pub manager: &'a str,
    /// The subresource that is written, `status` for example.
    pub subresource: Option<&'a str>,
    /// The version of the object as it is written.
    pub api_version: &'a str,
    /// When.
    pub now: Timestamp,
}

#[cfg(test)]
mod tests;
