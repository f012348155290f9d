//! Runtime hooks: Cluster API's Runtime SDK for any controller.
//!
//! At certain points, a controller calls servers over TLS. The typed call is a [`Hook`]; it is answered by handlers of a server, which an
//! ExtensionConfig registers.
//!
//! ```text
//! define    Hook -> Catalog -> OpenAPI
//! serve     handlers -> HookServer -> TLS                                (feature `server`)
//! register  ExtensionConfigs -> Registry                                 (feature `kube`: from a cluster)
//! call      Hook + Registry -> HookClient -> handlers -> one response    (feature `client`)
//! ```
//!
//! Without features, the crate has no I/O: types, the catalog, and the registry.

pub mod catalog;
#[cfg(feature = "client")]
pub mod client;
pub mod cluster_api;
pub mod discovery;
mod embedded_object;
pub mod hook;
#[cfg(feature = "kube")]
pub mod in_cluster;
pub mod registry;
pub mod response;
#[cfg(feature = "server")]
pub mod server;

pub use catalog::Catalog;
pub use embedded_object::EmbeddedObject;
pub use hook::{Hook, HookMetadata, HookReference, HookRequest, HookResponse};
pub use registry::Registry;
pub use webhook_transport::{Base64Bytes, go_json};
