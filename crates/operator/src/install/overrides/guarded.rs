//! What no policy may override of an install: by what objects are told apart, by what webhooks are served and trusted, and rights.

use std::collections::BTreeMap;

use serde_json::Value;
use windlass_bundle::render::WebhookCertificate;
use windlass_object::{names, object};

/// A field that a policy has overridden and must not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GuardedField {
    /// The field.
    pub(super) field: String,
    /// Why it is not to be overridden.
    pub(super) why: &'static str,
}

/// What an object is for the webhooks of an install.
pub(super) struct ServingRoles<'a> {
    /// The namespace of the operator.
    pub(super) namespace: &'a str,
    /// The certificates that pods serve.
    pub(super) certificates: &'a [WebhookCertificate],
    /// The objects of the install, as they are rendered.
    pub(super) objects: &'a [Value],
}

const IDENTITY: &str = "it identifies the object";
const OWN: &str = "labels and annotations of windlass.dev are reserved for Windlass";
const STATUS: &str = "an install does not write status";
const RIGHTS: &str = "the bundle determines the rights of its operator";
const VERSIONS: &str = "the bundle determines how its versions are served and converted";
const CALLED: &str = "it determines how webhooks are called";
const SELECTED: &str = "it identifies the pods";
const MOUNTED: &str = "it mounts the serving certificate of the pods";
const SERVED: &str = "it serves the bundle's webhooks";

/// Fields of a Service by which webhooks reach pods.
const REACHED_BY: [&str; 6] = [
    "clusterIP",
    "clusterIPs",
    "externalName",
    "ports",
    "selector",
    "type",
];

impl ServingRoles<'_> {
    /// Returns a field that policies must not override and that differs between an object as rendered and as
    /// overridden.
    pub(super) fn guarded(&self, before: &Value, after: &Value) -> Option<GuardedField> {
        identity(before, after)
            .or_else(|| own_names(before, after, "/metadata"))
            .or_else(|| self.of_kind(before, after))
    }

    fn of_kind(&self, before: &Value, after: &Value) -> Option<GuardedField> {
        let text = |pointer| object::text(before, pointer).unwrap_or_default();
        let (group, _) = object::group_and_version(text("/apiVersion"));
        match (group, text("/kind")) {
            ("apiextensions.k8s.io", _) => beyond_metadata(before, after, VERSIONS),
            ("rbac.authorization.k8s.io", _) => beyond_metadata(before, after, RIGHTS),
            ("", "Service")
                if self
                    .certificates_of(before, |certificate| &certificate.service)
                    .next()
                    .is_some() =>
            {
                REACHED_BY
                    .iter()
                    .find_map(|field| differs(before, after, &format!("spec.{field}"), CALLED))
            }
            ("apps", "Deployment") => own_names(before, after, "/spec/template/metadata")
                .or_else(|| differs(before, after, "spec.selector", SELECTED))
                .or_else(|| {
                    self.certificates_of(before, |certificate| &certificate.deployment)
                        .find_map(|certificate| self.of_serving(before, after, certificate))
                }),
            _ => None,
        }
    }

    /// The certificates that name an object of the operator's namespace.
    fn certificates_of<'a>(
        &'a self,
        object: &'a Value,
        name: impl Fn(&'a WebhookCertificate) -> &'a str + 'a,
    ) -> impl Iterator<Item = &'a WebhookCertificate> {
        let is_there = object::text(object, "/metadata/namespace") == Some(self.namespace);
        let of = object::text(object, "/metadata/name");
        self.certificates
            .iter()
            .filter(move |certificate| is_there && Some(name(certificate)) == of)
    }

    /// The same of a Deployment that serves webhooks.
    fn of_serving(
        &self,
        before: &Value,
        after: &Value,
        certificate: &WebhookCertificate,
    ) -> Option<GuardedField> {
        let guarded = |field: String, why| Some(GuardedField { field, why });
        let volumes = |deployment| secret_volumes(deployment, &certificate.secret);
        let (had, has) = (volumes(before), volumes(after));
        if had != has {
            return guarded("spec.template.spec.volumes".to_owned(), MOUNTED);
        }
        let containers_after = containers(after);
        for (name, container) in containers(before) {
            let field = format!("spec.template.spec.containers[{name}]");
            let Some(now) = containers_after.get(name) else {
                return guarded(field, SERVED);
            };
            let mounts = |container| -> Vec<&Value> {
                let mounts = object::items(container, "/volumeMounts").iter();
                let is_of_secret = |mount: &&Value| {
                    object::text(mount, "/name").is_some_and(|volume| had.contains_key(volume))
                };
                mounts.filter(is_of_secret).collect()
            };
            if mounts(container) != mounts(now) {
                return guarded(format!("{field}.volumeMounts"), MOUNTED);
            }
        }
        let service = self.objects.iter().find(|object| {
            object::text(object, "/kind") == Some("Service")
                && object::text(object, "/metadata/namespace") == Some(self.namespace)
                && object::text(object, "/metadata/name") == Some(&certificate.service)
        });
        let selector = service.and_then(|service| service.pointer("/spec/selector")?.as_object());
        let label = |deployment: &Value, name: &str| {
            deployment
                .pointer("/spec/template/metadata/labels")?
                .get(name)
                .cloned()
        };
        selector
            .into_iter()
            .flatten()
            .find(|(name, _)| label(before, name) != label(after, name))
            .map(|(name, _)| GuardedField {
                field: format!("spec.template.metadata.labels[{name}]"),
                why: SELECTED,
            })
    }
}

