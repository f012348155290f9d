//! Types of the fields that Windlass reads. A string in place of a list is a problem, not an empty list.

use k8s_openapi::api::admissionregistration::v1::RuleWithOperations;
use k8s_openapi::api::apps::v1::DeploymentSpec;
use k8s_openapi::api::rbac::v1::PolicyRule;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinitionSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::Segment;
use windlass_object::{JsonPath, Problem};

use super::{
    model::{Bundle, Manifest},
    rule,
};

/// The required type of a field. An absent or `null` field matches every type.
#[derive(Clone, Copy, Debug)]
enum Type {
    Text,
    Number,
    Boolean,
    List,
    Mapping,
    NumberOrText,
    /// A type of the Kubernetes API.
    Api(fn(&Value) -> Result<(), Mismatch>),
}

/// A value of a wrong type, and its path.
#[derive(Debug)]
struct Mismatch {
    path: JsonPath,
    message: String,
}

/// Fields of every object.
const OBJECT: &[(&str, Type)] = &[
    ("apiVersion", Type::Text),
    ("kind", Type::Text),
    ("metadata", Type::Mapping),
    ("metadata.name", Type::Text),
    ("metadata.namespace", Type::Text),
    ("metadata.annotations", Type::Mapping),
    ("metadata.annotations.*", Type::Text),
    ("metadata.labels", Type::Mapping),
    ("metadata.labels.*", Type::Text),
];

