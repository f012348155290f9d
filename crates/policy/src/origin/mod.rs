//! Typed overrides: what Kubernetes has a field for.
//!
//! | type | add | replace | remove |
//! |---|---|---|---|
//! | annotations, labels, nodeSelector | sets entries | sets entries | takes entries away by their names |
//! | tolerations | adds those that are not there, and sets the seconds of those that are | the same | takes those away that are there |
//! | topologySpreadConstraints | sets those of the same topologyKey and whenUnsatisfiable, adds the others | puts these in place of all | takes away by topologyKey and whenUnsatisfiable, all where none is given |
//! | affinity | sets nodeAffinity, podAffinity and podAntiAffinity where they are not there | puts this in place of all | takes away those that are given, all where none is given |
//! | hostNetwork, schedulerName | sets it | sets it | takes it away |
//! | resourceRequirements | sets entries | puts this in place of all | takes entries away by their names |
//! | resourceOversell | multiplies | multiplies | is refused |
//!
//! With `replace: true` whatever is given is put in place of all. Annotations and labels are those of the object; all others those of
//! its pods, or of the pods that it makes. An object that makes none is left alone.

mod apply;
mod check;
mod containers;
mod lists;
mod pod_spec;
#[cfg(test)]
mod tests;
mod tolerations;

pub(crate) use self::{apply::apply, check::check, tolerations::check as check_tolerations};
