//! Reconciliations against an API server that keeps what is written into statuses, and may refuse everything else.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use http::{Method, Request, Response, StatusCode};
use kube::{Client, client::Body};
use oci::RegistryOptions;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tower::{BoxError, service_fn};
use windlass_api::{BundleDeployment, BundleDeploymentStatus, BundleStatus, Source};
use windlass_bundle::render::{Conversion, ServingDefaults};
use windlass_cluster::{
    Cluster, Index, Kind, SystemClock,
    apply::{FieldOwner, apply_body},
    kinds,
    lease::Leadership,
    watch::Watch,
    worker::{Action, Queue},
};
use windlass_object::names;

use super::{
    halt::Halt,
    install_traces::InstallTraces,
    memory::{
        Decisions, Disarmed, DryRuns, Ledgers, Loader, Proofs, Seats, SufficientRights, Trials, Unretained,
    },
    objects::Armament,
    pulling::ImagePuller,
    reconciler::{BundleReconciler, Delays},
    report::InstallReport,
    triggers::enqueue,
    trust::TrustBundles,
};
use crate::{
    announced::Announced,
    context::Context,
    install::{
        plan::{Phases, Plan},
        revision::{InstallSettings, Ledger, RevisionInventory, RevisionRecord, owner_reference},
        status::InstallOutcome,
        traffic::Traffic,
    },
};

/// An API server with one BundleDeployment.
pub(super) struct Server {
    pub(super) index: Arc<Index>,
    pub(super) statuses: Mutex<Vec<Value>>,
    /// The resourceVersions that statuses were to replace.
    guards: Mutex<Vec<Value>>,
    /// What every write of a status is answered with.
    refusal: Mutex<Option<StatusCode>>,
    /// How what was deleted was to go.
    deletions: Mutex<Vec<Value>>,
    /// What else can be read, by its path.
    pub(super) readable: Mutex<HashMap<String, Value>>,
    deployment: Value,
}

impl Server {
    pub(super) fn new(deployment: Value) -> Arc<Self> {
        let index = Index::new();
        index.apply(&Watch::all(kinds::BUNDLE_DEPLOYMENT), deployment.clone());
        Arc::new(Self {
            index: Arc::new(index),
            statuses: Mutex::default(),
            guards: Mutex::default(),
            refusal: Mutex::default(),
            deletions: Mutex::default(),
            readable: Mutex::default(),
            deployment,
        })
    }

    async fn answer(self: Arc<Self>, request: Request<Body>) -> Result<Response<Body>, BoxError> {
        let (parts, body) = request.into_parts();
        let sent: Value = serde_json::from_slice(&body.collect_bytes().await?).unwrap_or_default();
        let path = parts.uri.path();
        let readable = self.readable.lock().get(path).cloned();
        let (code, body) = if let Some(found) = readable.filter(|_| parts.method == Method::GET) {
            (StatusCode::OK, found)
        } else if path.ends_with("/status") {
            self.statuses.lock().push(sent["status"].clone());
            self.guards
                .lock()
                .push(sent["metadata"]["resourceVersion"].clone());
            let refusal = *self.refusal.lock();
            refusal.map_or((StatusCode::OK, sent), |code| {
                let status = json!({
                    "kind": "Status", "status": "Failure", "message": "", "reason": "Conflict", "code": code.as_u16(),
                });
                (code, status)
            })
        } else if path == "/apis/windlass.dev/v1alpha1" {
            let kind = json!({"name": "bundledeployments", "kind": "BundleDeployment", "namespaced": false});
            (StatusCode::OK, json!({"resources": [kind]}))
        } else if path == "/apis/admissionregistration.k8s.io/v1" {
            let kind = |name: &str, kind: &str| json!({"name": name, "kind": kind, "namespaced": false});
            let kinds = [
                kind(
                    "validatingwebhookconfigurations",
                    "ValidatingWebhookConfiguration",
                ),
                kind("mutatingwebhookconfigurations", "MutatingWebhookConfiguration"),
            ];
            (StatusCode::OK, json!({ "resources": kinds }))
        } else if path == "/apis/apps/v1" || path == "/api/v1" {
            let kind = |name: &str, kind: &str| json!({"name": name, "kind": kind, "namespaced": true});
            let kinds = [
                kind("deployments", "Deployment"),
                kind("services", "Service"),
                kind("configmaps", "ConfigMap"),
            ];
            (StatusCode::OK, json!({ "resources": kinds }))
        } else if parts.method == Method::DELETE {
            self.deletions.lock().push(sent.clone());
            (StatusCode::OK, sent)
        } else if parts.method == Method::GET && path.contains("/bundledeployments/") {
            (StatusCode::OK, self.deployment.clone())
        } else {
            let status = json!({
                "kind": "Status", "status": "Failure", "message": "the policy engine says no", "reason": "Forbidden",
                "code": 403,
            });
            (StatusCode::FORBIDDEN, status)
        };
        Ok(Response::builder()
            .status(code)
            .body(Body::from(body.to_string().into_bytes()))?)
    }

