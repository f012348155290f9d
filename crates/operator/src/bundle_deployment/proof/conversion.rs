//! Proof by converting: objects of each version are sent to each other one and back, and must come back as they were.

use serde_json::Value;
use windlass_bundle::render::Conversion;
use windlass_cluster::{
    Kind, RequestError, endpoints::Endpoint, prober::ConversionWebhook, telemetry::chain,
};
use windlass_crd::{conversion_review::ConversionReview, reachable_version, round_trip};
use windlass_object::{object, text::Listing};

use super::CalledService;
use crate::{
    bundle_deployment::{halt::Halt, reconciler::BundleReconciler},
    install::plan::{Plan, sample_object},
};

/// How one endpoint is asked to convert objects of one CustomResourceDefinition.
struct ConversionProbe<'a> {
    endpoint: &'a Endpoint,
    webhook: &'a ConversionWebhook,
    server: &'a CalledService,
    review_version: &'a str,
    group: &'a str,
    /// The versions to send objects to.
    versions: &'a [&'a str],
}

/// How a message lists lost fields.
const LOSSES: Listing = Listing {
    most: 5,
    separator: ", ",
    way_to_rest: "",
};

// === impl BundleReconciler ===

impl BundleReconciler {
    /// What is wrong with the conversion of one CRD by the endpoints of `server`.
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
        let webhook = ConversionWebhook {
            server_name: conversion.server_name(),
            path: conversion.path.clone(),
        };
        let versions: Vec<_> = windlass_crd::versions(crd)
            .iter()
            .map(windlass_crd::version_name)
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
        let stored = self.stored_object(&conversion.crd).await?;
        let sample = stored.unwrap_or_else(|| sample_object(crd, &plan.examples));
        let mut problems = Vec::new();
        for endpoint in fresh {
            let interview = ConversionProbe {
                endpoint,
                webhook: &webhook,
                server,
                review_version: conversion.review_versions.first().map_or("v1", String::as_str),
                group: object::text(crd, "/spec/group").unwrap_or_default(),
                versions: &versions,
            };
            let proven = self.round_trips(&interview, &sample).await;
            self.context.metrics.probed("conversion", proven.is_ok());
            match proven {
                Ok(()) => self.proofs.add(name, server.fact(endpoint, subject.clone())),
                Err(problem) => problems.push(format!("conversion of {}: {problem}", conversion.crd)),
            }
        }
        Ok(problems)
    }

    /// Sends an object to each other version and back, and what it is there to all the others.
    async fn round_trips(&self, interview: &ConversionProbe<'_>, object: &Value) -> Result<(), String> {
        let mut arrived = Vec::new();
        for version in interview.others(object) {
            arrived.push(self.round_trip(interview, object, version).await?);
        }
        let home = object::version(object);
        for object in &arrived {
            for version in interview.others(object).filter(|version| *version != home) {
                self.round_trip(interview, object, version).await?;
            }
        }
        Ok(())
    }

    /// Sends an object to another version and back. What it was there.
    async fn round_trip(
        &self,
        interview: &ConversionProbe<'_>,
        object: &Value,
        version: &str,
    ) -> Result<Value, String> {
        let home = object::text(object, "/apiVersion").unwrap_or_default();
        let away = format!("{}/{version}", interview.group);
        let there = self.convert(interview, object, &away).await?;
        let back = self.convert(interview, &there, home).await?;
        let losses = round_trip::losses(object, &back);
        if losses.is_empty() {
            return Ok(there);
        }
        Err(format!(
            "{}: converting an object from {} to {version} and back changed it: {}",
            interview.endpoint.address,
            object::version(object),
            LOSSES.of(&losses)
        ))
    }

    async fn convert(
        &self,
        interview: &ConversionProbe<'_>,
        object: &Value,
        desired: &str,
    ) -> Result<Value, String> {
        let address = interview.endpoint.address;
        let uid = format!("windlass-{address}-{desired}");
        let review = ConversionReview::new(interview.review_version, uid, desired, vec![object.clone()]);
        let converted = self
            .context
            .prober
            .convert(address, interview.webhook, &interview.server.anchors, &review)
            .await
            .map_err(|error| chain(&error))?;
        // As many came back as were sent.
        Ok(converted.into_iter().next().unwrap_or(Value::Null))
    }

    /// An object of a CustomResourceDefinition as it is stored, if there is one.
    async fn stored_object(&self, crd: &str) -> Result<Option<Value>, RequestError> {
        let Some(live) = self.crd_seen(crd) else {
            return Ok(None);
        };
        let Some(version) = reachable_version(&live) else {
            return Ok(None);
        };
        let kind = Kind::of_crd(&live, version);
        self.context.cluster.any(&kind).await
    }
}

// === impl ConversionProbe ===

impl<'a> ConversionProbe<'a> {
    fn others(&self, object: &Value) -> impl Iterator<Item = &'a str> {
        let home = object::version(object).to_owned();
        let versions = self.versions.iter().copied();
        versions.filter(move |version| *version != home)
    }
}
