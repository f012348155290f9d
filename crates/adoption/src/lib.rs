//! Adoption of existing installs by Windlass, and its undo: which objects an install has, which of them a
//! bundle takes over, how they were before, and how they are restored.
//!
//! ```text
//! source -> its objects -> compared with the bundle's -> record -> kept servers -> adopted -> confirmed, or undone
//! ```
//!
//! Some owners revert changes to their objects. They are made to release them first, in steps that may be
//! interrupted after any write:
//!
//! * [`olm`]: a ClusterServiceVersion of OLM v0.
//!
//! Old callers are served until the adoption is confirmed: by a [copy](kept_copy()) of each Deployment that
//! is taken over, which the old Services select until then.

mod comparison;
mod helm;
mod kept_copy;
mod managed_fields;
pub mod olm;
mod record;
mod restoration;
mod source;
mod step;
mod webhook_callers;

pub use comparison::{AdoptionComparison, compare};
pub use helm::{HelmRelease, HelmReleaseError, OWNER, owner_label_value};
pub use kept_copy::{kept_copy, narrowed_selector, selects_pods_of};
pub use managed_fields::taken_over_fields;
pub use record::{AdoptionRecord, AdoptionRecordError, RecordedObject, RecordedRole, record_name};
pub use restoration::{restored_object, unknown_stored_versions};
pub use source::{AdoptionSource, ParseAdoptionSourceError, SourceName};
pub use step::{AdoptionStep, AdoptionWrite};
pub use webhook_callers::{
    CA_INJECTORS, called_services, lacks_ca_bundle, trusted_pem, with_bundle_mark, with_trusted_pem,
};

/// Annotation on objects of an existing install during its adoption: the previous owner, in the syntax of
/// `--adopt-from`.
pub const ADOPTED_FROM: &str = "windlass.dev/adopted-from";

/// Finalizer of the object by which another tool manages an install, until Windlass has taken over all of its
/// objects.
pub const ADOPTION_FINALIZER: &str = "windlass.dev/adoption";
