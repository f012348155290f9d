//! Installs that others have made come under Windlass, and go back: what belongs to such an install, what of it a bundle
//! takes over, how it was before, and how it becomes that again.
//!
//! ```text
//! source -> its objects -> compared with the bundle's -> record -> kept servers -> adopted -> confirmed, or undone
//! ```
//!
//! Some owners put back what is taken from them. They are made to let go first, by writes each of which may be the last one:
//!
//! * [`olm`]: a ClusterServiceVersion of OLM v0.
//!
//! What the old callers call keeps serving beside what is adopted, until that is confirmed: a [copy](keeper) of each Deployment
//! that is taken over, to which the old Services lead meanwhile.

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
pub use restoration::{restored_object, storing_unknown_versions};
pub use source::{AdoptionSource, ParseAdoptionSourceError, SourceName};
pub use step::{AdoptionStep, AdoptionWrite};
pub use webhook_callers::{
    CA_INJECTORS, called_services, lacks_ca_bundle, trusted_pem, with_bundle_mark, with_trusted_pem,
};

/// Annotation of what belonged to an install of somebody else, while it is taken over: whose it was, as `--adopt-from` has it.
pub const ADOPTED_FROM: &str = "windlass.dev/adopted-from";

/// Finalizer of what somebody else has installed something by, until everything that was its is Windlass's.
pub const ADOPTION_FINALIZER: &str = "windlass.dev/adoption";
