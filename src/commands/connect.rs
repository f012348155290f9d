//! Kubernetes clients from kubeconfigs.

use std::path::Path;

use anyhow::Context as _;
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use windlass_cluster::command_config;

/// Returns a client for the cluster of [`configuration`].
///
/// # Errors
///
/// When there is no usable configuration.
pub async fn connect(kubeconfig: Option<&Path>) -> anyhow::Result<Client> {
    client(configuration(kubeconfig).await?)
}

/// Returns a client for `config`.
///
/// # Errors
///
/// When the configuration cannot be used.
pub fn client(config: Config) -> anyhow::Result<Client> {
    windlass_cluster::client(config).context("cannot create a client for the cluster")
}

/// Returns the configuration of `kubeconfig`, or of the environment: `$KUBECONFIG`, `~/.kube/config`, or the
/// pod's ServiceAccount.
///
/// # Errors
///
/// When there is no usable configuration.
pub async fn configuration(kubeconfig: Option<&Path>) -> anyhow::Result<Config> {
    let config = match kubeconfig {
        Some(path) => {
            let kubeconfig = Kubeconfig::read_from(path)
                .with_context(|| format!("cannot read the kubeconfig {}", path.display()))?;
            Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
                .await
                .with_context(|| format!("cannot use the kubeconfig {}", path.display()))?
        }
        None => Config::infer()
            .await
            .context("no cluster configured: set --kubeconfig or $KUBECONFIG to an existing file")?,
    };
    Ok(command_config(config))
}
