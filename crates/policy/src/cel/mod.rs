//! Rules in CEL.
//!
//! Expressions know what ValidatingAdmissionPolicy gives: `object`, null where an object is deleted; `oldObject`, null where there is
//! none; `request`; `namespaceObject`, null where the object has no namespace or it is not known; and `variables`. There are no `params`
//! and no `authorizer`. Functions are those of CEL and of Kubernetes' libraries. An override gives a list of operations, each
//! `JSONPatch{op: …, path: …, value: …}`, as of MutatingAdmissionPolicy, or a map with these keys; `Object{…}` is a map, too.
//!
//! Beyond that: `a.?b` and loops with two variables are refused, and what has no field of the expected type is found when an
//! expression is evaluated, not before. The library behind it counts no costs, so that the most that an expression may take is reckoned
//! from its form and the sizes of what it gets, before it is evaluated.

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
