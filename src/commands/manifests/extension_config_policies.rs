//! Admission policies for ExtensionConfigs, for clusters without Cluster API's webhook.
//!
//! They validate and default what that webhook does (`core/webhooks/admission/extensionconfig.go`), and also
//! what its API types only document: a URL without user, query and fragment.

use serde_json::{Value, json};
use windlass_operator::{admission::CERTIFICATES_ACCOUNT, extension_config_policies::NAME};

use super::document::{self, Document, NAMESPACE, labels};

const API_VERSION: &str = "admissionregistration.k8s.io/v1";

const DEFAULTS: &str = "Optional: validates and defaults ExtensionConfigs as Cluster API's webhook does, by policies that need no server, on \
                        Kubernetes 1.36 or newer.
They are turned off while webhooks for ExtensionConfigs exist. This one sets defaults.";

const RULES: &str = "Rejects ExtensionConfigs that cannot be called.";

const RIGHTS: &str = "Lets the operator turn the policies off while a webhook configuration names ExtensionConfigs, and on again.";

/// Each validation: its expression, and the message for an invalid ExtensionConfig.
const VALIDATIONS: [(&str, &str); 9] = [
    (
        "variables.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && size(variables.name) <= 63",
        "metadata.name: must be a DNS label of at most 63 characters, without dots: names of handlers end with it",
    ),
    (
        "(variables.url == '') == variables.hasService",
        "spec.clientConfig: must have exactly one of url and service",
    ),
    (
        "variables.url == '' || (isURL(variables.url) && url(variables.url).getScheme() == 'https' && \
         url(variables.url).getHostname() != '')",
        "spec.clientConfig.url: must be a URL that begins with https://",
    ),
    (
        "variables.url == '' || !(variables.url.contains('?') || variables.url.contains('#') || \
         variables.url.matches('^[^/]*//[^/]*@'))",
        "spec.clientConfig.url: must have no user, query or fragment",
    ),
    (
        "!variables.hasService || (variables.serviceName.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$') && size(variables.serviceName) <= 63)",
        "spec.clientConfig.service.name: must be the name of a Service",
    ),
    (
        "!variables.hasService || (variables.serviceNamespace.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && \
         size(variables.serviceNamespace) <= 63)",
        "spec.clientConfig.service.namespace: must be the name of a namespace",
    ),
    (
        "!variables.hasService || variables.service.?path.orValue('/').matches('^/[^\\\\s?#]*$')",
        "spec.clientConfig.service.path: must be a path that begins with /",
    ),
    (
        "!variables.hasService || (variables.service.?port.orValue(443) >= 1 && variables.service.?port.orValue(443) <= 65535)",
        "spec.clientConfig.service.port: must be 1 to 65535",
    ),
    (
        "variables.expressions.all(e, e.operator in ['In', 'NotIn'] ? size(e.?values.orValue([])) > 0 : \
         (e.operator in ['Exists', 'DoesNotExist'] && size(e.?values.orValue([])) == 0))",
        "spec.namespaceSelector.matchExpressions: operator must be In or NotIn, with values, or Exists or DoesNotExist, without",
    ),
];

/// The variables of the validations.
const VARIABLES: [(&str, &str); 8] = [
    ("name", "object.metadata.?name.orValue('')"),
    ("clientConfig", "object.?spec.?clientConfig.orValue({})"),
    ("url", "variables.clientConfig.?url.orValue('')"),
    ("hasService", "has(variables.clientConfig.service)"),
    ("service", "variables.clientConfig.?service.orValue({})"),
    ("serviceName", "variables.service.?name.orValue('')"),
    ("serviceNamespace", "variables.service.?namespace.orValue('')"),
    (
        "expressions",
        "object.?spec.?namespaceSelector.?matchExpressions.orValue([])",
    ),
];

/// The defaults: their conditions and patches.
const MUTATIONS: [(&str, &str, &str); 2] = [
    (
        "has(object.spec) && !has(object.spec.namespaceSelector)",
        "/spec/namespaceSelector",
        "{}",
    ),
    (
        "has(object.spec) && has(object.spec.clientConfig) && has(object.spec.clientConfig.service) && \
         !has(object.spec.clientConfig.service.port)",
        "/spec/clientConfig/service/port",
        "443",
    ),
];

