//! Reconciliations and repairs against an API server that collects garbage immediately and counts requests.

use std::{collections::HashMap, sync::Arc, time::Duration};

use http::{Method, Request, Response, StatusCode, header};
use jiff::{SignedDuration, Timestamp, fmt::rfc2822::DateTimePrinter};
use kube::{Client, client::Body};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tower::{BoxError, service_fn};
use windlass_cluster::{
    ApiServerClock, Cluster, Index, kinds, lease::Leadership, watch::Watch, worker::Action,
};
use windlass_object::{ObjectKey, names, object};
use windlass_trust::{
    injection::CaBundle,
    objects::{self, CaSecret, CertificateStore},
    pki::{pem, sample},
    rotation::{self, CaState, PublishedSecret, Timing, Versioned},
    trust_bundle::TrustBundle,
};

use super::{
    execute::StepsOutcome,
    history::{Histories, InjectionRecord},
    obstacle_backoff::ObstacleBackoff,
    other_installs::OtherInstalls,
    probe_schedule::ProbeSchedule,
    reconciler::CertificateReconciler,
    repair::Repair,
    rotation_traces::RotationTraces,
    secrets::{KnownSecrets, Secrets},
};
use crate::{announced::Announced, context::Context, injection::InjectionOutcome};

/// An API server whose only ServingCertificate is deleted when its Secret is published.
struct Server {
    index: Arc<Index>,
    secrets: Mutex<HashMap<String, Value>>,
    published: Mutex<Vec<Value>>,
    /// The written statuses.
    statuses: Mutex<Vec<Value>>,
    requests: Mutex<usize>,
    /// The list of Leases in any namespace.
    leases: Mutex<Value>,
    /// How far its clock is behind that of this machine.
    behind: SignedDuration,
}

/// Name of the Secret of the ServingCertificate.
const SECRET: &str = "hook-cert";

impl Server {
    fn new() -> Arc<Self> {
        Self::with_clock_behind(SignedDuration::ZERO)
    }

    fn with_clock_behind(behind: SignedDuration) -> Arc<Self> {
        let index = Index::new();
        index.apply(
            &Watch::all(kinds::SERVING_CERTIFICATE),
            json!({
                "apiVersion": names::API_VERSION, "kind": "ServingCertificate",
                "metadata": {"namespace": "system", "name": "hook", "uid": "1", "generation": 1},
                "spec": {"serviceName": "hook", "secretName": SECRET},
            }),
        );
        Arc::new(Self {
            index: Arc::new(index),
            secrets: Mutex::default(),
            published: Mutex::default(),
            statuses: Mutex::default(),
            requests: Mutex::default(),
            leases: Mutex::new(json!({"items": []})),
            behind,
        })
    }

    async fn answer(self: Arc<Self>, request: Request<Body>) -> Result<Response<Body>, BoxError> {
        *self.requests.lock() += 1;
        let (parts, body) = request.into_parts();
        let sent: Value = serde_json::from_slice(&body.collect_bytes().await?).unwrap_or_default();
        let answer = match parts.uri.path() {
            path if path.contains("/validatingwebhookconfigurations/") => self.patched(path, sent),
            path if !path.contains("/namespaces/") => {
                let kind = |name: &str, kind: &str| json!({"name": name, "kind": kind, "namespaced": true});
                Some(json!({"resources": [
                    kind("secrets", "Secret"), kind("events", "Event"),
                    kind("servingcertificates", "ServingCertificate"),
                    kind("leases", "Lease"),
                    kind("validatingwebhookconfigurations", "ValidatingWebhookConfiguration"),
                ]}))
            }
            path if path.ends_with("/status") => {
                self.statuses.lock().push(sent.clone());
                Some(sent)
            }
            path if path.ends_with("/leases") => Some(self.leases.lock().clone()),
            path if path.contains("/secrets") => self.secret(&parts.method, path, sent),
            _ if parts.method == Method::GET => None,
            _ => Some(sent),
        };
        let (code, body) = answer.map_or_else(
            || {
                let status =
                    json!({"kind": "Status", "status": "Failure", "message": "", "reason": "", "code": 404});
                (StatusCode::NOT_FOUND, status)
            },
            |answer| (StatusCode::OK, answer),
        );
        let date = DateTimePrinter::new().timestamp_to_rfc9110_string(&self.now())?;
        Ok(Response::builder()
            .status(code)
            .header(header::DATE, date)
            .body(Body::from(body.to_string().into_bytes()))?)
    }

