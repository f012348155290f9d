//! An install: what there is to be, and what it needs.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use windlass_bundle::{
    ClusterServiceVersion, Phase,
    render::{Conversion, Rendered, ServingDefaults, WebhookCertificate},
};
use windlass_crd::claims::Api;
use windlass_object::{ObjectKey, json, names, object};

use super::{copies, phases::Phases};
use crate::install::{
    canary,
    proof::unasked,
    traffic::{CalledPath, CalledPort, Color},
};

/// An install: what there is to be, and what it needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The namespace of the install.
    pub namespace: String,
    /// Every object, with CRDs without conversion and other callers without CA bundles. They call the blue Services;
    /// [`Traffic`](crate::install::traffic::Traffic) has the ones that are chosen.
    pub phases: Phases,
    /// The conversions that are claimed.
    pub conversions: Vec<Conversion>,
    /// Where the operator arms its conversions itself: the `spec.conversion` that CRDs are born with, by name. Those of
    /// the install are otherwise left alone.
    pub self_managed: Option<BTreeMap<String, Value>>,
    /// The serving certificates that are needed.
    pub certificates: Vec<WebhookCertificate>,
    /// What is done for webhooks while a Deployment rolls out.
    pub serving: ServingDefaults,
    /// Custom resources that the author of the bundle gives as examples.
    pub examples: Vec<Value>,
    /// What is to be known of it although it is installed.
    pub notices: Vec<String>,
}

impl Plan {
    /// Determines every object that `bundle_deployment` applies.
    ///
    /// Deployments that serve webhooks have pods of a [revision](canary::stamp), which their Services select,
    /// and read copies of the bundle's ConfigMaps and Secrets.
    pub fn new(
        rendered: Rendered,
        csv: ClusterServiceVersion<'_>,
        bundle_deployment: &str,
        serving: ServingDefaults,
    ) -> Self {
        let Rendered {
            namespace,
            mut objects,
            callers,
            conversions,
            self_managed,
            certificates,
            operator_condition,
            mut notices,
        } = rendered;
        objects.extend(operator_condition);
        for certificate in &certificates {
            let (mut deployments, others): (Vec<_>, Vec<_>) = objects
                .into_iter()
                .partition(|object| is(object, "Deployment", &certificate.deployment));
            objects = others;
            for deployment in &mut deployments {
                let copies = copies::copy_configuration(deployment, &objects);
                objects.extend(copies);
                let template = ["spec", "template", "metadata", "annotations"];
                json::fields(deployment, &template)
                    .insert(names::BUNDLE_DEPLOYMENT.into(), bundle_deployment.into());
                canary::stamp(deployment);
                pin(&mut objects, &certificate.service, deployment);
            }
            objects.extend(deployments);
        }
        let mut seen = BTreeSet::new();
        // Two Deployments may read the same copy.
        objects.retain(|object| ObjectKey::from_object(object).is_none_or(|key| seen.insert(key)));
        let is_crd = |object: &&Value| object::text(object, "/kind") == Some("CustomResourceDefinition");
        let crds: Vec<_> = objects.iter().filter(is_crd).collect();
        notices.extend(
            callers
                .iter()
                .flat_map(|configuration| unasked(configuration, &crds)),
        );
        objects.extend(callers);
        Self {
            serving,
            examples: csv.examples(),
            namespace,
            phases: Phases::new(objects),
            conversions,
            self_managed,
            certificates,
            notices,
        }
    }

    /// Whether a new revision is tried out in a canary: where webhooks depend on it.
    pub fn has_canary(&self) -> bool {
        self.serving.canary && !self.certificates.is_empty()
    }

    /// The Service of that color, by the name of the blue one.
    pub fn service(&self, blue: &str, color: Color) -> Option<Value> {
        let mut service = self
            .phases
            .of(Phase::Services)
            .find(|service| object::text(service, "/metadata/name") == Some(blue))?
            .clone();
        let certificate = self
            .certificates
            .iter()
            .find(|certificate| certificate.service == blue)?;
        if color == Color::Green {
            service["metadata"]["name"] = certificate.green.clone().into();
        }
        Some(service)
    }

    /// The second Service of each Deployment that serves webhooks: none of them is there at all times, and none may be another's.
    pub fn green_services(&self) -> impl Iterator<Item = Value> {
        self.certificates
            .iter()
            .filter_map(|certificate| self.service(&certificate.service, Color::Green))
    }

    /// Whether webhooks call the pods of a Deployment.
    pub fn is_serving(&self, deployment: &Value) -> bool {
        let name = object::text(deployment, "/metadata/name");
        self.certificates
            .iter()
            .any(|certificate| Some(certificate.deployment.as_str()) == name)
    }

    /// Whether `object` is a Service that webhooks may call.
    pub fn is_called(&self, object: &Value) -> bool {
        self.certificates
            .iter()
            .any(|certificate| is(object, "Service", &certificate.service))
    }

    /// Whether the operator arms its conversions itself.
    pub fn is_self_managed(&self) -> bool {
        self.self_managed.is_some()
    }

    /// Whom an object of the install calls. A conversion that the operator arms itself goes to a Service by OLM's name whatever
    /// that leads to, and holds nothing; if it still calls a green one, it has been armed by us.
    pub fn calls_of(&self, caller: &Value) -> BTreeSet<CalledPort> {
        let mut calls = CalledPort::all_of(caller);
        if self.is_self_managed() && object::text(caller, "/kind") == Some("CustomResourceDefinition") {
            calls.retain(|call| self.certificates.iter().any(|names| names.green == call.service));
        }
        calls
    }

    /// What its webhooks and conversions call, and so is served.
    pub fn served(&self) -> BTreeSet<CalledPath> {
        let callers = self.phases.of(Phase::Callers).flat_map(CalledPath::needed_by);
        let conversions = self.conversions.iter().map(CalledPath::of_conversion);
        callers.chain(conversions).collect()
    }

    /// The conversion that a CustomResourceDefinition is born with and that is then left alone.
    pub fn written_conversion(&self, crd_name: &str) -> Option<&Value> {
        self.self_managed.as_ref()?.get(crd_name)
    }

    /// The conversion of a CustomResourceDefinition, if it is claimed.
    pub fn conversion(&self, crd_name: &str) -> Option<&Conversion> {
        self.conversions
            .iter()
            .find(|conversion| conversion.crd == crd_name)
    }

    /// The CustomResourceDefinition of that name.
    pub fn crd(&self, name: &str) -> Option<&Value> {
        self.phases
            .of(Phase::Crds)
            .find(|crd| object::text(crd, "/metadata/name") == Some(name))
    }

    /// The APIs whose conversion is claimed.
    pub fn apis(&self) -> Vec<Api> {
        self.phases
            .of(Phase::Crds)
            .filter_map(Api::from_crd)
            .filter(|api| self.conversion(&api.crd).is_some())
            .collect()
    }
}

/// Makes a Service select pods of a Deployment's revision only.
fn pin(objects: &mut [Value], service: &str, deployment: &Value) {
    let Some(revision) = canary::revision(deployment) else {
        return;
    };
    for object in objects.iter_mut().filter(|object| is(object, "Service", service)) {
        json::fields(object, &["spec", "selector"]).insert(names::REVISION.into(), revision.into());
    }
}

fn is(object: &Value, kind: &str, name: &str) -> bool {
    object::text(object, "/kind") == Some(kind) && object::text(object, "/metadata/name") == Some(name)
}