    pub(super) async fn reconciler(self: &Arc<Self>) -> Arc<BundleReconciler> {
        let server = self.clone();
        let service = service_fn(move |request| server.clone().answer(request));
        let timeout = Duration::from_secs(10);
        let cluster = Cluster::new(Client::new(service, "default"), timeout);
        let context = Context::for_leader(cluster, self.index.clone(), Arc::new(SystemClock));
        let queue = Arc::new(Queue::new());
        let timing = Delays::default();
        let images = ImagePuller::new(&context, queue, RegistryOptions::default(), timing.tags);
        Arc::new(BundleReconciler {
            context: Arc::new(context),
            loader: Loader::default(),
            images: Arc::new(images),
            decisions: Decisions::default(),
            ledgers: Ledgers::default(),
            proofs: Proofs::default(),
            seats: Seats::default(),
            trials: Trials::default(),
            dry_runs: DryRuns::default(),
            disarmed: Disarmed::new(Leadership::always().wait_until_acquired().await),
            sufficient: SufficientRights::default(),
            unretained: Unretained::default(),
            histories: Arc::default(),
            reported: Arc::default(),
            announced: Announced::default(),
            installs: InstallTraces::default(),
            timing,
        })
    }

    /// What the last status says of the condition Accepted, and of which generation it is.
    fn accepted(&self) -> (Value, Value, Value) {
        let statuses = self.statuses.lock();
        let status = statuses.last().cloned().unwrap_or_default();
        let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        let accepted = conditions
            .into_iter()
            .find(|condition| condition["type"] == "Accepted");
        let accepted = accepted.unwrap_or_default();
        (
            accepted["reason"].clone(),
            accepted["message"].clone(),
            status["observedGeneration"].clone(),
        )
    }
}

pub(super) fn deployment(spec: Value) -> Value {
    json!({
        "apiVersion": names::API_VERSION, "kind": "BundleDeployment",
        "metadata": {"name": "a", "uid": "1", "generation": 3, "resourceVersion": "7"},
        "spec": spec,
        "status": {"observedGeneration": 2, "conversions": [{"crd": "widgets.example.com", "state": "Armed"}]},
    })
}

pub(super) fn plan(objects: impl IntoIterator<Item = Value>) -> Plan {
    Plan {
        namespace: "a".to_owned(),
        phases: Phases::new(objects),
        conversions: vec![],
        self_managed: None,
        certificates: vec![],
        serving: ServingDefaults::default(),
        examples: vec![],
        notices: vec![],
    }
}

