//! Preparation of the cluster before a BundleDeployment takes over an existing installation.

use std::{fmt, time::Duration};

use anyhow::bail;
use serde_json::{Map, Value, json};
use windlass_adoption::{
    AdoptionRecord, AdoptionSource, CA_INJECTORS, OWNER, RecordedObject, RecordedRole, called_services,
    compare, lacks_ca_bundle, owner_label_value,
};
use windlass_cluster::{Cluster, kinds};
use windlass_crd::claims::Adoption;
use windlass_object::{ObjectKey, names, object};

use super::{
    super::object_changes::{change_metadata, take_ownership, wait_for_propagation},
    olm, records,
    remaining_callers::force_reconnect,
    servers,
    source_objects::{objects_of_source, releases},
};
use crate::{commands::cluster::explain_error, terminal::Progress};

/// Helm's annotation on the objects of a release.
pub(super) const RELEASE_NAME: &str = "meta.helm.sh/release-name";

/// Skipped by [`Takeover::take_ownership`]: the versions and the conversion of a CRD are written as a whole.
const CRD: &str = "CustomResourceDefinition";

/// An existing installation that a BundleDeployment takes over.
#[derive(Debug)]
pub(in crate::commands) struct Takeover {
    record: AdoptionRecord,
    operator_namespace: String,
    /// Whether an earlier run has recorded the adoption.
    is_begun: bool,
}

impl Takeover {
    /// Compares the objects that `source` has installed with the objects of a bundle, or resumes an earlier
    /// run.
    ///
    /// # Errors
    ///
    /// When the installation cannot be read, or cannot be adopted without a failed request.
    pub(in crate::commands) async fn new(
        cluster: &Cluster,
        source: AdoptionSource,
        bundle_deployment: &str,
        operator_namespace: &str,
        bundle: &[ObjectKey],
    ) -> anyhow::Result<Self> {
        let operator_namespace = operator_namespace.to_owned();
        if let Some(record) = records::read(cluster, &operator_namespace, bundle_deployment).await? {
            if record.source != source {
                bail!(
                    "{bundle_deployment} already adopts from {}: end that adoption first, with windlass adoption confirm or undo",
                    record.source
                );
            }
            return Ok(Self {
                record,
                operator_namespace,
                is_begun: true,
            });
        }
        let live = objects_of_source(cluster, &source).await?;
        let keys: Vec<_> = live.iter().filter_map(ObjectKey::from_object).collect();
        let adopted = compare(&keys, bundle).adopted;
        let objects = live.iter().map(|live| {
            let is_adopted = ObjectKey::from_object(live).is_some_and(|key| adopted.contains(&key));
            let role = if is_adopted {
                RecordedRole::Adopted
            } else {
                RecordedRole::LeftOver
            };
            RecordedObject::new(role, live)
        });
        let record = AdoptionRecord {
            source,
            bundle_deployment: bundle_deployment.to_owned(),
            objects: objects.collect(),
        };
        check(&record)?;
        Ok(Self {
            record,
            operator_namespace,
            is_begun: false,
        })
    }

    /// Copies settings of `source` into the BundleDeployment, except those that it sets itself.
    ///
    /// # Errors
    ///
    /// When the settings cannot be read.
    pub(in crate::commands) async fn complete(
        cluster: &Cluster,
        source: &AdoptionSource,
        deployment: &mut Value,
    ) -> anyhow::Result<()> {
        match source {
            AdoptionSource::Olm(_) => olm::complete(cluster, source, deployment).await,
            _ => Ok(()),
        }
    }

    /// The objects that the BundleDeployment may take over.
    pub(in crate::commands) fn adoptions(&self) -> Vec<Adoption> {
        let keys = self.adopted().filter_map(RecordedObject::key);
        let adoptions = keys.map(|key| Adoption {
            kind: key.kind,
            name: key.name,
        });
        adoptions.collect()
    }

    /// `spec.config` for the BundleDeployment, from the recorded Subscription.
    pub(in crate::commands) fn config(&self) -> Option<&Value> {
        let recorded = self.record.objects.iter();
        let mut subscriptions = recorded.filter(|recorded| recorded.kind() == "Subscription");
        subscriptions.find_map(|recorded| recorded.object.pointer("/spec/config"))
    }

