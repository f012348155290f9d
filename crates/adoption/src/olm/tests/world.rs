//! A cluster with OLM and a garbage collector, as far as they handle a ClusterServiceVersion.

use serde_json::{Value, json};
use windlass_object::{ObjectKey, object};

use crate::{
    AdoptionRecord, AdoptionStep, AdoptionWrite, RecordedObject, RecordedRole,
    olm::{
        CLUSTER_SCOPED, CsvObjects, OLM_FINALIZER, ORPHAN, OlmObservation, OlmRefusal, OlmState, next_steps,
    },
};

/// The kinds of which the bundle has the objects of OLM's names.
pub(super) const OF_BUNDLE: [&str; 4] = [
    "ServiceAccount",
    "Service",
    "Deployment",
    "CustomResourceDefinition",
];

/// The objects of the cluster.
#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) objects: Vec<Value>,
    version: u64,
}

pub(super) fn csv() -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {"name": "widgets.v1", "namespace": "n", "uid": "csv", "finalizers": [OLM_FINALIZER],
            "annotations": {"olm.targetNamespaces": "", "olm.operatorNamespace": "n"}},
        "spec": {
            "customresourcedefinitions": {"owned": [{"name": "widgets.example.com"}]},
            "install": {"spec": {"deployments": [{"name": "widgets"}]}},
            "webhookdefinitions": [
                {"type": "ValidatingAdmissionWebhook", "generateName": "vwidget"},
                {"type": "ConversionWebhook", "conversionCRDs": ["widgets.example.com"]},
            ],
        },
        "status": {"phase": "Succeeded"},
    })
}

pub(super) fn labels() -> Value {
    json!({"olm.managed": "true", "olm.owner": "widgets.v1", "olm.owner.namespace": "n",
        "olm.owner.kind": "ClusterServiceVersion"})
}

fn configuration(name: &str) -> Value {
    let client = json!({"service": {"namespace": "n", "name": "widgets-service"}});
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name, "uid": name, "labels": labels()}, "webhooks": [{"clientConfig": client}]})
}

