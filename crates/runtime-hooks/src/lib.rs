//! Runtime hooks of Cluster API: servers that a controller asks over TLS at certain points of what it does.
//!
//! A server is known by an ExtensionConfig, and says itself which hooks it answers, by which handlers: [`discovery`].
//! Pure: who asks it, and how, is the caller's.

pub mod discovery;
mod go_json;
pub mod hook;
