//! What is done before the BundleDeployment comes, so that it can take over what others run.

use std::{fmt, time::Duration};

use anyhow::bail;
use serde_json::{Map, Value, json};
use windlass_adoption::{
    AdoptionRecord, AdoptionSource, CA_INJECTORS, OWNER, RecordedObject, RecordedRole, called_services,
    compare, hidden, lacks_ca_bundle,
};
use windlass_cluster::{Cluster, kinds};
use windlass_crd::claims::Adoption;
use windlass_object::{ObjectKey, names, object};

use super::{
    super::object_changes::{take_ownership, wait_for_propagation, change_metadata},
    remaining_callers::force_reconnect,
    olm, records, servers,
    source_objects::{objects_of_source, releases},
};
use crate::{commands::cluster::explain_error, terminal::Progress};

/// The annotation by which Helm takes an object for one of a release.
pub(super) const RELEASE_NAME: &str = "meta.helm.sh/release-name";

/// Its versions and its conversion are written as a whole.
const CRD: &str = "CustomResourceDefinition";

/// An install of others that a BundleDeployment is to take over.
#[derive(Debug)]
pub(in crate::commands) struct Takeover {
    record: AdoptionRecord,
    operator_namespace: String,
    /// An earlier run has begun.
    is_begun: bool,
}

// === impl Takeover ===

impl Takeover {
    /// Compares what `source` has installed with the objects of a bundle, or goes on with what an earlier run has begun.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or cannot be adopted without a failed call.
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
                    "{bundle_deployment} adopts from {} already: end that first, with windlass adoption confirm or undo",
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

    /// Has a BundleDeployment run what it installs as `source` does, where it does not say how.
    ///
    /// # Errors
    ///
    /// When that cannot be read.
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

    /// What the BundleDeployment may take over.
    pub(in crate::commands) fn adoptions(&self) -> Vec<Adoption> {
        let keys = self.adopted().filter_map(RecordedObject::key);
        let adoptions = keys.map(|key| Adoption {
            kind: key.kind,
            name: key.name,
        });
        adoptions.collect()
    }

    /// `spec.config` of the BundleDeployment, where the source has said as much in a Subscription.
    pub(in crate::commands) fn config(&self) -> Option<&Value> {
        let recorded = self.record.objects.iter();
        let mut subscriptions = recorded.filter(|recorded| recorded.kind() == "Subscription");
        subscriptions.find_map(|recorded| recorded.object.pointer("/spec/config"))
    }

    /// Prepares the cluster for the BundleDeployment.
    ///
    /// # Errors
    ///
    /// When the cluster does not take something; the next run goes on from there.
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
        // There is no way back from it: what may not come up has come up before.
        if let AdoptionSource::Olm(_) = record.source {
            olm::release(cluster, &record.source, progress, patience).await?;
            progress.done(&format!("OLM has let go of {}", record.source));
        }
        let mut is_narrowed = false;
        for service in record.narrowed() {
            let Some(key) = service.key() else { continue };
            let live = cluster.read(&key).await.map_err(explain_error)?;
            // The BundleDeployment has it: nobody calls the old one any more.
            if live.is_some_and(|live| object::label(&live, names::BUNDLE_DEPLOYMENT).is_some()) {
                continue;
            }
            let label = (names::KEPT_FOR, record.bundle_deployment.as_str());
            servers::restrict_service(cluster, service, label, Value::clone, progress, patience).await?;
            is_narrowed = true;
        }
        if is_narrowed && !self.is_begun {
            wait_for_propagation(progress, "where the present Services lead").await;
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

    /// Only what the bundle says stays in what is adopted.
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

    /// Ends what was done for the time of the install.
    ///
    /// # Errors
    ///
    /// When the cluster does not take it.
    pub(in crate::commands) async fn finish(
        &self,
        cluster: &Cluster,
        progress: &mut Progress,
        patience: Duration,
    ) -> anyhow::Result<()> {
        // API servers have connections to those yet, from before.
        servers::wait_for_ended_pods(cluster, &self.record, progress, patience).await?;
        force_reconnect(cluster, &self.record, false).await
    }

    /// What to do when it is ready.
    pub(in crate::commands) fn next_steps(&self) -> String {
        let name = &self.record.bundle_deployment;
        if let AdoptionSource::Olm(_) = self.record.source {
            return format!(
                "Adopted from {}. What it left over is kept until this is run:\n  \
                 windlass adoption confirm {name}   removes what is left over, and the ClusterServiceVersion",
                self.record.source
            );
        }
        format!(
            "Adopted from {}. What it was is recorded, and what it left over is kept, until one of these is run:\n  \
             windlass adoption confirm {name}   removes what is left over\n  \
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
            "Kept serving by a copy until the adoption is confirmed:",
            &mut record.kept().filter_map(named),
        )?;
        let left_over = record.objects.iter().filter(|recorded| !recorded.is_adopted());
        list("Left over:", &mut left_over.filter_map(named))
    }
}

/// Hides a release from Helm, or shows it again; and whether its objects are of the release.
///
/// # Errors
///
/// When the cluster does not take it.
pub(super) async fn hide(cluster: &Cluster, record: &AdoptionRecord, is_hidden: bool) -> anyhow::Result<()> {
    let label = json!({ (OWNER.0): hidden(is_hidden) });
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

/// Whether an install can be adopted without a failed call.
fn check(record: &AdoptionRecord) -> anyhow::Result<()> {
    let named = |recorded: &RecordedObject| recorded.key().map_or_else(String::new, |key| key.to_string());
    let source = &record.source;
    if !record.objects.iter().any(RecordedObject::is_adopted) {
        bail!("the bundle has no object in common with {source}: install it without --adopt-from");
    }
    for recorded in &record.objects {
        if let Some(owner) = object::label(&recorded.object, names::BUNDLE_DEPLOYMENT) {
            bail!(
                "{} belongs to the BundleDeployment {owner} already",
                named(recorded)
            );
        }
    }
    if let Some((caller, service)) = record.stranded().next() {
        bail!(
            "{} calls {}, which the bundle takes over, and the bundle has no {} of that name: its calls would fail; let it call \
             another Service first, or delete it",
            named(caller),
            named(service),
            caller.kind()
        );
    }
    for caller in record.callers().filter(|caller| caller.is_adopted()) {
        if lacks_ca_bundle(&caller.object) {
            bail!("{} has no caBundle: its calls fail already", named(caller));
        }
    }
    let is_served = |service: &RecordedObject| {
        let deployments = record
            .objects
            .iter()
            .filter(|recorded| recorded.kind() == "Deployment");
        let mut served =
            deployments.filter(|deployment| windlass_adoption::selects_pods_of(&service.object, &deployment.object));
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
                    "{} calls {key}, of which {source} has no Deployment: it cannot be told who keeps serving it",
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
    fn what_would_cost_a_call_is_not_adopted() {
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
            (vec![(Adopted, owned)], "belongs to the BundleDeployment other"),
            (
                vec![
                    (Adopted, deployment.clone()),
                    (Adopted, service.clone()),
                    (LeftOver, caller("s", "QQ==")),
                ],
                "its calls would fail",
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
                "who keeps serving it",
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
