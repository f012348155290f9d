//! The server side: TLS with reloaded certificates, HTTP/1.1 and HTTP/2, and a graceful shutdown.
//!
//! ```no_run
//! use std::{convert::Infallible, time::Duration};
//!
//! use hyper::{Request, Response, body::Incoming};
//! use tokio::net::TcpListener;
//! use tower::service_fn;
//! use webhook_transport::{
//!     CertificateFiles, LiveCertificate,
//!     server::{Encryption, HttpVersions, ServerOptions, ServerTls, serve},
//! };
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let files = CertificateFiles::in_folder("/tmp/k8s-webhook-server/serving-certs".as_ref());
//! let certificate = LiveCertificate::follow(files, Duration::from_secs(1))?;
//! let tls = ServerTls::new(certificate, HttpVersions::Http1And2)?;
//! let service = service_fn(async |_: Request<Incoming>| Ok::<_, Infallible>(Response::new(String::from("ok"))));
//! let shutdown = async { tokio::signal::ctrl_c().await.unwrap_or_default() };
//! let listener = TcpListener::bind("0.0.0.0:9443").await?;
//! serve(listener, Encryption::Tls(tls), service, ServerOptions::default(), shutdown).await;
//! # Ok(())
//! # }
//! ```

mod activity;
mod client_authority;
mod connection;
mod connection_slots;
mod options;
mod reply;
mod request_body;
mod tls;
mod webhook_server;

pub use client_authority::ClientAuthority;
pub use connection::ConnectedClient;
pub use connection_slots::{ConnectionSlot, ConnectionSlots, SlotRequest};
pub use options::ServerOptions;
pub use reply::{only_post, panic_message, reply_json, reply_text};
pub use request_body::{ReadRequestError, read_body};
pub use tls::{Encryption, HttpVersions, ServerTls};
pub use webhook_server::{WebhookServer, WebhookService, serve};
