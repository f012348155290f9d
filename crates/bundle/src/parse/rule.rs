//! The rules for bundles, by name.

use windlass_object::Rule;

/// Declares each rule as a constant and all of them as one table.
macro_rules! rules {
    ($($constant:ident = $name:literal: $explanation:literal;)*) => {
        $(
            #[doc = $explanation]
            pub const $constant: Rule = Rule { name: $name, explanation: $explanation };
        )*

        /// Every rule.
        pub const ALL: &[Rule] = &[$($constant),*];
    };
}

rules! {
    // Files and their syntax.
    SOURCE = "source": "the bundle is a directory or a .tar.gz within the size limits, and no path or link in it leads outside of it";
    ANNOTATIONS_MISSING = "annotations-missing": "a bundle has the file metadata/annotations.yaml";
    MANIFESTS_MISSING = "manifests-missing": "a bundle has files in manifests/";
    SUBDIRECTORY = "subdirectory": "manifests/ has no subdirectories";
    SYNTAX = "syntax": "every file in manifests/ is YAML or JSON";
    NOT_AN_OBJECT = "not-an-object": "every document is one Kubernetes object";
    KIND_MISSING = "kind-missing": "every object has a kind";
    FIELD_TYPE = "field-type": "every field has the type that its API defines";
    PROPERTY = "property": "properties have a type and a value";
    DEPENDENCY = "dependency": "dependencies and required APIs are complete, and constraints are ones that can be evaluated";
    CSV_MISSING = "csv-missing": "a bundle contains a ClusterServiceVersion";
    CSV_DUPLICATE = "csv-duplicate": "a bundle contains only one ClusterServiceVersion";

    // The package and its ClusterServiceVersion.
    PACKAGE_MISSING = "package-missing": "metadata/annotations.yaml names the package";
    CSV_NAME = "csv-name": "the names of the ClusterServiceVersion and of the one that it replaces are valid as object names and label values";
    CSV_VERSION = "csv-version": "spec.version and spec.minKubeVersion are semantic versions";
    INSTALL_STRATEGY = "install-strategy": "the install strategy is deployment";
    INSTALL_MODES = "install-modes": "at least one known install mode is supported, and none is listed twice";
    API_SERVICE = "api-service": "an APIService that the bundle owns has a group and a version, and one Deployment of the bundle serves it on one port";

    // Objects.
    UNSUPPORTED_KIND = "unsupported-kind": "all objects are of kinds that OLM supports in a bundle, or ExtensionConfigs or APIServices";
    API_VERSION_MISSING = "api-version-missing": "every object has an apiVersion";
    OBJECT_NAME = "object-name": "every object has a name that the API server accepts";
    OBJECT_DUPLICATE = "object-duplicate": "no object occurs twice";
    LABEL = "label": "labels have names and values that the API server accepts";
    GENERATED_NAME = "generated-name": "the API server accepts the names of the objects that an install creates";
    GENERATED_NAME_CLASH = "generated-name-clash": "the names of objects that an install creates differ from each other and from those of bundled objects";
    CALLED_SERVICE = "called-service": "an ExtensionConfig or APIService calls a Service that selects the pods of one Deployment of the bundle";
    PERMISSION_RULE = "permission-rule": "permission rules are complete, and namespaced rules have no nonResourceURLs";

    // Deployments.
    DEPLOYMENT_DUPLICATE = "deployment-duplicate": "names of Deployments are unique";
    DEPLOYMENT_NAME = "deployment-name": "names of Deployments are lowercase RFC 1123 subdomains";
    DEPLOYMENT_SELECTOR = "deployment-selector": "every Deployment has a selector that matches the labels of its pods";
    DEPLOYMENT_CONTAINERS = "deployment-containers": "every Deployment has a container, and the names of its containers are unique";

    // CustomResourceDefinitions.
    CRD_DUPLICATE = "crd-duplicate": "names of CustomResourceDefinitions are unique";
    CRD_MISSING = "crd-missing": "the bundle contains every CustomResourceDefinition that it owns, with the owned version";
    CRD_API_VERSION = "crd-api-version": "the apiVersion of CustomResourceDefinitions is apiextensions.k8s.io/v1";
    CRD_NAME = "crd-name": "a CustomResourceDefinition is named PLURAL.GROUP";
    CRD_VERSIONS = "crd-versions": "the versions of a CustomResourceDefinition have unique names, and exactly one is the storage version";
    CRD_SCHEMA = "crd-schema": "every version of a CustomResourceDefinition has a schema";
    CRD_PRESERVE_UNKNOWN_FIELDS = "crd-preserve-unknown-fields": "spec.preserveUnknownFields is false, as structural schemas and conversion require";
    CRD_PROTECTED_GROUP = "crd-protected-group": "CustomResourceDefinitions of protected Kubernetes groups have the approval annotation";
    CRD_KIND_CLASH = "crd-kind-clash": "kinds of CustomResourceDefinitions are unique within a group";

    // Validating, mutating and conversion webhooks.
    WEBHOOK_TYPE = "webhook-type": "the type of a webhook is known";
    WEBHOOK_NAME = "webhook-name": "generateName is a lowercase RFC 1123 subdomain";
    WEBHOOK_NAME_QUALIFIED = "webhook-name-qualified": "generateName of an admission webhook is a domain of at least three segments";
    WEBHOOK_DUPLICATE = "webhook-duplicate": "generateName is unique among webhooks of the same type";
    WEBHOOK_DEPLOYMENT = "webhook-deployment": "the Deployment of a webhook is in the bundle";
    WEBHOOK_PORT = "webhook-port": "containerPort is between 1 and 65535";
    WEBHOOK_TARGET_PORT = "webhook-target-port": "targetPort is between 1 and 65535, or the name of a port of the Deployment";
    WEBHOOK_PORT_CLASH = "webhook-port-clash": "webhooks of the same Deployment and containerPort have the same targetPort";
    WEBHOOK_PATH = "webhook-path": "webhookPath is an absolute path of non-empty lowercase segments";
    WEBHOOK_SIDE_EFFECTS = "webhook-side-effects": "sideEffects is None or NoneOnDryRun";
    WEBHOOK_REVIEW_VERSIONS = "webhook-review-versions": "admissionReviewVersions contains a version that the API server supports";

    // Admission webhooks.
    WEBHOOK_FAILURE_POLICY = "webhook-failure-policy": "failurePolicy is Fail or Ignore";
    WEBHOOK_MATCH_POLICY = "webhook-match-policy": "matchPolicy is Exact or Equivalent";
    WEBHOOK_REINVOCATION_POLICY = "webhook-reinvocation-policy": "reinvocationPolicy is Never or IfNeeded";
    WEBHOOK_TIMEOUT = "webhook-timeout": "timeoutSeconds is between 1 and 30";
    WEBHOOK_RULE = "webhook-rule": "rules of admission webhooks are complete and well-formed";
    WEBHOOK_RULE_FORBIDDEN = "webhook-rule-forbidden": "admission webhooks do not match the objects that install and configure them";
    WEBHOOK_RULE_BLOCKING = "webhook-rule-blocking": "a webhook with failurePolicy Fail does not match requests that its own bundle needs to start";

    // Conversion webhooks.
    CONVERSION_INSTALL_MODES = "conversion-install-modes": "a bundle with conversion webhooks supports only AllNamespaces";
    CONVERSION_CRDS_MISSING = "conversion-crds-missing": "a conversion webhook names a CustomResourceDefinition";
    CONVERSION_CRD_DUPLICATE = "conversion-crd-duplicate": "a CustomResourceDefinition has only one conversion webhook";
    CONVERSION_CRD_NOT_OWNED = "conversion-crd-not-owned": "the bundle owns the CustomResourceDefinitions that it converts";
    CONVERSION_UNDECLARED = "conversion-undeclared": "conversion is declared in the ClusterServiceVersion, not only in the CustomResourceDefinition";
}