    /// Prepares the cluster for the BundleDeployment.
    ///
    /// # Errors
    ///
    /// When the cluster rejects a write; the next run resumes there.
    pub(in crate::commands) async fn prepare(
        &self,
        cluster: &Cluster,
        progress: &mut Progress,
        patience: Duration,
    ) -> anyhow::Result<()> {
        let record = &self.record;
        records::write(cluster, &self.operator_namespace, record).await?;
        if let AdoptionSource::Helm(_) = record.source {
            hide(cluster, record, true).await?;
            progress.done(&format!("Hid {} from helm", record.source));
        }
        servers::ensure_copies(cluster, record, progress, patience).await?;
        // This step cannot be undone, so copies that might fail to start have started before it.
        if let AdoptionSource::Olm(_) = record.source {
            olm::release(cluster, &record.source, progress, patience).await?;
            progress.done(&format!("Detached {} from OLM", record.source));
        }
        let mut is_narrowed = false;
        for service in record.narrowed_services() {
            let Some(key) = service.key() else { continue };
            let live = cluster.read(&key).await.map_err(explain_error)?;
            // The BundleDeployment has adopted the Service, so the old one has no callers left.
            if live.is_some_and(|live| object::label(&live, names::BUNDLE_DEPLOYMENT).is_some()) {
                continue;
            }
            let label = (names::KEPT_FOR, record.bundle_deployment.as_str());
            servers::restrict_service(cluster, service, label, Value::clone, progress, patience).await?;
            is_narrowed = true;
        }
        if is_narrowed && !self.is_begun {
            wait_for_propagation(progress, "the new endpoints of the existing Services").await;
        }
        force_reconnect(cluster, record, true).await?;
        let injectors = CA_INJECTORS.map(|annotation| (annotation.to_owned(), Value::Null));
        let nothing = Value::Object(Map::from_iter(injectors));
        for caller in record.callers().filter(|caller| caller.is_adopted()) {
            if let Some(key) = caller.key() {
                change_metadata(cluster, &key, &json!({}), &nothing).await?;
            }
        }
        self.take_ownership(cluster).await
    }

    /// Makes Windlass the only manager of the adopted objects, so that fields outside the bundle are removed.
    async fn take_ownership(&self, cluster: &Cluster) -> anyhow::Result<()> {
        let calls = |recorded: &RecordedObject| {
            recorded.kind() == CRD || !called_services(&recorded.object).is_empty()
        };
        for recorded in self.adopted().filter(|recorded| !calls(recorded)) {
            if let Some(key) = recorded.key() {
                take_ownership(cluster, &key).await?;
            }
        }
        Ok(())
    }

    /// Ends the temporary measures of the install.
    ///
    /// # Errors
    ///
    /// When the cluster rejects a write.
    pub(in crate::commands) async fn finish(
        &self,
        cluster: &Cluster,
        progress: &mut Progress,
        patience: Duration,
    ) -> anyhow::Result<()> {
        // API servers may still have connections to these pods.
        servers::wait_for_ended_pods(cluster, &self.record, progress, patience).await?;
        force_reconnect(cluster, &self.record, false).await
    }

    /// The next steps for the user, once the BundleDeployment is ready.
    pub(in crate::commands) fn next_steps(&self) -> String {
        let name = &self.record.bundle_deployment;
        if let AdoptionSource::Olm(_) = self.record.source {
            return format!(
                "Adopted from {}. The remaining objects are kept until you run:\n  \
                 windlass adoption confirm {name}   removes the remaining objects, and the ClusterServiceVersion",
                self.record.source
            );
        }
        format!(
            "Adopted from {}. The previous state is recorded and the remaining objects are kept until you run one of:\n  \
             windlass adoption confirm {name}   removes the remaining objects\n  \
             windlass adoption undo {name}      goes back to {}",
            self.record.source,
            self.record.source.owner()
        )
    }

    fn adopted(&self) -> impl Iterator<Item = &RecordedObject> {
        self.record
            .objects
            .iter()
            .filter(|recorded| recorded.is_adopted())
    }
}

impl fmt::Display for Takeover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let record = &self.record;
        let mut list = |title: &str, objects: &mut dyn Iterator<Item = String>| -> fmt::Result {
            let mut objects = objects.peekable();
            if objects.peek().is_some() {
                writeln!(f, "{title}")?;
            }
            objects.try_for_each(|object| writeln!(f, "  {object}"))
        };
        let named = |recorded: &RecordedObject| recorded.key().map(|key| key.to_string());
        list(
            &format!("Adopted from {}:", record.source),
            &mut self.adopted().filter_map(named),
        )?;
        list(
            "Served by a copy until the adoption is confirmed:",
            &mut record.kept_deployments().filter_map(named),
        )?;
        let left_over = record.objects.iter().filter(|recorded| !recorded.is_adopted());
        list("Left over:", &mut left_over.filter_map(named))
    }
}

/// Hides a release from Helm, or shows it again, and updates the release annotation of its objects.
///
/// # Errors
///
/// When the cluster rejects a write.
pub(super) async fn hide(cluster: &Cluster, record: &AdoptionRecord, is_hidden: bool) -> anyhow::Result<()> {
    let label = json!({ (OWNER.0): owner_label_value(is_hidden) });
    for secret in releases(cluster, record.source.name(), !is_hidden).await? {
        if let Some(key) = ObjectKey::from_object(&secret) {
            change_metadata(cluster, &key, &label, &json!({})).await?;
        }
    }
    for recorded in &record.objects {
        let Some(release) = object::annotation(&recorded.object, RELEASE_NAME) else {
            continue;
        };
        let value = (!is_hidden).then_some(release);
        if let Some(key) = recorded.key() {
            change_metadata(cluster, &key, &json!({}), &json!({ RELEASE_NAME: value })).await?;
        }
    }
    Ok(())
}