/// Fields of a ClusterServiceVersion (`operator-framework/api`, `operators/v1alpha1/clusterserviceversion_types.go`).
const CSV: &[(&str, Type)] = &[
    ("spec", Type::Mapping),
    ("spec.version", Type::Text),
    ("spec.replaces", Type::Text),
    ("spec.minKubeVersion", Type::Text),
    ("spec.installModes", Type::List),
    ("spec.installModes[]", Type::Mapping),
    ("spec.installModes[].type", Type::Text),
    ("spec.installModes[].supported", Type::Boolean),
    ("spec.customresourcedefinitions", Type::Mapping),
    ("spec.customresourcedefinitions.owned", Type::List),
    ("spec.customresourcedefinitions.owned[]", Type::Mapping),
    ("spec.customresourcedefinitions.owned[].name", Type::Text),
    ("spec.customresourcedefinitions.required", Type::List),
    ("spec.customresourcedefinitions.required[]", Type::Mapping),
    ("spec.customresourcedefinitions.required[].name", Type::Text),
    ("spec.customresourcedefinitions.required[].version", Type::Text),
    ("spec.customresourcedefinitions.required[].kind", Type::Text),
    ("spec.apiservicedefinitions", Type::Mapping),
    ("spec.apiservicedefinitions.owned", Type::List),
    ("spec.apiservicedefinitions.owned[]", Type::Mapping),
    ("spec.apiservicedefinitions.owned[].group", Type::Text),
    ("spec.apiservicedefinitions.owned[].version", Type::Text),
    ("spec.apiservicedefinitions.owned[].kind", Type::Text),
    ("spec.apiservicedefinitions.owned[].name", Type::Text),
    ("spec.apiservicedefinitions.owned[].deploymentName", Type::Text),
    ("spec.apiservicedefinitions.owned[].containerPort", Type::Number),
    ("spec.apiservicedefinitions.required", Type::List),
    ("spec.apiservicedefinitions.required[]", Type::Mapping),
    ("spec.apiservicedefinitions.required[].group", Type::Text),
    ("spec.apiservicedefinitions.required[].version", Type::Text),
    ("spec.apiservicedefinitions.required[].kind", Type::Text),
    ("spec.nativeAPIs", Type::List),
    ("spec.nativeAPIs[]", Type::Mapping),
    ("spec.nativeAPIs[].group", Type::Text),
    ("spec.nativeAPIs[].version", Type::Text),
    ("spec.nativeAPIs[].kind", Type::Text),
    ("spec.install", Type::Mapping),
    ("spec.install.strategy", Type::Text),
    ("spec.install.spec", Type::Mapping),
    ("spec.install.spec.deployments", Type::List),
    ("spec.install.spec.deployments[]", Type::Mapping),
    ("spec.install.spec.deployments[].name", Type::Text),
    ("spec.install.spec.deployments[].label", Type::Mapping),
    ("spec.install.spec.deployments[].label.*", Type::Text),
    (
        "spec.install.spec.deployments[].spec",
        Type::Api(decode::<DeploymentSpec>),
    ),
    ("spec.install.spec.permissions", Type::List),
    ("spec.install.spec.permissions[]", Type::Mapping),
    ("spec.install.spec.permissions[].serviceAccountName", Type::Text),
    ("spec.install.spec.permissions[].rules", Type::List),
    (
        "spec.install.spec.permissions[].rules[]",
        Type::Api(decode::<PolicyRule>),
    ),
    ("spec.install.spec.clusterPermissions", Type::List),
    ("spec.install.spec.clusterPermissions[]", Type::Mapping),
    (
        "spec.install.spec.clusterPermissions[].serviceAccountName",
        Type::Text,
    ),
    ("spec.install.spec.clusterPermissions[].rules", Type::List),
    (
        "spec.install.spec.clusterPermissions[].rules[]",
        Type::Api(decode::<PolicyRule>),
    ),
    ("spec.webhookdefinitions", Type::List),
    ("spec.webhookdefinitions[]", Type::Mapping),
    ("spec.webhookdefinitions[].type", Type::Text),
    ("spec.webhookdefinitions[].generateName", Type::Text),
    ("spec.webhookdefinitions[].deploymentName", Type::Text),
    ("spec.webhookdefinitions[].containerPort", Type::Number),
    ("spec.webhookdefinitions[].targetPort", Type::NumberOrText),
    ("spec.webhookdefinitions[].webhookPath", Type::Text),
    ("spec.webhookdefinitions[].failurePolicy", Type::Text),
    ("spec.webhookdefinitions[].matchPolicy", Type::Text),
    ("spec.webhookdefinitions[].reinvocationPolicy", Type::Text),
    ("spec.webhookdefinitions[].sideEffects", Type::Text),
    ("spec.webhookdefinitions[].timeoutSeconds", Type::Number),
    (
        "spec.webhookdefinitions[].objectSelector",
        Type::Api(decode::<LabelSelector>),
    ),
    ("spec.webhookdefinitions[].admissionReviewVersions", Type::List),
    ("spec.webhookdefinitions[].admissionReviewVersions[]", Type::Text),
    ("spec.webhookdefinitions[].conversionCRDs", Type::List),
    ("spec.webhookdefinitions[].conversionCRDs[]", Type::Text),
    ("spec.webhookdefinitions[].rules", Type::List),
    (
        "spec.webhookdefinitions[].rules[]",
        Type::Api(decode::<RuleWithOperations>),
    ),
];

/// Fields of a CustomResourceDefinition of `apiextensions.k8s.io/v1`.
const CRD: &[(&str, Type)] = &[
    ("spec", Type::Mapping),
    ("spec.group", Type::Text),
    ("spec.scope", Type::Text),
    ("spec.names", Type::Mapping),
    ("spec.preserveUnknownFields", Type::Boolean),
    ("spec.conversion", Type::Mapping),
    ("spec.versions", Type::List),
    ("spec.versions[]", Type::Mapping),
    ("spec.versions[].name", Type::Text),
    ("spec.versions[].served", Type::Boolean),
    ("spec.versions[].storage", Type::Boolean),
    ("spec", Type::Api(decode::<CustomResourceDefinitionSpec>)),
];

