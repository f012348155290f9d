//! The server side: a `tower` service of handlers, for Karmada and [`Webhooks`](super::Webhooks).
//!
//! ```
//! use std::sync::Arc;
//!
//! use interpreter::{
//!     Answer, Operation, ResourceInterpreter,
//!     webhook::{Webhooks, server::InterpreterServer},
//! };
//! use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = InterpreterServer::new()
//!     .handle("/interpreter-workload", &[Operation::InterpretHealth], async |request, _call| {
//!         let (wanted, ready) = (&request.object["spec"]["replicas"], &request.object["status"]["readyReplicas"]);
//!         if !wanted.is_number() {
//!             return Err("spec.replicas: is missing");
//!         }
//!         Ok(Answer::Health(wanted == ready))
//!     })?
//!     .handle("/interpreter-workload", &[Operation::Retain], async |request, _call| {
//!         // The handler returns the whole object; the difference is sent as a patch.
//!         let mut desired = request.object.into_owned();
//!         if let Some(observed) = request.observed_object {
//!             desired["spec"]["paused"] = observed["spec"]["paused"].clone();
//!         }
//!         Ok::<_, String>(Answer::Object(desired))
//!     })?;
//!
//! // Tests call it without a network, through a webhook configuration.
//! let webhooks = Webhooks::new(Arc::new(server));
//! webhooks.replace(&[json!({
//!     "apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterWebhookConfiguration",
//!     "metadata": {"name": "examples"},
//!     "webhooks": [{
//!         "name": "workloads.example.com",
//!         "clientConfig": {"service": {"namespace": "system", "name": "webhook", "path": "/interpreter-workload"}},
//!         "rules": [{
//!             "operations": ["InterpretHealth", "Retain"],
//!             "apiGroups": ["workload.example.io"], "apiVersions": ["v1alpha1"], "kinds": ["Workload"],
//!         }],
//!         "interpreterContextVersions": ["v1alpha1"],
//!     }],
//! })]);
//! let interpreter = ResourceInterpreter::new(vec![Arc::new(webhooks)]);
//! let desired = json!({
//!     "apiVersion": "workload.example.io/v1alpha1", "kind": "Workload", "metadata": {"name": "a"},
//!     "spec": {"replicas": 2},
//! });
//! let observed = json!({"spec": {"paused": true}});
//! assert_eq!(interpreter.retain(&desired, &observed).await?["spec"]["paused"], true);
//! # Ok(())
//! # }
//! ```
//!
//! Serving TLS:
//!
//! ```no_run
//! # use std::time::Duration;
//! # use interpreter::webhook::server::{
//! #     InterpreterServer, webhook_transport::{CertificateFiles, LiveCertificate, server::{HttpVersions, ServerOptions, ServerTls}},
//! # };
//! # async fn run(server: InterpreterServer) -> Result<(), Box<dyn std::error::Error>> {
//! let files = CertificateFiles::in_folder("/tmp/k8s-webhook-server/serving-certs".as_ref());
//! let certificate = LiveCertificate::follow(files, Duration::from_secs(1))?;
//! let tls = ServerTls::new(certificate, HttpVersions::Http1And2)?;
//! let listener = tokio::net::TcpListener::bind("0.0.0.0:8445").await?;
//! let shutdown = async { tokio::signal::ctrl_c().await.unwrap_or_default() };
//! server.serve(listener, tls, ServerOptions::default(), shutdown).await;
//! # Ok(())
//! # }
//! ```
//!
//! Requests and responses are handled as in Karmada's own server (`pkg/webhook/interpreter`), with these exceptions: only POST is
//! accepted, a long body is rejected instead of truncated, `application/json` may have parameters, a panic becomes a failure response,
//! and every response has the uid of its request. If the uid cannot be decoded, the response is an HTTP error.

mod direct_call;
mod endpoint;
mod handler;
mod interpreter_server;

pub use webhook_transport;

pub use handler::InterpreterCall;
pub use interpreter_server::{AddInterpreterError, InterpreterServer};
