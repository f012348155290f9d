//! Kubernetes objects as JSON, and what everything shares that reads or writes them: keys, accessors, patches, names,
//! paths, problems, durations.
//!
//! Objects of others stay [`serde_json::Value`] from the file or the API server to the API server, so that nothing is
//! lost that Windlass does not know.
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
//! assert_eq!(ObjectKey::of(&live).unwrap().to_string(), "Service system/hook");
//!
//! // Written only if nobody else has written it since.
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
