//! The cluster of a command, and errors with advice.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, anyhow};
use serde::de::DeserializeOwned;
use serde_json::Value;
use windlass_cluster::{Cluster, Kind, RequestError, telemetry::chain};
use windlass_object::{ObjectKey, names, text::OneLine};

use crate::commands::{arguments::namespace, connect::connect};

/// Timeout of a request, including all retries.
const REQUEST: Duration = Duration::from_secs(30);

/// Selects the cluster.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct ClusterArgs {
    /// Kubeconfig [default: $KUBECONFIG or ~/.kube/config].
    #[arg(long, value_name = "FILE", help_heading = "Cluster")]
    kubeconfig: Option<PathBuf>,
}

/// Selects the operator.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct OperatorArgs {
    /// Operator namespace.
    #[arg(long = "operator-namespace", env = "WINDLASS_NAMESPACE", default_value = "windlass-system",
          value_name = "NAMESPACE", value_parser = namespace, help_heading = "Cluster")]
    pub(super) operator_namespace: String,
}

impl ClusterArgs {
    /// Returns the specified kubeconfig.
    pub(super) fn kubeconfig(&self) -> Option<&Path> {
        self.kubeconfig.as_deref()
    }

    /// Connects to the cluster.
    ///
    /// # Errors
    ///
    /// When there is no usable configuration.
    pub(super) async fn connect(&self) -> anyhow::Result<Cluster> {
        Ok(Cluster::new(connect(self.kubeconfig.as_deref()).await?, REQUEST))
    }
}

/// Returns why a request failed and what to do about it, on one line.
pub(super) fn explain_error(error: RequestError) -> anyhow::Error {
    let text = match &error {
        RequestError::UnknownKind { kind } if kind.api_version == names::API_VERSION => format!(
            "the cluster does not serve {}: install the operator first (windlass manifests | kubectl apply --server-side -f -)",
            kind.kind
        ),
        RequestError::Transport { source, .. } => {
            format!("cannot reach the cluster: {}", chain(source.as_ref()))
        }
        RequestError::Timeout { .. } => format!("cannot reach the cluster: {error}"),
        error if error.is_forbidden() => format!("permission denied: {error}"),
        RequestError::Refused { status, .. } if status.code == 401 => {
            format!("the cluster rejected your credentials: {error}")
        }
        error => error.to_string(),
    };
    anyhow!("{}", OneLine(&text))
}

/// Lists the objects of a Windlass kind, in one namespace or all.
///
/// # Errors
///
/// When they cannot be listed, or one does not match its schema.
pub(super) async fn list<T: DeserializeOwned>(
    cluster: &Cluster,
    kind: &Kind,
    namespace: Option<&str>,
) -> anyhow::Result<Vec<T>> {
    let listed = cluster.list(kind, namespace, None).await.map_err(explain_error)?;
    listed.into_iter().map(decode).collect()
}

/// Decodes a Windlass object.
///
/// # Errors
///
/// When it does not match its schema.
pub(super) fn decode<T: DeserializeOwned>(object: Value) -> anyhow::Result<T> {
    let key = ObjectKey::from_object(&object)
        .map(|key| key.to_string())
        .unwrap_or_default();
    serde_json::from_value(object).with_context(|| format!("cannot read {}", OneLine(&key)))
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;
    use windlass_cluster::kinds;

    fn refused(code: u16, message: &str) -> RequestError {
        RequestError::Refused {
            operation: "list",
            object: "x".to_owned(),
            status: Box::new(Status::failure(message, "").with_code(code)),
        }
    }

    #[test]
    fn an_error_states_what_to_do() {
        let unknown = |kind: Kind| RequestError::UnknownKind { kind };
        for (error, expected) in [
            (
                unknown(kinds::BUNDLE_DEPLOYMENT),
                "the cluster does not serve BundleDeployment: install the operator first (windlass manifests | kubectl apply --server-side -f -)",
            ),
            (
                unknown(kinds::DEPLOYMENT),
                "the cluster does not serve apps/v1, Kind=Deployment: is its CustomResourceDefinition installed?",
            ),
            (refused(403, "no"), "permission denied: list x: no"),
            (
                refused(401, "no"),
                "the cluster rejected your credentials: list x: no",
            ),
            (refused(422, "a\nb\u{1b}[2J"), "list x: a\\nb\\u{1b}[2J"),
        ] {
            assert_eq!(explain_error(error).to_string(), expected);
        }
    }
}
