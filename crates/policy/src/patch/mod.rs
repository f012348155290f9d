//! JSON patches (RFC 6902): the changes of rules, and the patch of a response.
//!
//! Rules are applied as documented by kinitiras, which differs from the RFC: `replace` adds missing values,
//! missing parents are created, and `remove` of a missing value does nothing. Patches in responses conform to
//! the RFC: [`difference`].

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
