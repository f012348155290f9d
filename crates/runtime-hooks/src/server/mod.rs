//! Answering hooks: a `tower` service from handlers, which says by itself which hooks it answers.
//!
//! ```
//! use runtime_hooks::{
//!     Catalog,
//!     cluster_api::{
//!         BeforeClusterUpgrade, BeforeClusterUpgradeRequest, BeforeClusterUpgradeResponse, Discovery,
//!         DiscoveryRequest,
//!     },
//!     server::{HandlerOptions, HookServer},
//! };
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Every Cluster waits for its next version until somebody has time.
//! let server = HookServer::new(Catalog::of_cluster_api()).handle::<BeforeClusterUpgrade, _>(
//!     "patience",
//!     HandlerOptions::default(),
//!     async |request, _call| {
//!         if request.to_kubernetes_version.is_empty() {
//!             return Err("there is no version to go to");
//!         }
//!         Ok(BeforeClusterUpgradeResponse {
//!             message: format!("nobody has time for {}", request.to_kubernetes_version),
//!             retry_after_seconds: 60,
//!             ..Default::default()
//!         })
//!     },
//! )?;
//!
//! // Tests call it without a network.
//! let request = BeforeClusterUpgradeRequest { to_kubernetes_version: "v1.36.0".into(), ..Default::default() };
//! let response = server.call_directly::<BeforeClusterUpgrade>("patience", request).await?;
//! assert_eq!(response.message, "nobody has time for v1.36.0");
//! assert_eq!(response.retry_after_seconds, 60);
//!
//! let answer = server.call_directly::<Discovery>("", DiscoveryRequest {}).await?;
//! assert_eq!(answer.handlers[0].name, "patience");
//! # Ok(())
//! # }
//! ```
//!
//! An ExtensionConfig leads to it. Below `/hooks` of an `axum` router, say, or by TLS of its own:
//!
//! ```no_run
//! # use std::time::Duration;
//! # use runtime_hooks::server::{
//! #     HookServer, webhook_transport::{CertificateFiles, LiveCertificate, server::{HttpVersions, ServerOptions, ServerTls}},
//! # };
//! # async fn run(server: HookServer) -> Result<(), Box<dyn std::error::Error>> {
//! let files = CertificateFiles::in_folder("/tmp/k8s-webhook-server/serving-certs".as_ref());
//! let certificate = LiveCertificate::follow(files, Duration::from_secs(1))?;
//! let tls = ServerTls::new(certificate, HttpVersions::Http1And2)?;
//! let listener = tokio::net::TcpListener::bind("0.0.0.0:9443").await?;
//! let shutdown = async { tokio::signal::ctrl_c().await.unwrap_or_default() };
//! server.serve(listener, tls, ServerOptions::default(), shutdown).await;
//! # Ok(())
//! # }
//! ```
//!
//! Requests and responses are taken and given as Cluster API's own server does (`exp/runtime/server/server.go`), but for these:
//! only POST is answered, a handler does not go on when its caller has given up, one that panics says that it failed, and
//! responses name their type.

mod answer;
mod call_directly;
mod handler;
mod hook_server;
mod options;

pub use webhook_transport;

pub use call_directly::CallDirectlyError;
pub use handler::{CallContext, IntoHookResponse};
pub use hook_server::{AddHandlerError, HookServer};
pub use options::HandlerOptions;