#[tokio::test]
async fn one_that_cannot_be_read_says_so_and_keeps_nobody_waiting() {
    let server = Server::new(deployment(json!({
        "namespace": "a", "source": {}, "deletionPolicy": "OfALaterRelease",
    })));
    let next = server.reconciler().await.reconcile("a".to_owned()).await;
    assert_eq!(next.unwrap(), Action::AwaitChange);
    let (reason, message, generation) = server.accepted();
    assert_eq!((reason, generation), (json!("SpecUnreadable"), json!(3)));
    assert!(message.as_str().unwrap().contains("OfALaterRelease"), "{message}");
    let claims = server.statuses.lock()[0]["conversions"][0]["crd"].clone();
    assert_eq!(claims, "widgets.example.com", "what it claimed stays claimed");
}

#[tokio::test]
async fn a_finalizer_that_is_refused_is_reported() {
    let server = Server::new(deployment(json!({"namespace": "a", "source": {}})));
    let error = server.reconciler().await.reconcile("a".to_owned()).await;
    assert!(error.is_err());
    let (reason, message, generation) = server.accepted();
    assert_eq!((reason, generation), (json!("Retrying"), json!(3)));
    assert!(
        message.as_str().unwrap().contains("the policy engine says no"),
        "{message}"
    );
}

#[tokio::test]
async fn what_is_concluded_from_an_older_status_is_not_written() {
    let before = deployment(json!({"namespace": "a", "source": {}}));
    let server = Server::new(before.clone());
    let reconciler = server.reconciler().await;
    let read: BundleDeployment = serde_json::from_value(before.clone()).unwrap();
    let concluded = BundleDeploymentStatus {
        observed_generation: Some(3),
        ..read.status.clone().unwrap()
    };
    let shown = |version: &str, status: &Value| {
        let mut after = before.clone();
        after["metadata"]["resourceVersion"] = version.into();
        after["status"] = status.clone();
        server.index.apply(&Watch::all(kinds::BUNDLE_DEPLOYMENT), after);
    };
    let write = async || reconciler.write_status(&before, &read, concluded.clone()).await;

    let mut installed = before["status"].clone();
    installed["installed"] = json!({
        "revision": 1, "package": "a", "name": "a", "version": "1.0.0", "digest": "d", "healthy": true,
    });
    shown("8", &installed);
    assert!(!write().await.unwrap(), "a write that the watch shows only now");
    assert!(server.statuses.lock().is_empty());

    // Somebody changes something else: what was concluded holds.
    shown("9", &before["status"]);
    assert!(write().await.unwrap());
    assert_eq!(*server.guards.lock(), ["9"]);

    *server.refusal.lock() = Some(StatusCode::CONFLICT);
    assert!(!write().await.unwrap(), "a write that no watch shows yet");
}

#[tokio::test]
async fn a_deployment_is_there_until_its_pods_are_gone() {
    let server = Server::new(deployment(json!({"namespace": "a", "source": {}})));
    let reconciler = server.reconciler().await;
    for kind in [kinds::DEPLOYMENT, kinds::SERVICE] {
        let live = json!({
            "apiVersion": kind.api_version, "kind": kind.kind,
            "metadata": {"namespace": "a", "name": "a", "uid": "2"},
        });
        assert!(reconciler.delete(&live, &FieldOwner::default()).await.is_ok());
    }
    let deletions = server.deletions.lock();
    let policies: Vec<_> = deletions
        .iter()
        .map(|deletion| &deletion["propagationPolicy"])
        .collect();
    assert_eq!(policies, ["Foreground", "Background"]);
}