    fn patched(&self, path: &str, patch: Value) -> Option<Value> {
        let name = path.rsplit('/').next()?;
        let key = kinds::VALIDATING_WEBHOOK_CONFIGURATION.object(None, name);
        let mut target = Value::clone(&*self.index.find(&key)?);
        let patch: json_patch::Patch = serde_json::from_value(patch).ok()?;
        json_patch::patch(&mut target, &patch).ok()?;
        Some(target)
    }

    /// Adds targets with `bundle` to the index.
    fn show_targets(&self, names: impl IntoIterator<Item = String>, bundle: &str) {
        self.show_targets_at(names, bundle, None);
    }

    fn show_targets_at(&self, names: impl IntoIterator<Item = String>, bundle: &str, version: Option<&str>) {
        let hooks = kinds::VALIDATING_WEBHOOK_CONFIGURATION;
        for name in names {
            let hook = json!({"name": "a.example.com", "clientConfig": {
                "service": {"namespace": "system", "name": "hook"}, "caBundle": bundle,
            }});
            let mut object = json!({
                "apiVersion": hooks.api_version, "kind": hooks.kind,
                "metadata": {"name": name, "annotations": {names::INJECT_CA_FROM: "system/hook"}}, "webhooks": [hook],
            });
            if let Some(version) = version {
                object["metadata"]["resourceVersion"] = version.into();
            }
            self.index.apply(&Watch::all(hooks.clone()), object);
        }
    }

    /// Adds both Secrets of the ServingCertificate to the index.
    fn show_secrets(&self, version: &str) {
        let authority = CaSecret::key("windlass-system", &certificate());
        for key in [authority, kinds::SECRET.object(Some("system"), SECRET)] {
            let secret = json!({
                "apiVersion": "v1", "kind": "Secret",
                "metadata": {"namespace": key.namespace, "name": key.name, "resourceVersion": version},
            });
            self.index.apply(&Watch::all(kinds::SECRET), secret);
        }
    }

    fn now(&self) -> Timestamp {
        Timestamp::now() - self.behind
    }

    fn secret(&self, method: &Method, path: &str, mut sent: Value) -> Option<Value> {
        let mut secrets = self.secrets.lock();
        let name = path.rsplit('/').next().unwrap_or_default();
        match *method {
            Method::GET => return secrets.get(name).cloned(),
            Method::DELETE => return secrets.remove(name),
            _ => {}
        }
        let name = object::text(&sent, "/metadata/name")?.to_owned();
        if name == SECRET {
            self.published.lock().push(sent.clone());
            let watch = Watch::all(kinds::SERVING_CERTIFICATE);
            self.index.delete(&watch, &certificate());
            return Some(sent);
        }
        sent["metadata"]["resourceVersion"] = "1".into();
        secrets.insert(name, sent.clone());
        Some(sent)
    }

    async fn reconciler(self: &Arc<Self>) -> Arc<CertificateReconciler> {
        let server = self.clone();
        let service = service_fn(move |request| server.clone().answer(request));
        let timeout = Duration::from_secs(10);
        let clock = Arc::new(ApiServerClock::new());
        let cluster = Cluster::new(clock.observe_responses(Client::new(service, "default")), timeout);
        let context = Context::for_leader(cluster, self.index.clone(), clock);
        Arc::new(CertificateReconciler {
            context: Arc::new(context),
            timing: Timing::default(),
            histories: Histories::default(),
            probe_schedule: ProbeSchedule::new(Duration::from_secs(5)),
            obstacle_backoff: ObstacleBackoff::default(),
            secrets: KnownSecrets::default(),
            other_installs: OtherInstalls::default(),
            announced: Announced::default(),
            rotations: RotationTraces::default(),
            bundles: Mutex::default(),
            run: 1,
            since: Leadership::always().wait_until_acquired().await,
        })
    }
}

