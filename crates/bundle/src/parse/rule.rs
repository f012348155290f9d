//! The rules that a bundle can break, by name.

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
    SOURCE = "source": "the bundle is a folder or a .tar.gz within limits, and nothing in it leads out of it";
    ANNOTATIONS_MISSING = "annotations-missing": "a bundle has the file metadata/annotations.yaml";
    MANIFESTS_MISSING = "manifests-missing": "a bundle has files in manifests/";
    SUBDIRECTORY = "subdirectory": "manifests/ has no folders in it";
    SYNTAX = "syntax": "every file in manifests/ is YAML or JSON";
    NOT_AN_OBJECT = "not-an-object": "every document is one Kubernetes object";
    KIND_MISSING = "kind-missing": "every object has a kind";
    FIELD_TYPE = "field-type": "every field has the type that its API gives it";
    PROPERTY = "property": "properties have a type and a value";
    CSV_MISSING = "csv-missing": "a bundle has a ClusterServiceVersion";
    CSV_DUPLICATE = "csv-duplicate": "a bundle has one ClusterServiceVersion";

    // The package and its ClusterServiceVersion.
    PACKAGE_MISSING = "package-missing": "metadata/annotations.yaml names the package";
    CSV_NAME = "csv-name": "the name of the ClusterServiceVersion, and of the one it replaces, fits an object and a label";
    CSV_VERSION = "csv-version": "spec.version and spec.minKubeVersion are semantic versions";
    INSTALL_STRATEGY = "install-strategy": "the install strategy is deployment";
    INSTALL_MODES = "install-modes": "at least one known install mode is supported, and none is listed twice";
    API_SERVICE = "api-service": "the bundle owns no APIService";

    // Objects.
    UNSUPPORTED_KIND = "unsupported-kind": "objects are of the kinds that OLM permits in a bundle";
    API_VERSION_MISSING = "api-version-missing": "every object has an apiVersion";
    OBJECT_NAME = "object-name": "every object has a name that the API server accepts";
    OBJECT_DUPLICATE = "object-duplicate": "no two objects are the same one";
    LABEL = "label": "labels have names and values that the API server accepts";
    GENERATED_NAME = "generated-name": "the API server accepts the names of the objects that an install creates";
    GENERATED_NAME_CLASH = "generated-name-clash": "objects that an install creates differ in name from each other and from bundled ones";
    PERMISSION_RULE = "permission-rule": "permission rules are complete, and namespaced ones name no URLs";

    // Deployments.
    DEPLOYMENT_DUPLICATE = "deployment-duplicate": "no two Deployments have one name";
    DEPLOYMENT_NAME = "deployment-name": "names of Deployments are lowercase RFC 1123 subdomains";
    DEPLOYMENT_SELECTOR = "deployment-selector": "every Deployment has a selector, and the labels of its pods match it";
    DEPLOYMENT_CONTAINERS = "deployment-containers": "every Deployment has a container, and no two of one name";

    // CustomResourceDefinitions.
    CRD_DUPLICATE = "crd-duplicate": "no two CustomResourceDefinitions have one name";
    CRD_MISSING = "crd-missing": "every CustomResourceDefinition that the bundle owns is in it, with that version";
    CRD_API_VERSION = "crd-api-version": "CustomResourceDefinitions are of apiextensions.k8s.io/v1";
    CRD_NAME = "crd-name": "a CustomResourceDefinition is named PLURAL.GROUP";
    CRD_VERSIONS = "crd-versions": "a CustomResourceDefinition has versions of different names, and stores one of them";
    CRD_SCHEMA = "crd-schema": "every version of a CustomResourceDefinition has a schema";
    CRD_PRESERVE_UNKNOWN_FIELDS = "crd-preserve-unknown-fields": "spec.preserveUnknownFields is false, as structural schemas and conversion ask for";
    CRD_PROTECTED_GROUP = "crd-protected-group": "groups of Kubernetes itself carry its approval";
    CRD_KIND_CLASH = "crd-kind-clash": "no two CustomResourceDefinitions of one group have one kind";

    // Webhooks of every type.
    WEBHOOK_TYPE = "webhook-type": "the type of a webhook is known";
    WEBHOOK_NAME = "webhook-name": "generateName is a lowercase RFC 1123 subdomain";
    WEBHOOK_NAME_LENGTH = "webhook-name-length": "generateName of an admission webhook fits a label";
    WEBHOOK_NAME_QUALIFIED = "webhook-name-qualified": "generateName of an admission webhook is a domain of at least three segments";
    WEBHOOK_DUPLICATE = "webhook-duplicate": "no two webhooks of one type have one generateName";
    WEBHOOK_NAME_REPEATED = "webhook-name-repeated": "no two webhooks have one generateName";
    WEBHOOK_DEPLOYMENT = "webhook-deployment": "the Deployment of a webhook is in the bundle";
    WEBHOOK_PORT = "webhook-port": "containerPort is between 1 and 65535";
    WEBHOOK_TARGET_PORT = "webhook-target-port": "targetPort is between 1 and 65535, or the name of a port of the Deployment";
    WEBHOOK_PORT_CLASH = "webhook-port-clash": "webhooks of one Deployment and containerPort have one targetPort";
    WEBHOOK_PATH = "webhook-path": "webhookPath is an absolute path of non-empty lowercase segments";
    WEBHOOK_SIDE_EFFECTS = "webhook-side-effects": "sideEffects is None or NoneOnDryRun";
    WEBHOOK_REVIEW_VERSIONS = "webhook-review-versions": "admissionReviewVersions holds a version that the API server speaks";

    // Admission webhooks.
    WEBHOOK_FAILURE_POLICY = "webhook-failure-policy": "failurePolicy is Fail or Ignore";
    WEBHOOK_MATCH_POLICY = "webhook-match-policy": "matchPolicy is Exact or Equivalent";
    WEBHOOK_REINVOCATION_POLICY = "webhook-reinvocation-policy": "reinvocationPolicy is Never or IfNeeded";
    WEBHOOK_TIMEOUT = "webhook-timeout": "timeoutSeconds is between 1 and 30";
    WEBHOOK_RULE = "webhook-rule": "rules of admission webhooks are complete and well-formed";
    WEBHOOK_RULE_FORBIDDEN = "webhook-rule-forbidden": "admission webhooks leave alone what installs and configures them";
    WEBHOOK_RULE_BLOCKING = "webhook-rule-blocking": "a webhook that must answer is not asked about what it needs to come up";

    // Conversion webhooks.
    CONVERSION_INSTALL_MODES = "conversion-install-modes": "a bundle that converts supports AllNamespaces only";
    CONVERSION_CRDS_MISSING = "conversion-crds-missing": "a conversion webhook names a CustomResourceDefinition";
    CONVERSION_CRD_DUPLICATE = "conversion-crd-duplicate": "one conversion webhook converts a CustomResourceDefinition";
    CONVERSION_CRD_NOT_OWNED = "conversion-crd-not-owned": "the bundle owns what it converts";
    CONVERSION_SINGLE_VERSION = "conversion-single-version": "what is converted has more than one version";
    CONVERSION_UNDECLARED = "conversion-undeclared": "conversion is declared in the ClusterServiceVersion, not only in the CustomResourceDefinition";
}
