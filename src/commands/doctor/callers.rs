//! Callers of Services: webhook configurations, conversions and APIServices; and the managers of their
//! caBundles.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt as _, stream};
use serde_json::{Value, json};
use windlass_cluster::{
    Cluster, Index, Kind, RequestError, endpoints, kinds, lease::LeaderElectionRecord, watch::Watch,
};
use windlass_doctor::{
    CallState, DoctorFinding, DoctorSeverity, ServiceCall, answered_calls, api_service, caller_trust,
    crd_problems, intercepts_windlass, leader, other_ca_bundle_owners, other_controllers, two_injectors,
};
use windlass_object::{
    ObjectKey,
    ca_injectors::{CaInjector, CaInjectors},
    object,
};
use windlass_operator::install::traffic::{CalledPort, is_of_api_servers};
use windlass_report::ReportedTarget;
use windlass_trust::injection::{KINDS, TargetKind};

use super::{
    admission::{ReviewedResource, defined_resource, reviewed_resources},
    examination::Examination,
    versions::{Installation, lease_facts},
};

/// The callers of Services in the cluster.
#[derive(Debug, Default)]
pub(super) struct Callers {
    /// CustomResourceDefinitions whose conversion server is available: a kind for each served version.
    pub(super) converted: BTreeMap<ObjectKey, Vec<Kind>>,
    /// The resources for whose updates webhooks are called.
    pub(super) asked: BTreeSet<ReviewedResource>,
    /// The kinds of custom resources.
    pub(super) served: BTreeMap<ReviewedResource, Kind>,
    /// The namespaces of the called Services.
    pub(super) namespaces: BTreeSet<String>,
    /// The objects that request a CA bundle from Windlass.
    pub(super) targets: Vec<ReportedTarget>,
}

/// The relevant parts of one caller.
struct SeenCaller {
    key: ObjectKey,
    findings: Vec<DoctorFinding>,
    calls: Vec<ServiceCall>,
    /// A kind for each served version, if a webhook converts it.
    versions: Vec<Kind>,
    target: Option<ReportedTarget>,
    asked: BTreeSet<ReviewedResource>,
    served: Option<(ReviewedResource, Kind)>,
}

/// A Service by namespace and name, and its port.
type CallTarget = (String, String, i64);

/// How many Services are checked concurrently.
const AT_ONCE: usize = 8;

