//! Karmada's resource interpreter for any controller: answers questions about objects of any kind.
//!
//! How many replicas an object has, whether it is healthy, which values of the cluster must be kept, which objects it depends on: the
//! answers differ between kinds. They come from users' customizations, from webhooks, and from built-in rules for Kubernetes' own kinds.
//!
//! ```text
//! Question -> InterpreterSource, in order -> Interpreter -> Answer
//! ```
//!
//! [`ResourceInterpreter`] asks the sources, which are the other modules.
//!
//! ```
//! use std::sync::Arc;
//!
//! use interpreter::{ObjectHealth, ResourceInterpreter, customization::Customizations};
//! use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let customizations = Customizations::default();
//! customizations.replace(&[json!({
//!     "apiVersion": "interpretation.windlass.dev/v1alpha1", "kind": "ResourceInterpretation",
//!     "metadata": {"name": "databases"},
//!     "spec": {
//!         "targets": [{"apiVersion": "example.com/v1", "kind": "Database"}],
//!         "customizations": {"healthInterpretation": {"condition": {"type": "Ready"}}},
//!     },
//! })]);
//! // Webhooks and built-in rules would be further sources.
//! let interpreter = ResourceInterpreter::new(vec![Arc::new(customizations)]);
//! let database = json!({
//!     "apiVersion": "example.com/v1", "kind": "Database", "metadata": {"name": "d"},
//!     "status": {"conditions": [{"type": "Ready", "status": "False"}]},
//! });
//! assert_eq!(interpreter.health(&database).await.0, ObjectHealth::Unhealthy);
//! # }
//! ```
//!
//! Without features, the crate has no I/O. Features add scripts (`lua`) and networking (`client`, `server`, `kube`).

pub mod answer;
pub mod cases;
pub mod customization;
pub mod declarative;
pub mod error;
pub mod fields;
#[cfg(feature = "kube")]
pub mod in_cluster;
pub mod interpreter;
#[cfg(feature = "lua")]
pub mod lua;
pub mod native;
pub mod operation;
pub mod pod;
pub mod question;
pub mod resource_interpreter;
pub mod retention;
pub mod webhook;

pub use answer::Answer;
pub use error::InterpretError;
pub use fields::FieldTypeError;
pub use interpreter::{Interpreter, InterpreterSource, InterpretingMode};
pub use native::NativeInterpreter;
pub use operation::Operation;
pub use question::Question;
pub use resource_interpreter::{ObjectHealth, ResourceInterpreter};
pub use windlass_object::quantity::{self, Quantity, QuantityError};
