//! ResourceInterpreterWebhookConfigurations and Services of a cluster, read only.
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use interpreter::{
//! #     in_cluster::{ClusterServices, follow_webhook_configurations},
//! #     webhook::{InterpreterClient, Webhooks},
//! # };
//! # use webhook_transport::client::{Transport, TransportOptions};
//! # async fn run(client: kube::Client) {
//! let transport = Transport::new(TransportOptions {
//!     resolver: Arc::new(ClusterServices::new(client.clone())),
//!     ..InterpreterClient::transport_options()
//! });
//! let webhooks = Arc::new(Webhooks::new(Arc::new(InterpreterClient::new(transport))));
//! let following = tokio::spawn(follow_webhook_configurations(client, webhooks.clone()));
//! # }
//! ```

mod configurations;
mod services;

pub use configurations::follow_webhook_configurations;
pub use services::ClusterServices;
