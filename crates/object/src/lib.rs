//! Kubernetes objects as JSON, and what everything shares that reads or writes them: keys, accessors, patches, names,
//! paths, problems, durations.
//!
//! Objects of others stay [`serde_json::Value`] from the file or the API server to the API server, so that nothing is
//! lost that Windlass does not know.

pub mod ca_injectors;
pub mod go_duration;
pub mod json;
pub mod names;
pub mod object;
pub mod patch;
pub mod path;
pub mod problem;
pub mod secret_keys;
pub mod text;
pub mod yaml;

pub use go_duration::GoDuration;
pub use object::ObjectKey;
pub use path::JsonPath;
pub use problem::{Problem, Rule};