impl Examination<'_> {
    /// Checks all callers, and the Services that they call.
    pub(super) async fn check_callers(&mut self, installation: &Installation) -> Callers {
        let at_work = self.injectors().await;
        let labels = self.namespace_labels(installation).await;
        let mut seen = Vec::new();
        for target in KINDS.iter().filter(|target| !target.is_common()) {
            let (now, namespace) = (self.now(), self.namespace);
            let read = |object: Value| {
                let mut caller = SeenCaller::from_object(&object, target)?;
                caller.findings.extend(caller_trust(&object, now));
                caller.findings.extend(two_injectors(&object, &at_work));
                caller
                    .findings
                    .extend(intercepts_windlass(&object, namespace, &labels));
                Some(caller)
            };
            seen.extend(self.targets(target, read).await);
        }
        let crds: BTreeSet<_> = seen
            .iter()
            .filter(|caller| Kind::from_key(&caller.key) == kinds::CUSTOM_RESOURCE_DEFINITION)
            .map(|caller| caller.key.name.as_str())
            .collect();
        self.add(other_controllers(&crds));
        for caller in &mut seen {
            self.add(std::mem::take(&mut caller.findings));
        }
        let states = self.states(&seen).await;
        let mut callers = Callers::default();
        let mut answered = 0;
        for caller in seen {
            let mut is_answered = true;
            for call in caller.calls {
                callers.namespaces.insert(call.namespace.clone());
                let state = states.get(&call_target(&call)).copied();
                let finding = state.and_then(|state| call.judge(state));
                is_answered &= state.is_some() && finding.is_none();
                answered += usize::from(state.is_some() && finding.is_none());
                self.add(finding);
            }
            if is_answered && !caller.versions.is_empty() {
                callers.converted.insert(caller.key, caller.versions);
            }
            callers.targets.extend(caller.target);
            callers.asked.extend(caller.asked);
            callers.served.extend(caller.served);
        }
        self.add((answered > 0).then(|| answered_calls(answered)));
        callers
    }

    /// Lists the objects of a target kind, in its newest served version.
    async fn targets(
        &mut self,
        target: &TargetKind,
        mut read: impl FnMut(Value) -> Option<SeenCaller>,
    ) -> Vec<SeenCaller> {
        for kind in Kind::versions_of(target) {
            match self.cluster.list_as(&kind, None, None, &mut read).await {
                Ok(listed) => return listed,
                Err(RequestError::UnknownKind { .. }) => {}
                Err(error) => {
                    self.report_unchecked(&kind.kind, &kind, "list", None, &error)
                        .await;
                    return Vec::new();
                }
            }
        }
        Vec::new()
    }

    /// Returns the CA injectors that hold a current Lease.
    async fn injectors(&mut self) -> CaInjectors {
        let mut at_work = CaInjectors::new();
        for injector in CaInjector::ALL {
            let (namespaces, name) = injector.leases();
            for namespace in namespaces {
                let key = kinds::LEASE.object(Some(namespace), name);
                let Some(Some(lease)) = self.read(&key).await else {
                    continue;
                };
                let record = LeaderElectionRecord::from_lease(&lease);
                let leads = record.is_ok_and(|record| {
                    leader(&lease_facts(key, record), self.now()).severity == DoctorSeverity::Info
                });
                if leads {
                    at_work.insert(injector);
                }
            }
        }
        at_work
    }

    /// Returns the labels of Windlass's namespace; the default labels if it does not exist or cannot be read.
    async fn namespace_labels(&mut self, installation: &Installation) -> Value {
        let usual = json!({"kubernetes.io/metadata.name": self.namespace});
        if !installation.is_installed {
            return usual;
        }
        let key = kinds::NAMESPACE.object(None, self.namespace);
        let read = self.read(&key).await.flatten();
        let labels = read.and_then(|namespace| namespace.pointer("/metadata/labels").cloned());
        labels.unwrap_or(usual)
    }

    /// Returns the state of each called Service. Unreadable ones are left out.
    async fn states(&mut self, seen: &[SeenCaller]) -> BTreeMap<CallTarget, CallState> {
        let mut services = BTreeMap::<(String, String), BTreeSet<i64>>::new();
        for call in seen.iter().flat_map(|caller| &caller.calls) {
            let service = (call.namespace.clone(), call.service.clone());
            services.entry(service).or_default().insert(call.port);
        }
        let cluster = self.cluster;
        let looks = stream::iter(services).map(async |((namespace, service), ports)| {
            let key = kinds::SERVICE.object(Some(&namespace), &service);
            let looked = service_state(cluster, &key, &ports).await;
            (key, looked)
        });
        let looked: Vec<_> = looks.buffered(AT_ONCE).collect().await;
        let mut states = BTreeMap::new();
        for (key, looked) in looked {
            let namespace = key.namespace.clone().unwrap_or_default();
            match looked {
                Ok(ports) => states.extend(
                    ports
                        .into_iter()
                        .map(|(port, state)| ((namespace.clone(), key.name.clone(), port), state)),
                ),
                Err((kind, error)) if kind == kinds::SERVICE => self.report_unreadable(&key, &error).await,
                Err((kind, error)) => {
                    let subject = format!("Endpoints of {key}");
                    self.report_unchecked(&subject, &kind, "list", Some(&namespace), &error)
                        .await;
                }
            }
        }
        states
    }
}

fn call_target(call: &ServiceCall) -> CallTarget {
    (call.namespace.clone(), call.service.clone(), call.port)
}