#[tokio::test]
async fn dropped_webhook_configurations_go_together_when_what_replaces_them_is_observed() {
    let object = deployment(json!({"namespace": "a", "source": {}}));
    let server = Server::new(object.clone());
    let reconciler = server.reconciler().await;
    let owner = reconciler.owner(&serde_json::from_value(object).unwrap());
    let configuration = |kind: Kind, name: &str| {
        let configuration = json!({
            "apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name, "uid": name},
        });
        let mut live = apply_body(&configuration, &owner);
        live["metadata"]["uid"] = name.into();
        live["metadata"]["managedFields"] = json!([{"manager": names::INSTALL, "operation": "Apply"}]);
        server.index.apply(&Watch::all(kind), live);
        configuration
    };
    let (validating, mutating) = (
        kinds::VALIDATING_WEBHOOK_CONFIGURATION,
        kinds::MUTATING_WEBHOOK_CONFIGURATION,
    );
    let kept = configuration(validating.clone(), "kept");
    for (kind, name) in [(validating.clone(), "a"), (validating, "b"), (mutating, "c")] {
        configuration(kind, name);
    }
    let plan = plan([kept]);
    reconciler.note_disarmed(&owner);
    let waiting = reconciler.delete_dropped_callers(&owner, &plan).await;
    assert!(matches!(waiting, Err(Halt::Later(..))));
    assert!(
        server.deletions.lock().is_empty(),
        "what replaces them is not observed"
    );
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(3600)).await;
    tokio::time::resume();
    let deleted = reconciler.delete_dropped_callers(&owner, &plan).await;
    assert!(deleted.is_ok());
    let deletions = server.deletions.lock();
    let mut uids: Vec<_> = deletions
        .iter()
        .filter_map(|deletion| deletion["preconditions"]["uid"].as_str())
        .collect();
    uids.sort_unstable();
    assert_eq!(uids, ["a", "b", "c"]);
    assert!(reconciler.is_disarming(&owner));
}

#[tokio::test]
async fn a_switch_whose_answer_is_lost_is_waited_for() {
    let object = deployment(json!({"namespace": "a", "source": {}}));
    let server = Server::new(object.clone());
    let reconciler = server.reconciler().await;
    let owner = reconciler.owner(&serde_json::from_value(object.clone()).unwrap());
    let name = "widgets.example.com";
    let live = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": name, "uid": "1"},
        "spec": {"conversion": {"strategy": "None"}, "versions": [{"name": "v1", "served": true, "storage": true}]},
    });
    let crds = kinds::CUSTOM_RESOURCE_DEFINITION;
    server.index.apply(&Watch::all(crds), live.clone());
    let path = "/apis/apiextensions.k8s.io/v1";
    let kind =
        json!({"name": "customresourcedefinitions", "kind": "CustomResourceDefinition", "namespaced": false});
    server.readable.lock().extend([
        (path.to_owned(), json!({"resources": [kind]})),
        (format!("{path}/customresourcedefinitions/{name}"), live),
    ]);
    let traffic = Traffic {
        services: Vec::new(),
        callers: Vec::new(),
        conversions: vec![Conversion {
            crd: name.to_owned(),
            namespace: "a".to_owned(),
            service: "s".to_owned(),
            port: 443,
            path: "/convert".to_owned(),
            review_versions: vec!["v1".to_owned()],
        }],
    };
    let armament = Armament {
        traffic: &traffic,
        trust_bundles: &TrustBundles::default(),
    };
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(3600)).await;
    tokio::time::resume();
    assert!(!reconciler.is_disarming(&owner));
    // This API server answers no patch of a CRD.
    let mut report = InstallReport::new(&serde_json::from_value(object).unwrap());
    let armed = reconciler
        .arm(&owner, &plan([]), &armament, true, &mut report)
        .await;
    assert!(armed.is_err());
    assert!(reconciler.is_disarming(&owner));
}

#[tokio::test]
async fn a_record_is_deleted_only_if_it_is_the_one_that_was_seen() {
    let object = deployment(json!({"namespace": "a", "source": {}}));
    let server = Server::new(object.clone());
    let reconciler = server.reconciler().await;
    for (revision, owner) in [(1, "1"), (2, "2")] {
        let record = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "namespace": "windlass-system", "name": format!("a-revision-{revision}"), "uid": format!("of-{revision}"),
                "ownerReferences": [owner_reference("a", owner)],
            },
        });
        server.index.apply(&Watch::all(kinds::CONFIG_MAP), record);
        let deployment = serde_json::from_value(object.clone()).unwrap();
        assert!(reconciler.delete_record(&deployment, revision).await.is_ok());
    }
    let deletions = server.deletions.lock();
    let uids: Vec<_> = deletions
        .iter()
        .map(|deletion| &deletion["preconditions"]["uid"])
        .collect();
    assert_eq!(uids, ["of-1"], "and the other one has another owner");
}

