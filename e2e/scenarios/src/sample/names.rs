//! What the sample is called, and where its objects are.

/// The image of the sample bundles.
pub const IMAGE: &str = "example.com/windlass/sample-operator";

/// The same program as of [`IMAGE`], from a mirror.
pub const MIRROR: &str = "mirror.example.com/windlass/sample-operator";

/// The image of the sample's webhooks as a program of controller-runtime, `e2e/webhook-server`.
pub const CONTROLLER_RUNTIME_IMAGE: &str = "example.com/windlass/webhook-server";

/// The variable that names that program. Without it, nothing runs it.
pub const CONTROLLER_RUNTIME_PROGRAM: &str = "E2E_WEBHOOK_SERVER";

/// The group of the sample resources.
pub const GROUP: &str = "sample.windlass.dev";

/// The CRD of the sample bundles.
pub const WIDGETS: &str = "widgets.sample.windlass.dev";

/// The namespace that scenarios install it into.
pub const NAMESPACE: &str = "sample-system";

/// Its ServingCertificate, which is named as its Service.
pub const CERTIFICATE: &str = "sample-operator-service";

/// Where its BundleDeployment is, `sample`.
pub const BUNDLE_DEPLOYMENT: &str = "/apis/windlass.dev/v1alpha1/bundledeployments/sample";

/// Where its CRD is.
pub const DEFINITION: &str =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.sample.windlass.dev";

/// Where its ServingCertificate is.
pub const SERVING_CERTIFICATE: &str =
    "/apis/windlass.dev/v1alpha1/namespaces/sample-system/servingcertificates/sample-operator-service";

/// Where its Deployment is.
pub const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/sample-system/deployments/sample-operator";

/// Its Service.
pub const SERVICE: &str = "/api/v1/namespaces/sample-system/services/sample-operator-service";

/// The Service that webhooks call after an odd number of upgrades.
pub const GREEN_SERVICE: &str = "/api/v1/namespaces/sample-system/services/sample-operator-service-green";

/// Where the Secret is that it serves with.
pub const SERVING_SECRET: &str = "/api/v1/namespaces/sample-system/secrets/sample-operator-service-cert";
