//! Names and paths of the sample's objects.

/// The image of the sample bundles.
pub const IMAGE: &str = "example.com/windlass/sample-operator";

/// The image of [`IMAGE`] in a mirror.
pub const MIRROR: &str = "mirror.example.com/windlass/sample-operator";

/// The image of the sample's webhooks as a controller-runtime program, `e2e/webhook-server`.
pub const CONTROLLER_RUNTIME_IMAGE: &str = "example.com/windlass/webhook-server";

/// The variable that names that program. Without it, the program does not run.
pub const CONTROLLER_RUNTIME_PROGRAM: &str = "E2E_WEBHOOK_SERVER";

/// The group of the sample resources.
pub const GROUP: &str = "sample.windlass.dev";

/// The CRD of the sample bundles.
pub const WIDGETS: &str = "widgets.sample.windlass.dev";

/// The namespace of the sample in scenarios.
pub const NAMESPACE: &str = "sample-system";

/// The ServingCertificate, which has the name of its Service.
pub const CERTIFICATE: &str = "sample-operator-service";

/// The path of the BundleDeployment `sample`.
pub const BUNDLE_DEPLOYMENT: &str = "/apis/windlass.dev/v1alpha1/bundledeployments/sample";

/// The path of the CRD.
pub const DEFINITION: &str =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.sample.windlass.dev";

/// The path of the ServingCertificate.
pub const SERVING_CERTIFICATE: &str =
    "/apis/windlass.dev/v1alpha1/namespaces/sample-system/servingcertificates/sample-operator-service";

/// The path of the Deployment.
pub const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/sample-system/deployments/sample-operator";

/// The Service.
pub const SERVICE: &str = "/api/v1/namespaces/sample-system/services/sample-operator-service";

/// The Service that webhooks call after an odd number of upgrades.
pub const GREEN_SERVICE: &str = "/api/v1/namespaces/sample-system/services/sample-operator-service-green";

/// The path of the serving Secret.
pub const SERVING_SECRET: &str = "/api/v1/namespaces/sample-system/secrets/sample-operator-service-cert";
