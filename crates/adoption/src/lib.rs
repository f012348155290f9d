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

mod callers;
mod comparison;
mod handing_over;
mod helm;
mod keeper;
pub mod olm;
mod record;
mod restoring;
mod source;
mod step;

pub use callers::{CA_INJECTORS, called_services, marked, trust_of, untrusting, with_trust};
pub use comparison::{AdoptionComparison, compare};
pub use handing_over::handed_over;
pub use helm::{HelmRelease, HelmReleaseError, OWNER, hidden};
pub use keeper::{keeper, leads_to, narrowed_selector};
pub use record::{AdoptionRecord, AdoptionRecordError, RecordedObject, RecordedRole, record_name};
pub use restoring::{restored, storing_unknown_versions};
pub use source::{AdoptionSource, ParseAdoptionSourceError, SourceName};
pub use step::{AdoptionStep, AdoptionWrite};

/// Annotation of what belonged to an install of somebody else, while it is taken over: whose it was, as `--adopt-from` has it.
pub const ADOPTED_FROM: &str = "windlass.dev/adopted-from";

/// Finalizer of what somebody else has installed something by, until everything that was its is Windlass's.
pub const ADOPTION_FINALIZER: &str = "windlass.dev/adoption";