#[tokio::test]
async fn what_is_asked_for_while_the_router_lags_is_watched() {
    let object = deployment(json!({"namespace": "a", "source": {}}));
    let server = Server::new(object.clone());
    let context = server.reconciler().await.context.clone();
    let queue = Arc::new(Queue::new());
    let router = enqueue(context.clone(), queue, Arc::default(), Arc::default());
    let router = tokio::spawn(router);
    tokio::task::yield_now().await;
    let mut wider = object;
    wider["spec"]["watchNamespaces"] = json!(["late"]);
    server.index.apply(&Watch::all(kinds::BUNDLE_DEPLOYMENT), wider);
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": "n", "name": "s"}});
    for _ in 0..10_000 {
        server.index.apply(&Watch::all(kinds::SERVICE), service.clone());
    }
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(context.watches.unlisted().contains(&kinds::NAMESPACE));
    router.abort();
}

#[tokio::test]
async fn what_cannot_be_listed_is_not_taken_for_gone_after_an_upgrade() {
    let object = deployment(json!({"namespace": "a", "source": {}}));
    let server = Server::new(object.clone());
    let reconciler = server.reconciler().await;
    let deployment: BundleDeployment = serde_json::from_value(object).unwrap();
    let owner = reconciler.owner(&deployment);
    let kind = Kind::new("policy/v1", "PodDisruptionBudget");
    let record = RevisionRecord {
        number: 1,
        bundle: BundleStatus::default(),
        source: Source::default(),
        image: None,
        settings: InstallSettings::of(&deployment.spec),
        config_maps: vec![],
        installed: true,
        inventory: RevisionInventory::planned([kind.object(Some("a"), "dropped")]),
    };
    let ledger = Arc::new(Ledger::new(vec![record]));
    reconciler.ledgers.keep("a", BTreeMap::new(), ledger);
    let watch = Watch::all(kind.clone());
    reconciler.context.watches.start(watch.clone());
    let plan = plan([]);
    let traffic = Traffic {
        services: vec![],
        callers: vec![],
        conversions: vec![],
    };
    let remove = || reconciler.remove_dropped(&deployment, &owner, &plan, &traffic);

    let Err(Halt::Gate(InstallOutcome::Waiting { reason, message, .. })) = remove().await else {
        panic!("what is neither listed nor read is not waited for");
    };
    assert_eq!(reason, "KindUnlisted");
    assert!(message.contains("PodDisruptionBudget"), "{message}");

    let budget = json!({
        "apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"namespace": "a", "name": "dropped"},
    });
    let mut live = apply_body(&budget, &owner);
    live["metadata"]["uid"] = "2".into();
    live["metadata"]["managedFields"] = json!([{"manager": names::INSTALL, "operation": "Apply"}]);
    let served = json!({"name": "poddisruptionbudgets", "kind": kind.kind, "namespaced": true});
    let path = "/apis/policy/v1/namespaces/a/poddisruptionbudgets/dropped";
    server.readable.lock().extend([
        ("/apis/policy/v1".to_owned(), json!({ "resources": [served] })),
        (path.to_owned(), live),
    ]);
    assert!(remove().await.is_ok());
    assert_eq!(server.deletions.lock().len(), 1);

    server.index.begin_relist(&watch);
    server.index.finish_relist(&watch);
    assert!(remove().await.is_ok());
    assert_eq!(
        server.deletions.lock().len(),
        1,
        "the watch shows that it is gone"
    );
}
