//! Proof before arming: every ready endpoint is of the newest revision, presents a certificate that verifies under the
//! trust bundle, and converts.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use parking_lot::Mutex;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{Halt, Reconciler, rollout};
use crate::{
    cluster::{
        Kind,
        endpoints::{self, Endpoint},
        kinds,
        prober::{ConversionWebhook, TrustAnchors},
    },
    controllers::worker::chain,
    domain::{
        conversion_review::ConversionReview,
        object,
        plan::{Phase, Plan, minimal_object},
        render::Conversion,
        status::{Standing, Step},
    },
};

/// What has been proven already, by BundleDeployment: an endpoint is not dialled again while nothing has changed.
#[derive(Default)]
pub(super) struct Proofs {
    known: Mutex<HashMap<String, HashSet<Fact>>>,
}

/// One thing that was seen of one endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Fact {
    endpoint: Endpoint,
    /// SHA-256 of the trust bundle.
    trust: [u8; 32],
    /// What it is called by and what it was asked to do.
    subject: String,
}

/// A Service whose endpoints webhooks call.
struct Server {
    service: String,
    port: i64,
    endpoints: Vec<Endpoint>,
    anchors: TrustAnchors,
    trust: [u8; 32],
}

/// The port of a webhook's Service where it names none (`admissionregistration.k8s.io/v1` ServiceReference).
const DEFAULT_PORT: i64 = 443;

// === impl Proofs ===

impl Proofs {
    /// Forgets a BundleDeployment that is gone.
    pub(super) fn forget(&self, name: &str) {
        self.known.lock().remove(name);
    }

    fn holds(&self, name: &str, fact: &Fact) -> bool {
        self.known
            .lock()
            .get(name)
            .is_some_and(|facts| facts.contains(fact))
    }

    fn add(&self, name: &str, fact: Fact) {
        self.known.lock().entry(name.to_owned()).or_default().insert(fact);
    }
}

// === impl Reconciler ===

impl Reconciler {
    /// Returns when everything is proven; halts at what is not.
    pub(super) async fn prove(
        &self,
        name: &str,
        plan: &Plan,
        trust_bundles: &BTreeMap<String, Vec<u8>>,
    ) -> Result<(), Halt> {
        let gate =
            |reason: &str, message: String| Halt::Gate(Standing::waiting(Step::Armed, reason, message));
        let deployments: Vec<_> = plan
            .phases
            .of(Phase::Deployments)
            .filter_map(object::ObjectKey::of)
            .filter_map(|key| self.context.index.find(&key))
            .collect();
        let deployments: Vec<&Value> = deployments.iter().map(AsRef::as_ref).collect();
        let servers = self.servers(plan, trust_bundles).await?;
        if servers.is_empty() {
            return Ok(());
        }
        let pods = rollout::current_pods(&self.context.cluster, &plan.namespace, &deployments).await?;
        let mut problems = Vec::new();
        for server in &servers {
            let Server {
                service,
                port,
                endpoints,
                ..
            } = server;
            if endpoints.is_empty() {
                return Err(gate(
                    "NoEndpoints",
                    format!("the Service {service} has no ready endpoint on port {port}"),
                ));
            }
            let strangers = rollout::strangers(endpoints, &pods);
            if !strangers.is_empty() {
                let message = format!(
                    "endpoints of the Service {service} are not of the newest revision: {}",
                    strangers.join(", ")
                );
                return Err(gate("RollingOut", message));
            }
            let server_name = format!("{service}.{}.svc", plan.namespace);
            for endpoint in endpoints {
                let fact = server.fact(endpoint, server_name.clone());
                if self.proofs.holds(name, &fact) {
                    continue;
                }
                let seen = self
                    .context
                    .prober
                    .handshake(endpoint.address, &server_name, &server.anchors)
                    .await;
                let problem = match seen {
                    Ok(presented) => presented.rejection.map(|rejection| {
                        format!(
                            "{} presents a certificate that is not trusted: {rejection}",
                            endpoint.address
                        )
                    }),
                    Err(error) => Some(chain(&error)),
                };
                self.context.metrics.probed("handshake", problem.is_none());
                match problem {
                    Some(problem) => problems.push(problem),
                    None => self.proofs.add(name, fact),
                }
            }
        }
        if !problems.is_empty() {
            return Err(gate("NotServed", problems.join("; ")));
        }
        for conversion in &plan.conversions {
            let of =
                |server: &&Server| server.service == conversion.service && server.port == conversion.port;
            let Some(server) = servers.iter().find(of) else {
                continue;
            };
            let problems = self.prove_conversion(name, plan, conversion, server).await?;
            if !problems.is_empty() {
                return Err(gate("NotConverting", problems.join("; ")));
            }
        }
        Ok(())
    }