impl World {
    pub(super) fn new() -> Self {
        let owned = |api_version: &str, kind: &str, name: &str| {
            json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "n",
                "uid": format!("{kind}/{name}"), "labels": {"olm.managed": "true"},
                "ownerReferences": [{"kind": "ClusterServiceVersion", "name": "widgets.v1", "uid": "csv"}]}})
        };
        let rbac = "rbac.authorization.k8s.io/v1";
        let cluster = |kind: &str| {
            json!({"apiVersion": rbac, "kind": kind,
                "metadata": {"name": "widgets.v1-abc", "uid": kind, "labels": labels()}})
        };
        let mut deployment = owned("apps/v1", "Deployment", "widgets");
        deployment["spec"]["template"]["spec"]["volumes"] = json!([{"name": "webhook-cert"}]);
        let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com", "uid": "crd"}, "spec": {"conversion": {"strategy": "Webhook"}}});
        let reader = json!({"apiVersion": rbac, "kind": "RoleBinding", "metadata": {"name": "widgets-service-auth-reader",
            "namespace": "kube-system", "uid": "reader", "labels": {"olm.managed": "true"}},
            "subjects": [{"kind": "ServiceAccount", "name": "widgets", "namespace": "n"}]});
        let subscription = json!({"apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
            "metadata": {"name": "widgets", "namespace": "n", "uid": "subscription"},
            "spec": {"config": {"nodeSelector": {"a": "b"}}},
            "status": {"installedCSV": "widgets.v1", "currentCSV": "widgets.v1"}});
        let group = json!({"apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
            "metadata": {"name": "all", "namespace": "n", "uid": "group"}, "spec": {}});
        let mut world = Self {
            objects: vec![
                csv(),
                subscription,
                group,
                owned("v1", "ServiceAccount", "widgets"),
                owned("v1", "Service", "widgets-service"),
                owned("v1", "Secret", "widgets-service-cert"),
                owned(rbac, "Role", "widgets-service-cert"),
                reader,
                deployment,
                cluster("ClusterRole"),
                cluster("ClusterRoleBinding"),
                configuration("vwidget-1"),
                crd,
            ],
            version: 0,
        };
        for object in &mut world.objects {
            object["metadata"]["resourceVersion"] = "0".into();
        }
        world
    }

    fn of_kind(&self, kind: &str) -> Vec<Value> {
        let is_it = |object: &&Value| object::text(object, "/kind") == Some(kind);
        self.objects.iter().filter(is_it).cloned().collect()
    }

    pub(super) fn csv(&self) -> Option<Value> {
        self.of_kind("ClusterServiceVersion").pop()
    }

    /// Returns the next steps for the current state.
    pub(super) fn next(&self) -> Result<OlmState, Vec<OlmRefusal>> {
        let csvs = self.of_kind("ClusterServiceVersion");
        next_steps(&OlmObservation {
            csv: &csvs[0],
            csvs: &csvs,
            all_subscriptions: &self.of_kind("Subscription"),
            operator_groups: &self.of_kind("OperatorGroup"),
            objects: &self.objects,
        })
    }

    /// Records the adoption.
    pub(super) fn record(&self) -> AdoptionRecord {
        let csv = self.csv().unwrap();
        let csv_objects = CsvObjects::from_csv(&csv);
        let is_recorded =
            |live: &&Value| csv_objects.contains(live) || object::text(live, "/kind") == Some("Subscription");
        let objects = self.objects.iter().filter(is_recorded).map(|live| {
            let is_of_bundle = OF_BUNDLE.iter().any(|kind| live["kind"] == *kind);
            let role = match is_of_bundle {
                true => RecordedRole::Adopted,
                false => RecordedRole::LeftOver,
            };
            RecordedObject::new(role, live)
        });
        AdoptionRecord {
            source: "olm/n/widgets.v1".parse().unwrap(),
            bundle_deployment: "widgets".to_owned(),
            objects: objects.collect(),
        }
    }

    /// Executes a step. Returns false if the object has changed since the step was planned.
    pub(super) fn write(&mut self, step: &AdoptionStep) -> bool {
        match &step.write {
            AdoptionWrite::Create(object) => self.objects.push(object.clone()),
            AdoptionWrite::Patch { object, patch } => {
                let live = self.find(object);
                if json_patch::patch(live, patch).is_err() {
                    return false;
                }
                self.version += 1;
                let version = self.version.to_string();
                self.find(object)["metadata"]["resourceVersion"] = version.into();
                self.collect();
            }
            AdoptionWrite::Delete { object, uid, orphan } => {
                let live = self.find(object);
                assert_eq!(live["metadata"]["uid"], *uid);
                live["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
                if *orphan {
                    let finalizers = live["metadata"]["finalizers"].as_array_mut().unwrap();
                    finalizers.push(ORPHAN.into());
                }
                self.collect();
            }
        }
        true
    }

    fn find(&mut self, key: &ObjectKey) -> &mut Value {
        let is_it =
            |object: &&mut Value| ObjectKey::from_object(object).is_some_and(|of| of.is_same_object(key));
        self.objects.iter_mut().find(is_it).unwrap()
    }

    /// Removes deleted objects without finalizers. OLM's handler receives their last state.
    fn collect(&mut self) {
        let is_gone =
            |object: &Value| object::is_terminating(object) && object::finalizers(object).is_empty();
        let gone: Vec<_> = self
            .objects
            .iter()
            .filter(|object| is_gone(object))
            .cloned()
            .collect();
        self.objects.retain(|object| !is_gone(object));
        for definition in gone
            .iter()
            .flat_map(|csv| object::items(csv, "/spec/webhookdefinitions"))
        {
            if definition["type"] == "ConversionWebhook" {
                let crd = self
                    .objects
                    .iter_mut()
                    .find(|object| object["kind"] == "CustomResourceDefinition");
                crd.unwrap()["spec"]["conversion"] = json!({"strategy": "None"});
            }
        }
    }

    /// Reconciles the ClusterServiceVersion as OLM does.
    pub(super) fn reconcile_olm(&mut self) {
        let Some(csv) = self.csv() else { return };
        let is_labelled = |object: &Value| object["metadata"]["labels"]["olm.owner"] == "widgets.v1";
        if object::is_terminating(&csv) {
            if object::finalizers(&csv).contains(&OLM_FINALIZER) {
                let is_cleaned = |object: &Value| {
                    is_labelled(object) && CLUSTER_SCOPED.iter().any(|(_, kind)| object["kind"] == *kind)
                };
                self.objects.retain(|object| !is_cleaned(object));
                self.unfinalize(OLM_FINALIZER);
            }
            return;
        }
        if csv["spec"].get("webhookdefinitions").is_none() {
            let deployment = self
                .objects
                .iter_mut()
                .find(|object| object["kind"] == "Deployment");
            deployment.unwrap()["spec"]["template"]["spec"]["volumes"] = json!([]);
            return;
        }
        let configurations = self.of_kind("ValidatingWebhookConfiguration");
        let is_installed = configurations.iter().any(is_labelled);
        match (csv["status"]["phase"].as_str().unwrap(), is_installed) {
            ("Succeeded", true) => {}
            (_, true) => self.set_phase("Succeeded"),
            ("Succeeded", false) => self.set_phase("Failed"),
            (_, false) => {
                self.version += 1;
                let mut configuration = configuration(&format!("vwidget-again-{}", self.version));
                configuration["metadata"]["resourceVersion"] = "0".into();
                self.objects.push(configuration);
                self.set_phase("Installing");
            }
        }
    }

    fn set_phase(&mut self, phase: &str) {
        self.version += 1;
        let version = self.version.to_string();
        let is_it = |object: &&mut Value| object["kind"] == "ClusterServiceVersion";
        let csv = self.objects.iter_mut().find(is_it).unwrap();
        csv["status"]["phase"] = phase.into();
        csv["metadata"]["resourceVersion"] = version.into();
    }

    /// Reconciles all objects as the garbage collector does.
    pub(super) fn collect_garbage(&mut self) {
        let csv = self.csv();
        if csv
            .as_ref()
            .is_some_and(|csv| object::finalizers(csv).contains(&ORPHAN))
        {
            for object in &mut self.objects {
                object["metadata"]
                    .as_object_mut()
                    .unwrap()
                    .remove("ownerReferences");
            }
            self.unfinalize(ORPHAN);
        }
        if self.csv().is_none() {
            self.objects
                .retain(|object| object["metadata"].get("ownerReferences").is_none());
        }
    }

    fn unfinalize(&mut self, finalizer: &str) {
        let is_it = |object: &&mut Value| object["kind"] == "ClusterServiceVersion";
        let csv = self.objects.iter_mut().find(is_it).unwrap();
        let finalizers = csv["metadata"]["finalizers"].as_array_mut().unwrap();
        finalizers.retain(|one| one != finalizer);
        self.collect();
    }

    /// Fails if an object is missing that calls, or new callers, need.
    pub(super) fn check(&self, moment: &str) {
        let has = |kind: &str, name: &str| {
            let found = self.of_kind(kind);
            assert!(
                found
                    .iter()
                    .any(|object| name.is_empty() || object["metadata"]["name"] == name),
                "{moment}: no {kind} {name}"
            );
        };
        has("ClusterRole", "widgets.v1-abc");
        has("ClusterRoleBinding", "widgets.v1-abc");
        has("ServiceAccount", "widgets");
        has("ValidatingWebhookConfiguration", "vwidget-1");
        self.check_calls(moment);
    }

    /// Fails if an object is missing that calls need.
    pub(super) fn check_calls(&self, moment: &str) {
        for kind in ["Service", "Secret", "ServiceAccount"] {
            assert_eq!(self.of_kind(kind).len(), 1, "{moment}: {kind}");
        }
        let deployment = &self.of_kind("Deployment")[0];
        let volumes = &deployment["spec"]["template"]["spec"]["volumes"];
        assert_eq!(volumes, &json!([{"name": "webhook-cert"}]), "{moment}");
        let crd = &self.of_kind("CustomResourceDefinition")[0];
        assert_eq!(crd["spec"]["conversion"]["strategy"], "Webhook", "{moment}");
        let configurations = self.of_kind("ValidatingWebhookConfiguration");
        assert!(!configurations.is_empty(), "{moment}: no caller");
    }
}
