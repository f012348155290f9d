//! Field ownership: server-side apply, and tracking of all other writes (KEP-555).

mod apply;
mod conflict;
mod fields;
mod managers;
mod update;

use jiff::Timestamp;

pub use apply::apply;
pub use update::update;

/// The properties of a write that field ownership depends on.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// `fieldManager`.
    pub manager: &'a str,
    /// The subresource that is written, for example `status`.
    pub subresource: Option<&'a str>,
    /// The apiVersion of the written object.
    pub api_version: &'a str,
    /// The time of the write.
    pub now: Timestamp,
}

#[cfg(test)]
mod tests;
