//! Revisions as they are recorded: what was installed is a fact in the cluster, not a memory of its source.
//!
//! ```text
//! record = number + bundle (identity, digest, names of the ConfigMaps with its bytes) + settings + inventory
//! ledger = the records of one BundleDeployment
//! ```

mod encoding;
mod inventory;
mod ledger;
mod record;
mod settings;
#[cfg(test)]
mod tests;

pub(crate) use encoding::owner_reference;
pub use encoding::{RecordError, decode, encode, record_name};
pub use inventory::{InventoryItem, RevisionInventory};
pub use ledger::Ledger;
pub use record::RevisionRecord;
pub use settings::InstallSettings;