/// Returns what is behind each port of a Service.
async fn service_state(
    cluster: &Cluster,
    key: &ObjectKey,
    ports: &BTreeSet<i64>,
) -> Result<Vec<(i64, CallState)>, (Kind, RequestError)> {
    let all = |state| Ok(ports.iter().map(|port| (*port, state)).collect());
    let read = cluster.read(key).await.map_err(|error| (kinds::SERVICE, error))?;
    let Some(service) = read else {
        return all(CallState::NoService);
    };
    if object::text(&service, "/spec/type") == Some("ExternalName") {
        return all(CallState::External);
    }
    let kind = kinds::ENDPOINT_SLICE;
    let selector = format!("{}={}", endpoints::SERVICE_NAME, key.name);
    let slices = cluster
        .list(&kind, key.namespace.as_deref(), Some(&selector))
        .await;
    let index = Index::new();
    let watch = Watch::all(kind.clone());
    for slice in slices.map_err(|error| (kind, error))? {
        index.apply(&watch, slice);
    }
    let states = ports.iter().map(|port| {
        let mut served = object::items(&service, "/spec/ports").iter();
        let has_port = served.any(|served| served.get("port").and_then(Value::as_i64) == Some(*port));
        let state = match has_port {
            false => CallState::NoPort,
            true => CallState::Endpoints {
                ready: endpoints::ready(&index, &service, Some(*port)).len(),
                total: endpoints::all(&index, &service, Some(*port)).len(),
            },
        };
        (*port, state)
    });
    Ok(states.collect())
}

impl SeenCaller {
    fn from_object(object: &Value, kind: &TargetKind) -> Option<Self> {
        let key = ObjectKey::from_object(object)?;
        let mut findings = Vec::new();
        findings.extend(other_ca_bundle_owners(object));
        let mut versions = Vec::new();
        match key.kind.as_str() {
            "CustomResourceDefinition" => {
                findings.extend(crd_problems(object));
                if object::text(object, "/spec/conversion/strategy") == Some("Webhook") {
                    let all = object::items(object, "/spec/versions").iter();
                    let served = all.filter(|version| version["served"] == Value::Bool(true));
                    let names = served.filter_map(|version| object::text(version, "/name"));
                    versions.extend(names.map(|name| Kind::from_crd(object, name)));
                }
            }
            "APIService" => findings.extend(api_service(object)),
            _ => {}
        }
        Some(Self {
            calls: service_calls(object, kind, &key),
            key,
            findings,
            versions,
            target: ReportedTarget::read(object, kind),
            asked: reviewed_resources(object),
            served: defined_resource(object),
        })
    }
}

fn service_calls(object: &Value, kind: &TargetKind, key: &ObjectKey) -> Vec<ServiceCall> {
    let holders = kind.holders(object).into_iter();
    let calls = holders.filter_map(|holder| {
        let called = CalledPort::from_reference(object.pointer(&format!("{}/service", holder.pointer))?)?;
        let webhook = holder.pointer.strip_suffix("/clientConfig").unwrap_or_default();
        let policy = object::text(object, &format!("{webhook}/failurePolicy"));
        Some(ServiceCall {
            caller: key.clone(),
            webhook: holder.entry.map(str::to_owned),
            is_fatal: is_of_api_servers(&key.kind) && policy != Some("Ignore"),
            namespace: called.namespace,
            service: called.service,
            port: called.port,
        })
    });
    calls.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_calls_and_served_kinds_are_read_from_an_object() {
        let client = |name: &str| json!({"service": {"namespace": "n", "name": name}});
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "metadata": {"name": "a"},
            "webhooks": [
                {"name": "a.example.com", "clientConfig": client("a")},
                {"name": "b.example.com", "clientConfig": client("b"), "failurePolicy": "Ignore"},
                {"name": "c.example.com", "clientConfig": {"url": "https://example.com"}},
            ],
        });
        let kind = TargetKind::from_object(&configuration).unwrap();
        let seen = SeenCaller::from_object(&configuration, kind).unwrap();
        let calls: Vec<_> = seen
            .calls
            .iter()
            .map(|call| (call.webhook.as_deref(), &*call.service, call.port, call.is_fatal))
            .collect();
        assert_eq!(
            calls,
            [
                (Some("a.example.com"), "a", 443, true),
                (Some("b.example.com"), "b", 443, false)
            ]
        );
        assert!(seen.versions.is_empty() && seen.target.is_none());

        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "a.example.com"},
            "spec": {
                "group": "example.com", "names": {"kind": "A"},
                "versions": [{"name": "v1", "served": true}, {"name": "v2", "served": false}],
                "conversion": {"strategy": "Webhook", "webhook": {"clientConfig": client("a")}},
            },
        });
        let seen =
            SeenCaller::from_object(&definition, TargetKind::from_object(&definition).unwrap()).unwrap();
        assert_eq!(seen.versions, [Kind::named("example.com/v1", "A")]);
        assert!(seen.calls[0].is_fatal);
    }
}