fn certificate() -> ObjectKey {
    kinds::SERVING_CERTIFICATE.object(Some("system"), "hook")
}

#[tokio::test]
async fn a_certificate_deleted_during_reconciliation_is_not_published_again() {
    let server = Server::new();
    let next = server.reconciler().await.reconcile(certificate()).await.unwrap();
    assert_eq!(next, Action::AwaitChange);
    assert_eq!(server.published.lock().len(), 1);
    assert_eq!(server.secrets.lock().len(), 0, "the CAs were not deleted");
}

#[tokio::test]
async fn issued_certificates_are_already_valid_for_the_api_server() {
    for hours in [-1, 1] {
        let server = Server::with_clock_behind(SignedDuration::from_hours(hours));
        server.reconciler().await.reconcile(certificate()).await.unwrap();
        let published = server.published.lock().pop().unwrap();
        for data in ["tls.crt", "ca.crt"] {
            let pem = object::data(&published, data).unwrap();
            for certificate in pem::read(&pem).certificates {
                assert!(certificate.validity().contains(server.now()), "{data} {hours}");
            }
        }
    }
}

#[tokio::test]
async fn an_unchanged_target_causes_no_requests() {
    let server = Server::new();
    let reconciler = server.reconciler().await;
    let trust = TrustBundle::new([sample::authority(1).certificate().clone()]).unwrap();
    let carried: rotation::TrustSet = trust.certificates().iter().map(objects::summary).collect();
    let target = kinds::VALIDATING_WEBHOOK_CONFIGURATION.object(None, "hooks");
    reconciler.histories.record(&InjectionRecord {
        certificate: &certificate(),
        target: &target,
        trust: &carried,
        is_repair: false,
        by: None,
        injected: &InjectionOutcome::Written(None),
        uptime: SignedDuration::ZERO,
        timing: &reconciler.timing,
    });
    for (bundle, is_asked) in [(CaBundle::encode(&trust), false), (String::new(), true)] {
        server.show_targets(["hooks".to_owned()], &bundle);
        let repair = Repair {
            target: target.clone(),
            certificate: certificate(),
        };
        assert_eq!(
            reconciler.clone().repair(repair).await.unwrap(),
            Action::AwaitChange
        );
        assert_eq!(*server.requests.lock() > 0, is_asked, "{bundle:?}");
    }
}

/// Two trusted CAs that sign, with both Secrets at version `1`.
fn two_authorities() -> Secrets {
    let mut certificates = CertificateStore::default();
    let [current, next] = [1, 2].map(|generation| rotation::Ca {
        generation,
        certificate: certificates.insert(sample::authority(generation).certificate()),
        signs_since: None,
        has_key: true,
        matches_spec: true,
    });
    let authorities = CaState {
        current: Some(current),
        next: Some(next),
        ..CaState::default()
    };
    let serving = PublishedSecret {
        bundle: Some(authorities.certificates().copied().collect()),
        ..PublishedSecret::default()
    };
    let version = "1".to_owned();
    Secrets {
        authorities: Some(Versioned {
            version: version.clone(),
            content: authorities,
        }),
        serving: Some(Versioned {
            version,
            content: serving,
        }),
        allow_direct_injection: false,
        certificates,
    }
}