pub(super) fn documents() -> Vec<Document> {
    let [defaults, defaults_binding] = defaults();
    let [rules, rules_binding] = rules();
    let [role, role_binding] = rights();
    vec![
        Document::commented(DEFAULTS, defaults),
        Document::new(defaults_binding),
        Document::commented(RULES, rules),
        Document::new(rules_binding),
        Document::commented(RIGHTS, role),
        Document::new(role_binding),
    ]
}

/// Returns the policy that sets defaults, and its binding.
fn defaults() -> [Value; 2] {
    let mutations: Vec<_> = MUTATIONS
        .iter()
        .map(|(lacks, path, value)| {
            let patch = format!("JSONPatch{{op: 'add', path: '{path}', value: {value}}}");
            json!({
                "patchType": "JSONPatch",
                "jsonPatch": { "expression": format!("{lacks} ? [{patch}] : []") },
            })
        })
        .collect();
    [
        object(
            "MutatingAdmissionPolicy",
            json!({
                "failurePolicy": "Fail", "reinvocationPolicy": "IfNeeded",
                "matchConstraints": constraints(), "matchConditions": conditions(), "mutations": mutations,
            }),
        ),
        object("MutatingAdmissionPolicyBinding", json!({ "policyName": NAME })),
    ]
}

/// Returns the policy that validates, and its binding.
fn rules() -> [Value; 2] {
    let variables: Vec<_> = VARIABLES
        .iter()
        .map(|(name, expression)| json!({ "name": name, "expression": expression }))
        .collect();
    let validations: Vec<_> = VALIDATIONS
        .iter()
        .map(|(expression, message)| json!({ "expression": expression, "message": message }))
        .collect();
    [
        object(
            "ValidatingAdmissionPolicy",
            json!({
                "failurePolicy": "Fail",
                "matchConstraints": constraints(), "matchConditions": conditions(),
                "variables": variables, "validations": validations,
            }),
        ),
        object(
            "ValidatingAdmissionPolicyBinding",
            json!({ "policyName": NAME, "validationActions": ["Deny"] }),
        ),
    ]
}

/// Returns the role that lets any process with the controllers of ExtensionConfigs change the bindings, and
/// its binding.
fn rights() -> [Value; 2] {
    let group = "rbac.authorization.k8s.io";
    let metadata = json!({ "name": NAME, "labels": labels() });
    let accounts = [document::NAME, CERTIFICATES_ACCOUNT];
    let subjects =
        accounts.map(|name| json!({ "kind": "ServiceAccount", "name": name, "namespace": NAMESPACE }));
    [
        json!({
            "apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": metadata,
            "rules": [{
                "apiGroups": ["admissionregistration.k8s.io"],
                "resources": ["mutatingadmissionpolicybindings", "validatingadmissionpolicybindings"],
                "resourceNames": [NAME],
                "verbs": ["get", "patch"],
            }],
        }),
        json!({
            "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": metadata,
            "roleRef": { "apiGroup": group, "kind": "ClusterRole", "name": NAME },
            "subjects": subjects,
        }),
    ]
}

fn object(kind: &str, spec: Value) -> Value {
    json!({ "apiVersion": API_VERSION, "kind": kind, "metadata": { "name": NAME, "labels": labels() }, "spec": spec })
}

/// Removing a finalizer must never be rejected.
fn conditions() -> Value {
    json!([{ "name": "not-deleted", "expression": "!has(object.metadata.deletionTimestamp)" }])
}

fn constraints() -> Value {
    json!({
        "matchPolicy": "Equivalent",
        "resourceRules": [{
            "apiGroups": ["runtime.cluster.x-k8s.io"],
            "apiVersions": ["v1beta2", "v1alpha1"],
            "resources": ["extensionconfigs"],
            "operations": ["CREATE", "UPDATE"],
            "scope": "Cluster",
        }],
    })
}