/// Checks that an installation can be adopted without a failed request.
fn check(record: &AdoptionRecord) -> anyhow::Result<()> {
    let named = |recorded: &RecordedObject| recorded.key().map_or_else(String::new, |key| key.to_string());
    let source = &record.source;
    if !record.objects.iter().any(RecordedObject::is_adopted) {
        bail!("the bundle has no object in common with {source}: install it without --adopt-from");
    }
    for recorded in &record.objects {
        if let Some(owner) = object::label(&recorded.object, names::BUNDLE_DEPLOYMENT) {
            bail!(
                "{} already belongs to the BundleDeployment {owner}",
                named(recorded)
            );
        }
    }
    if let Some((caller, service)) = record.stranded_callers().next() {
        bail!(
            "{} calls {}, which the bundle takes over, but the bundle has no {} of that name: its requests would fail. Point it to \
             another Service first, or delete it",
            named(caller),
            named(service),
            caller.kind()
        );
    }
    for caller in record.callers().filter(|caller| caller.is_adopted()) {
        if lacks_ca_bundle(&caller.object) {
            bail!("{} has no caBundle: its requests already fail", named(caller));
        }
    }
    let is_served = |service: &RecordedObject| {
        let deployments = record
            .objects
            .iter()
            .filter(|recorded| recorded.kind() == "Deployment");
        let mut served = deployments
            .filter(|deployment| windlass_adoption::selects_pods_of(&service.object, &deployment.object));
        served.next().is_some()
    };
    for caller in record.callers() {
        for (namespace, name) in called_services(&caller.object) {
            let key = kinds::SERVICE.object(Some(&namespace), &name);
            let service = record
                .services()
                .find(|service| service.key().as_ref() == Some(&key));
            if !service.is_some_and(is_served) {
                bail!(
                    "{} calls {key}, but {source} has no Deployment behind it, so no copy can keep serving it",
                    named(caller)
                );
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(kind: &str, name: &str, rest: &Value) -> Value {
        let mut object =
            json!({"apiVersion": "v1", "kind": kind, "metadata": {"namespace": "n", "name": name}});
        for (field, value) in rest.as_object().into_iter().flatten() {
            object[field] = value.clone();
        }
        object
    }

    #[test]
    fn an_adoption_that_would_fail_requests_is_rejected() {
        use RecordedRole::{Adopted, LeftOver};
        let webhooks = |service: &str, ca: &str| json!({"webhooks": [{"clientConfig": {"caBundle": ca, "service": {"namespace": "n", "name": service}}}]});
        let caller =
            |service: &str, ca: &str| object("ValidatingWebhookConfiguration", "v", &webhooks(service, ca));
        let deployment = object(
            "Deployment",
            "d",
            &json!({"spec": {"template": {"metadata": {"labels": {"app": "a"}}}}}),
        );
        let service = object("Service", "s", &json!({"spec": {"selector": {"app": "a"}}}));
        let mut owned = deployment.clone();
        owned["metadata"]["labels"] = json!({names::BUNDLE_DEPLOYMENT: "other"});
        for (objects, expected) in [
            (
                vec![
                    (Adopted, deployment.clone()),
                    (LeftOver, service.clone()),
                    (Adopted, caller("s", "QQ==")),
                ],
                "",
            ),
            (
                vec![
                    (Adopted, deployment.clone()),
                    (Adopted, service.clone()),
                    (Adopted, caller("s", "QQ==")),
                ],
                "",
            ),
            (vec![(LeftOver, deployment.clone())], "no object in common"),
            (
                vec![(Adopted, owned)],
                "already belongs to the BundleDeployment other",
            ),
            (
                vec![
                    (Adopted, deployment.clone()),
                    (Adopted, service.clone()),
                    (LeftOver, caller("s", "QQ==")),
                ],
                "its requests would fail",
            ),
            (
                vec![
                    (Adopted, deployment.clone()),
                    (LeftOver, service.clone()),
                    (Adopted, caller("s", "")),
                ],
                "has no caBundle",
            ),
            (
                vec![
                    (Adopted, deployment),
                    (LeftOver, service),
                    (Adopted, caller("other", "QQ==")),
                ],
                "no copy can keep serving it",
            ),
        ] {
            let record = AdoptionRecord {
                source: "helm/n/r".parse().unwrap(),
                bundle_deployment: "b".into(),
                objects: objects
                    .iter()
                    .map(|(role, live)| RecordedObject::new(*role, live))
                    .collect(),
            };
            match check(&record) {
                Ok(()) => assert_eq!(expected, ""),
                Err(error) => assert!(
                    !expected.is_empty() && error.to_string().contains(expected),
                    "{error}"
                ),
            }
        }
    }
}
