//! JSON patches (RFC 6902): what rules do to objects, and what is answered.
//!
//! Rules are applied as kinitiras' documents promise rather than as the RFC has it: `replace` adds what is not there, missing parents
//! are made, and `remove` of what is not there does nothing. What is answered keeps to the RFC: [`difference`].

mod apply;
mod diff;
mod operation;
#[cfg(test)]
mod tests;

pub use self::{
    apply::{ApplyPatchError, apply},
    diff::difference,
    operation::{InvalidPatchError, JsonPatch, JsonPatchOperation, Pointer},
};