#[tokio::test]
async fn the_cost_of_a_repair_does_not_depend_on_the_number_of_targets() {
    let stale = TrustBundle::new([sample::authority(1).certificate().clone()]).unwrap();
    let name = |number: usize| format!("hooks-{number}");
    for count in [10, 1000] {
        // The sample certificates are valid at that time.
        let server = Server::with_clock_behind(Timestamp::now().duration_since(sample::NOW));
        let reconciler = server.reconciler().await;
        server.show_targets((0..count).map(name), &CaBundle::encode(&stale));
        server.show_secrets("1");
        reconciler.secrets.insert(&certificate(), two_authorities());
        let repair = Repair {
            target: kinds::VALIDATING_WEBHOOK_CONFIGURATION.object(None, "hooks-7"),
            certificate: certificate(),
        };
        let desired = reconciler.desired(&certificate()).unwrap().unwrap();
        // Sets the clock and sends the discovery request.
        reconciler.context.cluster.read(&repair.target).await.unwrap();
        let before = *server.requests.lock();
        let gathered = reconciler.gather_target(&desired, &repair.target, &reconciler.timing);
        let gathered = gathered.await.unwrap().unwrap();
        assert_eq!(gathered.observation.targets.len(), 1);
        assert_eq!(gathered.certificates.parsed_bundle_count(), 1);
        assert!(reconciler.is_repair_due(&repair).await.unwrap());
        assert_eq!(
            *server.requests.lock(),
            before,
            "a standby process sends no request to find out whether a repair is due"
        );
        reconciler.clone().repair(repair.clone()).await.unwrap();
        assert_eq!(
            *server.requests.lock() - before,
            1,
            "one write among {count} targets"
        );
        // A newer version in the watch must be read before it is used.
        server.show_secrets("2");
        reconciler.clone().repair(repair).await.unwrap();
        assert!(*server.requests.lock() - before > 2);
    }
}

#[tokio::test]
async fn a_target_that_is_already_repaired_is_not_written_again() {
    let stale = TrustBundle::new([sample::authority(1).certificate().clone()]).unwrap();
    let both = [1, 2].map(|generation| sample::authority(generation).certificate().clone());
    let both = TrustBundle::new(both).unwrap();
    for (meanwhile, writes) in [(&stale, 1), (&both, 0)] {
        // The sample certificates are valid at that time.
        let server = Server::with_clock_behind(Timestamp::now().duration_since(sample::NOW));
        let reconciler = server.reconciler().await;
        server.show_targets(["hooks".to_owned()], &CaBundle::encode(&stale));
        server.show_secrets("1");
        reconciler.secrets.insert(&certificate(), two_authorities());
        let target = kinds::VALIDATING_WEBHOOK_CONFIGURATION.object(None, "hooks");
        let desired = reconciler.desired(&certificate()).unwrap().unwrap();
        // Sets the clock and sends the discovery request.
        reconciler.context.cluster.read(&target).await.unwrap();
        let timing = &reconciler.timing;
        let gathered = reconciler.gather_target(&desired, &target, timing);
        let mut gathered = gathered.await.unwrap().unwrap();
        let steps = rotation::repairs(&gathered.observation, timing);
        assert_eq!(steps.len(), 1, "{steps:?}");
        server.show_targets(["hooks".to_owned()], &CaBundle::encode(meanwhile));
        let before = *server.requests.lock();
        let outcome = reconciler
            .execute(&desired, &mut gathered, &steps, timing)
            .await
            .unwrap();
        assert_eq!(outcome, StepsOutcome::Awaited);
        assert_eq!(*server.requests.lock() - before, writes);
    }
}

#[tokio::test]
async fn a_write_is_not_repeated_before_the_watch_delivers_it() {
    let stale = TrustBundle::new([sample::authority(1).certificate().clone()]).unwrap();
    // The sample certificates are valid at that time.
    let server = Server::with_clock_behind(Timestamp::now().duration_since(sample::NOW));
    let reconciler = server.reconciler().await;
    server.show_secrets("1");
    reconciler.secrets.insert(&certificate(), two_authorities());
    let target = kinds::VALIDATING_WEBHOOK_CONFIGURATION.object(None, "hooks");
    // Sets the clock and sends the discovery request.
    reconciler.context.cluster.read(&target).await.unwrap();
    for (version, writes) in [("7", 1), ("7", 0), ("8", 1)] {
        server.show_targets_at(["hooks".to_owned()], &CaBundle::encode(&stale), Some(version));
        let before = *server.requests.lock();
        let repair = Repair {
            target: target.clone(),
            certificate: certificate(),
        };
        reconciler.clone().repair(repair).await.unwrap();
        assert_eq!(*server.requests.lock() - before, writes, "{version}");
    }
}

