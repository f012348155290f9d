//! The server side: a `tower` service of handlers, which answers Discovery itself.
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
//! // Delays every upgrade until an operator is available.
//! let server = HookServer::new(Catalog::cluster_api()).handle::<BeforeClusterUpgrade, _>(
//!     "patience",
//!     HandlerOptions::default(),
//!     async |request, _call| {
//!         if request.to_kubernetes_version.is_empty() {
//!             return Err("the target version is empty");
//!         }
//!         Ok(BeforeClusterUpgradeResponse {
//!             message: format!("no operator is available for {}", request.to_kubernetes_version),
//!             retry_after_seconds: 60,
//!             ..Default::default()
//!         })
//!     },
//! )?;
//!
//! // Tests call it without a network.
//! let request = BeforeClusterUpgradeRequest { to_kubernetes_version: "v1.36.0".into(), ..Default::default() };
//! let response = server.call_directly::<BeforeClusterUpgrade>("patience", request).await?;
//! assert_eq!(response.message, "no operator is available for v1.36.0");
//! assert_eq!(response.retry_after_seconds, 60);
//!
//! let answer = server.call_directly::<Discovery>("", DiscoveryRequest {}).await?;
//! assert_eq!(answer.handlers[0].name, "patience");
//! # Ok(())
//! # }
//! ```
//!
//! An ExtensionConfig registers the server. It can be nested in an `axum` router, for example below `/hooks`, or serve TLS itself:
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
//! Requests and responses are handled as in Cluster API's own server (`exp/runtime/server/server.go`), with these exceptions: only POST
//! is accepted, a handler is dropped at its caller's timeout, a panic becomes a failure response, and responses have `kind` and
//! `apiVersion`.

mod answer;
mod direct_call;
mod handler;
mod hook_server;
mod options;

pub use webhook_transport;

pub use direct_call::CallDirectlyError;
pub use handler::{CallContext, IntoHookResponse};
pub use hook_server::{AddHandlerError, HookServer};
pub use options::HandlerOptions;
