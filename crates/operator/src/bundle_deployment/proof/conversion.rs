//! Proof by converting: objects of each version are sent to each other one and back, and must come back as they were.
//!
//! What the endpoints that are called now lose too is no news, nor is what an exception allows. An object that is invented
//! may be one that no webhook takes: that this one does not take it proves nothing, and is asked again with a real one.

use std::fmt;

use serde_json::Value;
use tracing::info;
use windlass_bundle::render::Conversion;
use windlass_cluster::{
    Kind, RequestError,
    endpoints::Endpoint,
    kinds,
    prober::{ProbeError, TrustAnchors, WebhookAddress},
    telemetry::chain,
};
use windlass_crd::{
    Sample,
    conversion_review::ConversionReview,
    reachable_version,
    round_trip::{self, ConversionException, Loss},
    sample_object,
};
use windlass_object::{ObjectKey, object, text::Listing};

use super::{CalledService, incumbents::Incumbents};
use crate::{
    bundle_deployment::{halt::Halt, reconciler::BundleReconciler},
    install::plan::Plan,
};

/// How the endpoints of a server are asked to convert objects of one CustomResourceDefinition.
struct Interview<'a> {
    webhook: WebhookAddress,
    anchors: TrustAnchors,
    review_version: &'a str,
    /// The CustomResourceDefinition.
    crd: &'a str,
    group: &'a str,
    /// The versions to send objects to.
    versions: Vec<&'a str>,
    sample: Sample,
    exceptions: Vec<ConversionException>,
    /// Those who convert now.
    incumbents: Option<Incumbents>,
}

/// Why an endpoint is not proven.
enum Flaw {
    /// No answer, or one that the API server would refuse.
    Answer(ProbeError),
    /// Something was lost.
    Lossy(String),
}

/// How a message lists lost fields.
const LOSSES: Listing = Listing {
    most: 5,
    separator: ", ",
    way_to_rest: "",
};

impl BundleReconciler {
    /// Proves that the endpoints of `server` convert objects of one CRD to each version and back without
    /// losing a field, and returns the problems.
    pub(super) async fn ask_to_convert(
        &self,
        name: &str,
        plan: &Plan,
        conversion: &Conversion,
        server: &CalledService,
    ) -> Result<Vec<String>, Halt> {
        let Some(crd) = plan.crd(&conversion.crd) else {
            return Ok(Vec::new());
        };
        let exceptions = self.conversion_exceptions(name);
        let subject = subject(crd, conversion, &exceptions);
        let doubtful = format!("{subject} with a generated object");
        let lacks = |endpoint: &&Endpoint, subject: &String| {
            !self.proofs.holds(name, &server.fact(endpoint, subject.clone()))
        };
        let mut fresh: Vec<_> = server.endpoints.iter().collect();
        fresh.retain(|endpoint| lacks(endpoint, &subject));
        if fresh.is_empty() {
            self.proofs.settle(name, &conversion.crd);
            return Ok(Vec::new());
        }
        let sample = self.sample(plan, crd, conversion).await?;
        if sample.is_generated {
            fresh.retain(|endpoint| lacks(endpoint, &doubtful));
        }
        let interview = Interview {
            webhook: WebhookAddress {
                server_name: conversion.server_name(),
                path: conversion.path.clone(),
            },
            anchors: server.anchors.clone(),
            review_version: conversion.review_versions.first().map_or("v1", String::as_str),
            crd: &conversion.crd,
            group: object::text(crd, "/spec/group").unwrap_or_default(),
            versions: versions(crd),
            sample,
            exceptions,
            incumbents: self.incumbents(name, &conversion.crd),
        };
        let mut problems = Vec::new();
        for endpoint in fresh {
            let proven = self.round_trips(&interview, endpoint).await;
            self.context.metrics.record_probe("conversion", proven.is_ok());
            match proven {
                Ok(()) => {
                    self.proofs.add(name, server.fact(endpoint, subject.clone()));
                    self.proofs.settle(name, &conversion.crd);
                }
                Err(flaw) if interview.sample.is_generated && flaw.is_refusal() => {
                    info!(crd = conversion.crd, problem = %flaw, "The webhook does not convert a generated object; waiting for a real one");
                    self.proofs.add(name, server.fact(endpoint, doubtful.clone()));
                    self.proofs.doubt(name, &conversion.crd);
                }
                Err(flaw) => problems.push(format!("conversion of {}: {flaw}", conversion.crd)),
            }
        }
        Ok(problems)
    }

    /// Sends an object to each other version and back, and what it is there to all the others.
    async fn round_trips(&self, interview: &Interview<'_>, endpoint: &Endpoint) -> Result<(), Flaw> {
        let object = &interview.sample.object;
        let mut arrived = Vec::new();
        for version in interview.others(object) {
            arrived.push(self.round_trip(interview, endpoint, object, version).await?);
        }
        let home = object::version(object);
        for object in &arrived {
            for version in interview.others(object).filter(|version| *version != home) {
                self.round_trip(interview, endpoint, object, version).await?;
            }
        }
        Ok(())
    }