/// Adds a problem for every field of a wrong type.
pub(super) fn check(bundle: &Bundle, problems: &mut Vec<Problem>) {
    for manifest in [&bundle.csv].into_iter().chain(&bundle.others) {
        check_fields(manifest, OBJECT, problems);
    }
    check_fields(&bundle.csv, CSV, problems);
    for crd in &bundle.crds {
        check_crd(crd, problems);
    }
}

/// Adds a problem for every field of a wrong type in a CustomResourceDefinition.
pub(super) fn check_crd(manifest: &Manifest, problems: &mut Vec<Problem>) {
    check_fields(manifest, OBJECT, problems);
    check_fields(manifest, CRD, problems);
}

fn check_fields(manifest: &Manifest, fields: &[(&str, Type)], problems: &mut Vec<Problem>) {
    let before = problems.len();
    for (field, expected) in fields {
        // Decode a whole API type only if its parts are valid, because only the checks of parts report the
        // path of the invalid field.
        if matches!((field, expected), (&"spec", Type::Api(_))) && problems.len() > before {
            continue;
        }
        visit(&manifest.object, field, &JsonPath::root(), &mut |path, value| {
            if let Err(mismatch) = expected.check(value) {
                let path = path.join(&mismatch.path);
                problems.push(manifest.problem(&path, rule::FIELD_TYPE, mismatch.message));
            }
        });
    }
}

/// Calls `found` with every value that matches `pattern`: `a.b` is a field, `a[]` each item, `a.*` each value
/// of a mapping.
fn visit(value: &Value, pattern: &str, path: &JsonPath, found: &mut dyn FnMut(&JsonPath, &Value)) {
    let (step, rest) = pattern.split_once('.').unwrap_or((pattern, ""));
    let mut descend = |path: JsonPath, value: &Value| {
        if rest.is_empty() {
            found(&path, value);
        } else {
            visit(value, rest, &path, found);
        }
    };
    if step == "*" {
        let fields = value.as_object().into_iter().flatten();
        fields.for_each(|(name, value)| descend(path.field(name), value));
        return;
    }
    let name = step.strip_suffix("[]").unwrap_or(step);
    let Some(value) = value.get(name) else {
        return;
    };
    let path = path.field(name);
    if name == step {
        descend(path, value);
        return;
    }
    let items = value.as_array().into_iter().flatten().enumerate();
    items.for_each(|(index, item)| descend(path.item(index), item));
}

/// Decodes a value as `T`; fails at the first mismatch.
fn decode<T: DeserializeOwned>(value: &Value) -> Result<(), Mismatch> {
    let Err(error) = serde_path_to_error::deserialize::<_, T>(value) else {
        return Ok(());
    };
    let path = error
        .path()
        .iter()
        .fold(JsonPath::root(), |path, segment| match segment {
            Segment::Seq { index } => path.item(*index),
            Segment::Map { key } | Segment::Enum { variant: key } => path.field(key),
            Segment::Unknown => path,
        });
    Err(Mismatch {
        path,
        message: error.inner().to_string(),
    })
}

impl Type {
    fn check(self, value: &Value) -> Result<(), Mismatch> {
        let fits = match self {
            _ if value.is_null() => true,
            Self::Text => value.is_string(),
            Self::Number => value.is_i64(),
            Self::Boolean => value.is_boolean(),
            Self::List => value.is_array(),
            Self::Mapping => value.is_object(),
            Self::NumberOrText => value.is_i64() || value.is_string(),
            Self::Api(decode) => return decode(value),
        };
        if fits {
            return Ok(());
        }
        let message = format!("must be {}, not {}", self.description(), type_name(value));
        Err(Mismatch {
            path: JsonPath::root(),
            message,
        })
    }

    fn description(self) -> &'static str {
        match self {
            Self::Text => "a string",
            Self::Number => "an integer",
            Self::Boolean => "true or false",
            Self::List => "a list",
            Self::Mapping | Self::Api(_) => "a mapping",
            Self::NumberOrText => "an integer or a string",
        }
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a mapping",
    }
}
