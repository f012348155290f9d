//! Those who convert now: what they lose is no news.

use base64::{Engine, engine::general_purpose::STANDARD};
use windlass_bundle::render::Conversion;
use windlass_cluster::{
    endpoints::{self, Endpoint},
    kinds,
    prober::{TrustAnchors, WebhookAddress},
};
use windlass_object::object;

use crate::bundle_deployment::reconciler::BundleReconciler;

/// The endpoints that are called now, and were proven before that.
pub(super) struct Incumbents {
    pub(super) endpoints: Vec<Endpoint>,
    pub(super) webhook: WebhookAddress,
    pub(super) anchors: TrustAnchors,
}

impl BundleReconciler {
    /// Those who convert the objects of a CustomResourceDefinition now, if the status says that they were proven: a new
    /// CustomResourceDefinition sends conversions to those who are not.
    pub(super) fn incumbents(&self, name: &str, crd: &str) -> Option<Incumbents> {
        let live = self.crd_seen(crd).filter(|_| self.was_proven(name, crd))?;
        let stanza = live.pointer("/spec/conversion")?;
        let conversion = Conversion::from_stanza(crd, stanza)?;
        let bundle = object::text(stanza, "/webhook/clientConfig/caBundle")?;
        let anchors = TrustAnchors::parse(&STANDARD.decode(bundle).ok()?).ok()?;
        let key = kinds::SERVICE.object(Some(&conversion.namespace), &conversion.service);
        let service = self.context.index.find(&key)?;
        Some(Incumbents {
            endpoints: endpoints::ready(&self.context.index, &service, Some(conversion.port)),
            webhook: WebhookAddress {
                server_name: conversion.server_name(),
                path: conversion.path,
            },
            anchors,
        })
    }

    /// Whether the status of a BundleDeployment says that a conversion was proven.
    pub(super) fn was_proven(&self, name: &str, crd: &str) -> bool {
        let deployment = self
            .context
            .index
            .find(&kinds::BUNDLE_DEPLOYMENT.object(None, name));
        deployment.is_some_and(|deployment| {
            object::items(&deployment, "/status/conversions")
                .iter()
                .any(|conversion| conversion["crd"] == *crd && conversion["state"] == "Armed")
        })
    }
}
