//! Reconciliations and repairs against an API server that collects garbage at once, and counts what it is asked.

use std::{collections::HashMap, sync::Arc, time::Duration};

use http::{Method, Request, Response, StatusCode};
use jiff::SignedDuration;
use kube::{Client, client::Body};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tower::{BoxError, service_fn};
use windlass_cluster::{
    Cluster, Index, SystemClock, apply::Applier, events::Events, kinds, lease::Leadership, prober::Prober,
    telemetry::Metrics, watch::Watch, watches::Watches, worker::Action,
};
use windlass_object::{ObjectKey, names, object};
use windlass_trust::{
    injection::CaBundle,
    objects,
    pki::sample,
    rotation::{self, Timing},
    trust_bundle::TrustBundle,
};

use super::{
    history::{Histories, Overwrite},
    reconciler::CertificateReconciler,
    repair::Repair,
};
use crate::{context::Context, injection::InjectionOutcome, reporting::Announced};

/// An API server whose only ServingCertificate is deleted when its Secret is published.
struct Server {
    index: Arc<Index>,
    secrets: Mutex<HashMap<String, Value>>,
    published: Mutex<usize>,
    requests: Mutex<usize>,
}

/// The Secret that the ServingCertificate asks for.
const SECRET: &str = "hook-cert";

// === impl Server ===

impl Server {
    fn new() -> Arc<Self> {
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
            requests: Mutex::default(),
        })
    }

    async fn answer(self: Arc<Self>, request: Request<Body>) -> Result<Response<Body>, BoxError> {
        *self.requests.lock() += 1;
        let (parts, body) = request.into_parts();
        let sent: Value = serde_json::from_slice(&body.collect_bytes().await?).unwrap_or_default();
        let answer = match parts.uri.path() {
            path if !path.contains("/namespaces/") => {
                let kind = |name: &str, kind: &str| json!({"name": name, "kind": kind, "namespaced": true});
                Some(json!({"resources": [
                    kind("secrets", "Secret"), kind("events", "Event"),
                    kind("servingcertificates", "ServingCertificate"),
                ]}))
            }
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
        Ok(Response::builder()
            .status(code)
            .body(Body::from(body.to_string().into_bytes()))?)
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
            *self.published.lock() += 1;
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
        let cluster = Cluster::new(Client::new(service, "default"), timeout);
        let (watches, _) = Watches::new(cluster.clone(), self.index.clone());
        let context = Context {
            leadership: Leadership::always(),
            index: self.index.clone(),
            watches,
            applier: Applier::new(cluster.clone(), self.index.clone()),
            events: Events::new(cluster.clone(), None),
            cluster,
            prober: Prober { timeout },
            clock: Arc::new(SystemClock),
            metrics: Arc::new(Metrics::new()),
            namespace: "windlass-system".to_owned(),
            bundle_directory: None,
        };
        Arc::new(CertificateReconciler {
            context: Arc::new(context),
            timing: Timing::default(),
            histories: Histories::default(),
            announced: Announced::default(),
            run: 1,
            since: Leadership::always().acquired().await,
        })
    }
}

fn certificate() -> ObjectKey {
    kinds::SERVING_CERTIFICATE.object(Some("system"), "hook")
}

#[tokio::test]
async fn what_is_deleted_while_it_is_reconciled_is_not_published_again() {
    let server = Server::new();
    let next = server.reconciler().await.reconcile(certificate()).await.unwrap();
    assert_eq!(next, Action::AwaitChange);
    assert_eq!(*server.published.lock(), 1);
    assert_eq!(server.secrets.lock().len(), 0, "the CAs are left");
}

#[tokio::test]
async fn nobody_is_asked_about_a_target_that_carries_what_it_did() {
    let server = Server::new();
    let reconciler = server.reconciler().await;
    let trust = TrustBundle::new([sample::authority(1).certificate().clone()]).unwrap();
    let carried: rotation::TrustSet = trust.certificates().iter().map(objects::summary).collect();
    let hooks = kinds::VALIDATING_WEBHOOK_CONFIGURATION;
    let target = hooks.object(None, "hooks");
    let show = |bundle: &str| {
        let hook = json!({"name": "a.example.com", "clientConfig": {
            "service": {"namespace": "system", "name": "hook"}, "caBundle": bundle,
        }});
        let object = json!({
            "apiVersion": hooks.api_version, "kind": hooks.kind,
            "metadata": {"name": "hooks", "annotations": {names::INJECT_CA_FROM: "system/hook"}}, "webhooks": [hook],
        });
        server.index.apply(&Watch::all(hooks.clone()), object);
    };
    reconciler.histories.note(&Overwrite {
        certificate: &certificate(),
        target: &target,
        trust: &carried,
        is_repair: false,
        by: None,
        injected: &InjectionOutcome::Written,
        uptime: SignedDuration::ZERO,
        timing: &reconciler.timing,
    });
    for (bundle, is_asked) in [(CaBundle::encode(&trust), false), (String::new(), true)] {
        show(&bundle);
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