    /// What is wrong with the conversion of one CRD.
    async fn prove_conversion(
        &self,
        name: &str,
        plan: &Plan,
        conversion: &Conversion,
        server: &Server,
    ) -> Result<Vec<String>, Halt> {
        let Some(crd) = plan
            .phases
            .of(Phase::Definitions)
            .find(|crd| object::text(crd, "/metadata/name") == Some(&conversion.crd))
        else {
            return Ok(Vec::new());
        };
        let webhook = ConversionWebhook {
            server_name: conversion.server_name(),
            path: conversion.path.clone(),
        };
        let versions: Vec<_> = object::items(crd, "/spec/versions")
            .iter()
            .filter_map(|version| object::text(version, "/name"))
            .collect();
        let subject = format!(
            "{webhook:?} {} {versions:?} {:?}",
            conversion.crd, conversion.review_versions
        );
        let fresh: Vec<_> = server
            .endpoints
            .iter()
            .filter(|endpoint| !self.proofs.holds(name, &server.fact(endpoint, subject.clone())))
            .collect();
        if fresh.is_empty() {
            return Ok(Vec::new());
        }
        let stored = self.stored_object(crd).await?;
        let review_version = conversion.review_versions.first().map_or("v1", String::as_str);
        let mut problems = Vec::new();
        for endpoint in fresh {
            let proven = self
                .round_trips(
                    endpoint,
                    &webhook,
                    server,
                    review_version,
                    crd,
                    &versions,
                    &stored,
                )
                .await;
            self.context.metrics.probed("conversion", proven.is_ok());
            match proven {
                Ok(()) => self.proofs.add(name, server.fact(endpoint, subject.clone())),
                Err(problem) => problems.push(format!("conversion of {}: {problem}", conversion.crd)),
            }
        }
        Ok(problems)
    }

    /// Sends an object from its version to each other one and back.
    #[expect(
        clippy::too_many_arguments,
        reason = "each is one thing, and a struct of them would have one user"
    )]
    async fn round_trips(
        &self,
        endpoint: &Endpoint,
        webhook: &ConversionWebhook,
        server: &Server,
        review_version: &str,
        crd: &Value,
        versions: &[&str],
        object: &Value,
    ) -> Result<(), String> {
        let group = object::text(crd, "/spec/group").unwrap_or_default();
        let home = object::text(object, "/apiVersion").unwrap_or_default().to_owned();
        for version in versions {
            let away = format!("{group}/{version}");
            if away == home {
                continue;
            }
            let mut objects = vec![object.clone()];
            for desired in [&away, &home] {
                let uid = format!("windlass-{}-{version}", endpoint.address);
                let review = ConversionReview::new(review_version, uid, desired, objects);
                objects = self
                    .context
                    .prober
                    .convert(endpoint.address, webhook, &server.anchors, &review)
                    .await
                    .map_err(|error| chain(&error))?;
            }
        }
        Ok(())
    }

    /// An object as it is stored; the smallest that the schema takes where there is none.
    async fn stored_object(&self, crd: &Value) -> Result<Value, Halt> {
        let name = object::text(crd, "/metadata/name").unwrap_or_default();
        let live = self
            .context
            .index
            .find(&kinds::CUSTOM_RESOURCE_DEFINITION.object(None, name));
        // What is stored is read in the version that it is stored in: that needs no conversion.
        let storage = live
            .as_deref()
            .and_then(storage_version)
            .or_else(|| storage_version(crd))
            .unwrap_or_default();
        let group = object::text(crd, "/spec/group").unwrap_or_default();
        let kind = object::text(crd, "/spec/names/kind").unwrap_or_default();
        let kind = Kind {
            api_version: format!("{group}/{storage}").into(),
            kind: kind.to_owned().into(),
        };
        match self.context.cluster.any(&kind).await {
            Ok(Some(stored)) => Ok(stored),
            Ok(None) => Ok(minimal_object(crd, storage)),
            Err(error) => Err(error.into()),
        }
    }

    /// Each Service and port that a webhook of the plan calls.
    async fn servers(
        &self,
        plan: &Plan,
        trust_bundles: &BTreeMap<String, Vec<u8>>,
    ) -> Result<Vec<Server>, Halt> {
        let mut servers = Vec::new();
        for (service, port) in called(plan) {
            let key = kinds::SERVICE.object(Some(&plan.namespace), &service);
            let waiting = |message| Halt::Gate(Standing::waiting(Step::Armed, "NoEndpoints", message));
            let Some(live) = self.context.index.find(&key) else {
                return Err(waiting(format!("{key} is not there yet")));
            };
            let Some(pem) = trust_bundles.get(&service) else {
                return Err(waiting(format!("there is no trust bundle for {key} yet")));
            };
            let anchors = TrustAnchors::parse(pem).map_err(|error| {
                Halt::Gate(Standing::waiting(
                    Step::Armed,
                    "NoTrust",
                    format!("{key}: {}", chain(&error)),
                ))
            })?;
            servers.push(Server {
                endpoints: endpoints::ready(&self.context.index, &live, Some(port)),
                service,
                port,
                anchors,
                trust: Sha256::digest(pem).into(),
            });
        }
        Ok(servers)
    }
}

// === impl Server ===

impl Server {
    fn fact(&self, endpoint: &Endpoint, subject: String) -> Fact {
        Fact {
            endpoint: endpoint.clone(),
            trust: self.trust,
            subject,
        }
    }
}

/// The Services and ports that the webhooks of a plan call.
fn called(plan: &Plan) -> BTreeSet<(String, i64)> {
    let admission = plan
        .phases
        .of(Phase::Admission)
        .flat_map(|configuration| object::items(configuration, "/webhooks"))
        .filter_map(|webhook| webhook.pointer("/clientConfig/service"))
        .filter_map(|service| {
            let port = service
                .get("port")
                .and_then(Value::as_i64)
                .unwrap_or(DEFAULT_PORT);
            Some((object::text(service, "/name")?.to_owned(), port))
        });
    let conversions = plan
        .conversions
        .iter()
        .map(|conversion| (conversion.service.clone(), conversion.port));
    admission.chain(conversions).collect()
}

fn storage_version(crd: &Value) -> Option<&str> {
    object::items(crd, "/spec/versions")
        .iter()
        .find(|version| version.get("storage").and_then(Value::as_bool) == Some(true))
        .and_then(|version| object::text(version, "/name"))
}
