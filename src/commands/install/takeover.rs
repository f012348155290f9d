//! An install that takes over an existing installation.

use serde_json::{Value, json};
use windlass_adoption::AdoptionSource;
use windlass_bundle::Bundle;
use windlass_cluster::Cluster;
use windlass_object::object;

use super::{super::adoption::Takeover, command::Args, dry_run::planned_objects};

impl Args {
    /// Returns the takeover of `source`, and adds its adoptions and settings to `deployment`.
    ///
    /// # Errors
    ///
    /// When the installation cannot be read, or cannot be adopted without a failed request.
    pub(super) async fn takeover(
        &self,
        cluster: &Cluster,
        source: &AdoptionSource,
        deployment: &mut Value,
        bundle: &Bundle,
    ) -> anyhow::Result<Takeover> {
        let source = source.clone().within(&self.install.namespace);
        let mut completed = deployment.clone();
        Takeover::complete(cluster, &source, &mut completed).await?;
        for (field, is_refused) in [
            ("watchNamespaces", self.all_namespaces),
            ("serviceAccountName", self.no_service_account),
        ] {
            if let Some(value) = completed["spec"].get(field).filter(|_| !is_refused) {
                deployment["spec"][field] = value.clone();
            }
        }
        let planned = planned_objects(cluster, bundle, deployment).await?;
        let name = object::text(deployment, "/metadata/name").unwrap_or_default();
        let namespace = &self.operator.operator_namespace;
        let takeover = Takeover::new(cluster, source, name, namespace, &planned).await?;
        let mut adopt = self.adopt.clone();
        for adoption in takeover.adoptions() {
            if !adopt.contains(&adoption) {
                adopt.push(adoption);
            }
        }
        deployment["spec"]["adopt"] = json!(adopt);
        if let Some(config) = takeover
            .config()
            .filter(|_| deployment["spec"].get("config").is_none())
        {
            deployment["spec"]["config"] = config.clone();
        }
        Ok(takeover)
    }
}
