//! The cluster that a command is about, and what to do when it does not answer as it should.

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

/// How long a request may take, with all its retries.
const REQUEST: Duration = Duration::from_secs(30);

/// Which cluster.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct ClusterArgs {
    /// Path to the kubeconfig [default: $KUBECONFIG, ~/.kube/config, or the pod's ServiceAccount].
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

/// Where the operator runs.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct OperatorArgs {
    /// Namespace that the Windlass operator runs in.
    #[arg(long = "operator-namespace", env = "WINDLASS_NAMESPACE", default_value = "windlass-system",
          value_name = "NAMESPACE", value_parser = namespace)]
    pub(super) operator_namespace: String,
}

// === impl ClusterArgs ===

impl ClusterArgs {
    /// The file that says which, if one was given.
    pub(super) fn kubeconfig(&self) -> Option<&Path> {
        self.kubeconfig.as_deref()
    }

    /// Speaks to the cluster.
    ///
    /// # Errors
    ///
    /// When there is no configuration, or none that can be used.
    pub(super) async fn connect(&self) -> anyhow::Result<Cluster> {
        Ok(Cluster::new(connect(self.kubeconfig.as_deref()).await?, REQUEST))
    }
}

/// Why a request failed and what to do about it, on one line.
pub(super) fn explain_error(error: RequestError) -> anyhow::Error {
    let text = match &error {
        RequestError::UnknownKind { kind } if kind.api_version == names::API_VERSION => format!(
            "the cluster does not serve {}; install the operator first: windlass manifests | kubectl apply -f -",
            kind.kind
        ),
        RequestError::Transport { source, .. } => {
            format!("cannot reach the cluster: {}", chain(source.as_ref()))
        }
        RequestError::Timeout { .. } => format!("cannot reach the cluster: {error}"),
        error if error.is_forbidden() => format!("permission denied: {error}"),
        RequestError::Refused { status, .. } if status.code == 401 => {
            format!("the cluster did not accept your credentials: {error}")
        }
        error => error.to_string(),
    };
    anyhow!("{}", OneLine(&text))
}

/// The objects of a kind of ours, in one namespace or everywhere.
///
/// # Errors
///
/// When they cannot be listed, or one of them is not what its schema says.
pub(super) async fn list<T: DeserializeOwned>(
    cluster: &Cluster,
    kind: &Kind,
    namespace: Option<&str>,
) -> anyhow::Result<Vec<T>> {
    let listed = cluster.list(kind, namespace, None).await.map_err(explain_error)?;
    listed.into_iter().map(decode).collect()
}

/// An object of ours by its type.
///
/// # Errors
///
/// When it is not what its schema says.
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
    fn an_error_says_what_to_do() {
        let unknown = |kind: Kind| RequestError::UnknownKind { kind };
        for (error, expected) in [
            (
                unknown(kinds::BUNDLE_DEPLOYMENT),
                "the cluster does not serve BundleDeployment; install the operator first: windlass manifests | kubectl apply -f -",
            ),
            (
                unknown(kinds::DEPLOYMENT),
                "the cluster does not serve apps/v1, Kind=Deployment: is its CustomResourceDefinition installed?",
            ),
            (refused(403, "no"), "permission denied: list x: no"),
            (
                refused(401, "no"),
                "the cluster did not accept your credentials: list x: no",
            ),
            (refused(422, "a\nb\u{1b}[2J"), "list x: a\\nb\\u{1b}[2J"),
        ] {
            assert_eq!(explain_error(error).to_string(), expected);
        }
    }
}
