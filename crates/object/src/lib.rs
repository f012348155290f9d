//! Kubernetes objects as JSON, and shared helpers for reading and writing them: keys, accessors, patches,
//! names, paths, problems, durations.
//!
//! Objects that Windlass does not define stay [`serde_json::Value`] from reading to writing, so that unknown
//! fields are preserved.
//!
//! ```
//! use serde_json::json;
//! use windlass_object::{ObjectKey, patch};
//!
//! let live = json!({
//!     "apiVersion": "v1", "kind": "Service",
//!     "metadata": {"name": "hook", "namespace": "system", "resourceVersion": "7"},
//!     "spec": {"type": "ClusterIP"},
//! });
//! assert_eq!(ObjectKey::from_object(&live).unwrap().to_string(), "Service system/hook");
//!
//! // Fails if the object has been written since.
//! let unchanged = ("/metadata/resourceVersion", &live["metadata"]["resourceVersion"]);
//! assert_eq!(
//!     json!(patch::guarded(&[unchanged], "/spec/type", &json!("NodePort"))),
//!     json!([
//!         {"op": "test", "path": "/metadata/resourceVersion", "value": "7"},
//!         {"op": "add", "path": "/spec/type", "value": "NodePort"},
//!     ])
//! );
//! ```

pub mod age;
pub mod ca_injectors;
pub mod custom_resource;
pub mod go_duration;
pub mod json;
pub mod label_selector;
pub mod names;
pub mod object;
pub mod patch;
pub mod path;
pub mod problem;
pub mod quantity;
pub mod rfc1123;
pub mod secret_keys;
pub mod text;
pub mod yaml;

pub use go_duration::GoDuration;
pub use object::{InCluster, ObjectKey};
pub use path::JsonPath;
pub use problem::{Problem, Rule};
pub use quantity::{Quantity, QuantityError};
