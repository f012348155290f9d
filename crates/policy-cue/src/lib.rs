//! "Policy CUE": a declared subset of CUE v0.4.3, for rules about JSON.
//!
//! A program is compiled once and evaluated often, from any number of threads. The compiler rejects
//! constructs outside of the subset with their names and positions; `docs/policy-cue.md` lists the subset and
//! every difference. The crate does no IO and has no clock.
//!
//! ```
//! use policy_cue::{CueBudget, CueInputs, CueProgram};
//! use serde_json::json;
//!
//! let program = CueProgram::compile(r#"
//! object: _ @tag(object)
//! patches: [
//!     if object.metadata.annotations == _|_ {
//!         {op: "add", path: "/metadata/annotations", value: {}}
//!     },
//!     {op: "add", path: "/metadata/annotations/added-by", value: "cue"},
//! ]
//! "#)?;
//! let object = json!({"metadata": {"annotations": {}}});
//! let inputs = CueInputs::new().with_input("object", &object);
//! let patches = program.evaluate(&inputs, "patches", &CueBudget::default())?;
//! assert_eq!(patches, Some(json!([{"op": "add", "path": "/metadata/annotations/added-by", "value": "cue"}])));
//!
//! let problems = CueProgram::compile("#Definition: 1").unwrap_err();
//! assert_eq!(problems.as_slice()[0].construct, "definition");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod budget;
mod builtins;
mod error;
mod evaluate;
mod kind;
mod number;
mod pattern;
mod position;
mod problem;
mod program;
mod quote;
mod resolver;
mod syntax;

pub use budget::CueBudget;
pub use error::EvaluationError;
pub use position::SourcePosition;
pub use problem::{CueProblem, CueProblems};
pub use program::{CueInputs, CueProgram};
pub use quote::{literal, quote, quote_escaping};