#[tokio::test]
async fn a_certificate_of_another_installation_is_skipped_until_that_stops() {
    let server = Server::new();
    let reconciler = server.reconciler().await;
    let serving = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
        "metadata": {
            "namespace": "system", "name": SECRET, "resourceVersion": "7",
            "labels": {names::SERVING_CERTIFICATE: "hook"},
            "annotations": {names::OPERATOR_NAMESPACE: "other-system"},
        },
    });
    server.secrets.lock().insert(SECRET.to_owned(), serving);
    let lease =
        json!({"metadata": {"namespace": "other-system", "name": "windlass", "resourceVersion": "5"}});
    *server.leases.lock() = json!({"items": [lease]});
    // The other installation has CAs. This API server ignores the namespaces of Secrets.
    server
        .secrets
        .lock()
        .insert("system.hook".to_owned(), authority());
    let next = reconciler.clone().reconcile(certificate()).await.unwrap();
    assert!(matches!(next, Action::Requeue(_)), "{next:?}");
    assert_eq!(server.published.lock().len(), 0);
    let desired = reconciler.desired(&certificate()).unwrap().unwrap();
    let gathered = reconciler.gather(&desired, &reconciler.timing).await.unwrap();
    let obstacle = gathered.err().unwrap();
    assert_eq!(
        (obstacle.condition, obstacle.reason),
        ("Exclusive", "OperatorConflict")
    );

    *server.leases.lock() = json!({"items": []});
    reconciler.reconcile(certificate()).await.unwrap();
    let published = server.published.lock().pop().unwrap();
    let keeper = object::annotation(&published, names::OPERATOR_NAMESPACE);
    assert_eq!(keeper, Some("windlass-system"));
}

#[tokio::test]
async fn an_obstacle_makes_conditions_unknown_but_keeps_the_reload_alarm() {
    let condition = |condition_type, status, reason| {
        json!({"type": condition_type, "status": status, "reason": reason,
        "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    for (status, reason, expected) in [
        ("True", "Current", "ForeignSecret"),
        ("False", "Untrusted", "ForeignSecret"),
        ("False", "NotReloaded", "NotReloaded"),
    ] {
        let server = Server::new();
        let mut known = Value::clone(&*server.index.find(&certificate()).unwrap());
        let ready = condition("Ready", status, reason);
        let [trusted, served] = ["Trusted", "Served"].map(|word| condition(word, "True", "Current"));
        known["status"] = json!({"conditions": [ready, trusted, served]});
        server.index.apply(&Watch::all(kinds::SERVING_CERTIFICATE), known);
        let foreign = json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
            "metadata": {"namespace": "system", "name": SECRET, "resourceVersion": "7"}});
        server.secrets.lock().insert(SECRET.to_owned(), foreign);
        let reconciler = server.reconciler().await;
        reconciler.reconcile(certificate()).await.unwrap();
        let written = server.statuses.lock().pop().unwrap();
        let says = |word| {
            let condition = object::condition(&written, word).unwrap();
            let text = |field| object::text(condition, field).unwrap();
            format!("{} {}", text("/status"), text("/reason"))
        };
        assert_eq!(says("Ready"), format!("False {expected}"), "{reason}");
        assert_eq!(says("Trusted"), "Unknown ForeignSecret");
        assert_eq!(says("Served"), "Unknown ForeignSecret");
    }
}

/// An empty CA Secret of this installation.
fn authority() -> Value {
    let key = certificate();
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {
            "namespace": "windlass-system", "name": "system.hook", "resourceVersion": "1",
            "labels": {names::SERVING_CERTIFICATE_NAMESPACE: key.namespace},
            "annotations": {names::SERVING_CERTIFICATE: key.name},
        },
    })
}