    /// Sends an object to another version and back, and sees to it that nothing new is lost. What it was there.
    async fn round_trip(
        &self,
        interview: &Interview<'_>,
        endpoint: &Endpoint,
        object: &Value,
        version: &str,
    ) -> Result<Value, Flaw> {
        let asked = (endpoint, &interview.webhook, &interview.anchors);
        let (there, found) = self
            .there_and_back(interview, asked, object, version)
            .await
            .map_err(Flaw::Answer)?;
        if found.is_empty() {
            return Ok(there);
        }
        let known = match &interview.incumbents {
            // What it loses is lost already.
            Some(incumbents) if incumbents.endpoints.contains(endpoint) => return Ok(there),
            Some(incumbents) => {
                let known = self.lost_already(interview, incumbents, object, version).await;
                known.unwrap_or_default()
            }
            None => Vec::new(),
        };
        let news = round_trip::new_losses(found, &known, interview.crd, &interview.exceptions);
        if news.is_empty() {
            return Ok(there);
        }
        Err(Flaw::Lossy(format!(
            "{}: converting {} from {} to {version} and back changed it: {}; if this is intended, add the field to \
             spec.conversionExceptions",
            endpoint.address,
            interview.described(object),
            object::version(object),
            LOSSES.summarize(&news)
        )))
    }

    /// What an object becomes in another version, and what it has lost when it is back.
    async fn there_and_back(
        &self,
        interview: &Interview<'_>,
        asked: (&Endpoint, &WebhookAddress, &TrustAnchors),
        object: &Value,
        version: &str,
    ) -> Result<(Value, Vec<Loss>), ProbeError> {
        let home = object::text(object, "/apiVersion").unwrap_or_default();
        let away = format!("{}/{version}", interview.group);
        let review_version = interview.review_version;
        let there = self.convert(review_version, asked, object, &away).await?;
        let back = self.convert(review_version, asked, &there, home).await?;
        let losses = round_trip::losses(object, &back);
        Ok((there, losses))
    }

    async fn convert(
        &self,
        review_version: &str,
        (endpoint, webhook, anchors): (&Endpoint, &WebhookAddress, &TrustAnchors),
        object: &Value,
        desired: &str,
    ) -> Result<Value, ProbeError> {
        let address = endpoint.address;
        let uid = format!("windlass-{address}-{desired}");
        let review = ConversionReview::new(review_version, uid, desired, vec![object.clone()]);
        let prober = &self.context.prober;
        let converted = prober.convert(address, webhook, anchors, &review).await?;
        // As many came back as were sent.
        Ok(converted.into_iter().next().unwrap_or(Value::Null))
    }

    /// What an object loses in the same conversions by those who convert now; `None` where they cannot say, since they do
    /// not know the version.
    async fn lost_already(
        &self,
        interview: &Interview<'_>,
        incumbents: &Incumbents,
        object: &Value,
        version: &str,
    ) -> Option<Vec<Loss>> {
        let endpoint = incumbents.endpoints.first()?;
        let asked = (endpoint, &incumbents.webhook, &incumbents.anchors);
        let answer = self.there_and_back(interview, asked, object, version).await;
        answer.ok().map(|(_, losses)| losses)
    }

    /// What a BundleDeployment allows conversions to lose.
    fn conversion_exceptions(&self, name: &str) -> Vec<ConversionException> {
        let deployment = self
            .context
            .index
            .find(&kinds::BUNDLE_DEPLOYMENT.object(None, name));
        let exceptions =
            deployment.and_then(|deployment| deployment.pointer("/spec/conversionExceptions").cloned());
        exceptions
            .and_then(|exceptions| serde_json::from_value(exceptions).ok())
            .unwrap_or_default()
    }

    /// What to convert: an object as it is stored, if there is one, else an example or an invented one.
    async fn sample(
        &self,
        plan: &Plan,
        crd: &Value,
        conversion: &Conversion,
    ) -> Result<Sample, RequestError> {
        let live = self.crd_seen(&conversion.crd);
        let kind = live
            .as_deref()
            .and_then(|live| Some(Kind::from_crd(live, reachable_version(live)?)));
        let stored = match kind {
            Some(kind) => self.context.cluster.find_any(&kind).await?,
            None => None,
        };
        let of_object = |object| Sample {
            object,
            is_generated: false,
        };
        Ok(stored.map_or_else(|| sample_object(crd, &plan.examples), of_object))
    }
}

impl<'a> Interview<'a> {
    fn others(&self, object: &Value) -> impl Iterator<Item = &'a str> {
        let home = object::version(object).to_owned();
        let versions = self.versions.clone().into_iter();
        versions.filter(move |version| *version != home)
    }

    /// The object, for a message.
    fn described(&self, object: &Value) -> String {
        match ObjectKey::from_object(object) {
            Some(key) if !self.is_sample(&key) => key.to_string(),
            _ => "an example object".to_owned(),
        }
    }

    /// Whether that is no object of the cluster's.
    fn is_sample(&self, key: &ObjectKey) -> bool {
        self.sample.is_generated || key.name == windlass_crd::SAMPLE_NAME
    }
}

impl Flaw {
    /// Whether the webhook says itself that it cannot convert.
    fn is_refusal(&self) -> bool {
        matches!(self, Self::Answer(error) if error.is_refusal())
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answer(error) => f.write_str(&chain(error)),
            Self::Lossy(words) => f.write_str(words),
        }
    }
}

fn versions(crd: &Value) -> Vec<&str> {
    windlass_crd::versions(crd)
        .iter()
        .map(windlass_crd::version_name)
        .collect()
}

/// What a proof is about.
fn subject(crd: &Value, conversion: &Conversion, exceptions: &[ConversionException]) -> String {
    let Conversion {
        crd: name,
        path,
        review_versions,
        ..
    } = conversion;
    let server_name = conversion.server_name();
    format!(
        "{server_name} {path} {name} {:?} {review_versions:?} {exceptions:?}",
        versions(crd)
    )
}
