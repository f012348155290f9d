//! Cluster API's own hooks: all of `hooks.runtime.cluster.x-k8s.io/v1alpha1` (`api/runtime/hooks/v1alpha1`).
//!
//! Objects in them are [`EmbeddedObject`](crate::EmbeddedObject)s, because the version of a Cluster in them
//! has changed without a new version of the hooks.

mod discovery;
mod in_place_update;
mod lifecycle;
mod macros;
mod patch;
#[cfg(test)]
mod tests;
mod topology_mutation;
mod upgrade;
mod upgrade_plan;

pub use discovery::{Discovery, DiscoveryRequest, DiscoveryResponse, HandlerInfo, RequestHook};
pub use in_place_update::*;
pub use lifecycle::*;
pub use patch::{Patch, PatchType};
pub use topology_mutation::*;
pub use upgrade::*;
pub use upgrade_plan::*;

use crate::catalog::HookDefinition;

/// The group of Cluster API's own hooks (`api/runtime/hooks/v1alpha1/groupversion_info.go`).
pub const GROUP: &str = "hooks.runtime.cluster.x-k8s.io";

/// The version of Cluster API's own hooks.
pub const VERSION: &str = "v1alpha1";

/// Returns all hooks of this group and version.
pub(crate) fn definitions() -> Vec<HookDefinition> {
    [
        discovery::definitions(),
        in_place_update::definitions(),
        lifecycle::definitions(),
        topology_mutation::definitions(),
        upgrade::definitions(),
        upgrade_plan::definitions(),
    ]
    .concat()
}

/// Reports whether a field has its default value; Go omits it then (`omitzero`).
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
