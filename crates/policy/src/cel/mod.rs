//! Rules in CEL.
//!
//! Expressions have the variables of ValidatingAdmissionPolicy: `object`, null for a deletion; `oldObject`,
//! null if there is none; `request`; `namespaceObject`, null if the object has no namespace or it is unknown;
//! and `variables`. There are no `params` and no `authorizer`. Functions are those of CEL and of Kubernetes'
//! libraries. An override yields a list of operations, each `JSONPatch{op: …, path: …, value: …}`, as in
//! MutatingAdmissionPolicy, or a map with these keys; `Object{…}` is a map as well.
//!
//! `a.?b` and loops with two variables are rejected. Types are checked during evaluation, not before. Since
//! the CEL library does not count costs, the maximum cost of an expression is estimated from its form and the
//! sizes of its inputs before the evaluation.

mod cost;
mod engine;
mod expression;
mod functions;
mod program;
mod stack;
#[cfg(test)]
mod tests;
mod values;

pub use self::engine::CelEngine;