fn identity(before: &Value, after: &Value) -> Option<GuardedField> {
    if !after.is_object() || !after["metadata"].is_object() {
        let field = "metadata".to_owned();
        return Some(GuardedField { field, why: IDENTITY });
    }
    let known = ["apiVersion", "kind"];
    let of_metadata = fields(&before["metadata"])
        .chain(fields(&after["metadata"]))
        .filter(|(name, _)| !["labels", "annotations"].contains(&name.as_str()))
        .map(|(name, _)| format!("metadata.{name}"));
    known
        .into_iter()
        .map(str::to_owned)
        .chain(of_metadata)
        .find_map(|field| differs(before, after, &field, IDENTITY))
        .or_else(|| differs(before, after, "status", STATUS))
}

/// Labels and annotations of Windlass in the metadata there.
fn own_names(before: &Value, after: &Value, metadata: &str) -> Option<GuardedField> {
    ["labels", "annotations"].into_iter().find_map(|map| {
        let own = |object: &Value| -> BTreeMap<String, Value> {
            let map = object.pointer(metadata).and_then(|metadata| metadata.get(map));
            map.map(|map| {
                fields(map)
                    .filter(|(name, _)| is_own(name))
                    .map(|(name, value)| (name.clone(), value.clone()))
                    .collect()
            })
            .unwrap_or_default()
        };
        let (had, has) = (own(before), own(after));
        let changed = had
            .keys()
            .chain(has.keys())
            .find(|name| had.get(*name) != has.get(*name))?;
        let place = metadata.trim_start_matches('/').replace('/', ".");
        Some(GuardedField {
            field: format!("{place}.{map}[{changed}]"),
            why: OWN,
        })
    })
}

fn is_own(name: &str) -> bool {
    let prefix = name.split_once('/').map_or("", |(prefix, _)| prefix);
    prefix == names::GROUP
        || prefix
            .strip_suffix(names::GROUP)
            .is_some_and(|rest| rest.ends_with('.'))
}

fn beyond_metadata(before: &Value, after: &Value, why: &'static str) -> Option<GuardedField> {
    fields(before)
        .chain(fields(after))
        .filter(|(name, _)| name.as_str() != "metadata")
        .find_map(|(name, _)| differs(before, after, name, why))
}

fn differs(before: &Value, after: &Value, field: &str, why: &'static str) -> Option<GuardedField> {
    let pointer = format!("/{}", field.replace('.', "/"));
    (before.pointer(&pointer) != after.pointer(&pointer)).then(|| GuardedField {
        field: field.to_owned(),
        why,
    })
}

/// The volumes with a Secret, by name.
fn secret_volumes<'a>(deployment: &'a Value, secret: &str) -> BTreeMap<&'a str, &'a Value> {
    let volumes = object::items(deployment, "/spec/template/spec/volumes").iter();
    volumes
        .filter(|volume| object::text(volume, "/secret/secretName") == Some(secret))
        .filter_map(|volume| Some((object::text(volume, "/name")?, volume)))
        .collect()
}

fn containers(deployment: &Value) -> BTreeMap<&str, &Value> {
    let containers = object::items(deployment, "/spec/template/spec/containers").iter();
    containers
        .filter_map(|container| Some((object::text(container, "/name")?, container)))
        .collect()
}

fn fields(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}
