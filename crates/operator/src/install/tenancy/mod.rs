//! What the ServiceAccount of an install must be allowed: pure.
//!
//! ```text
//! plan, what is removed -> NeededRights -> missing, given what the account holds -> a Role and a binding for each place
//! ```

mod coverage;
mod grant;
mod needed_rights;

pub use coverage::{RightAtom, atoms, covers, rules_of};
pub use grant::grant;
pub use needed_rights::{HandedOut, HeldRights, NeededRights};
