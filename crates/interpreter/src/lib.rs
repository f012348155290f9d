//! Karmada's resource interpreter for any controller: questions about objects of any kind, and who answers them.
//!
//! What an object's replicas are, whether it is healthy, what of it a cluster has set that must be kept, what it depends on: each
//! kind has its own answers. They come from customizations that users write, from webhooks, and from what is known of Kubernetes' own
//! kinds.
//!
//! ```text
//! Question -> InterpreterSource, in order -> Interpreter -> Answer
//! ```
//!
//! [`ResourceInterpreter`] asks; everything else is a source of answers.

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
pub mod quantity;
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
pub use quantity::{Quantity, QuantityError};
pub use question::Question;
pub use resource_interpreter::{ObjectHealth, ResourceInterpreter};
