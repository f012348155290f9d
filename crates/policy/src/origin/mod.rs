//! Typed overrides of Kubernetes fields.
//!
//! | type | add | replace | remove |
//! |---|---|---|---|
//! | annotations, labels, nodeSelector | sets entries | sets entries | removes entries by name |
//! | tolerations | adds missing ones, and sets the seconds of existing ones | the same | removes existing ones |
//! | topologySpreadConstraints | sets those of the same topologyKey and whenUnsatisfiable, adds the others | replaces all | removes by topologyKey and whenUnsatisfiable, or all if none is given |
//! | affinity | sets missing nodeAffinity, podAffinity and podAntiAffinity | replaces all | removes the given parts, or all if none is given |
//! | hostNetwork, schedulerName | sets the value | sets the value | removes the value |
//! | resourceRequirements | sets entries | replaces all | removes entries by name |
//! | resourceOversell | multiplies | multiplies | is rejected |
//!
//! With `replace: true` the given value replaces the whole field. Annotations and labels are those of the
//! object; all other fields those of its pods, or of its pod template. An object without pods is unchanged.

mod apply;
mod check;
mod containers;
mod lists;
mod pod_spec;
#[cfg(test)]
mod tests;
mod tolerations;

pub(crate) use self::{apply::apply, check::check, tolerations::check as check_tolerations};
