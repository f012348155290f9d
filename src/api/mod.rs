//! The types of `windlass.dev/v1alpha1`, with their schemas and validation rules.

#[expect(
    unreachable_pub,
    reason = "KubeSchema derives a helper struct inside a function"
)]
pub mod bundle_deployment;
mod go_duration;
#[expect(
    unreachable_pub,
    reason = "KubeSchema derives a helper struct inside a function"
)]
pub mod serving_certificate;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

pub use crate::domain::{
    names,
    status::{Conditions, Verdict},
};
pub use bundle_deployment::{
    BundleDeployment, BundleDeploymentSpec, BundleDeploymentStatus, BundleStatus, CertificateDefaults,
    CertificateStatus, ConfigMapName, ConversionStatus, CrdUpgradeSafety, DirectorySource, ImageSource,
    Source, WebhookState, WebhookStatus,
};
pub use go_duration::{GoDuration, ParseGoDurationError};
pub use serving_certificate::{
    CaSpec, CaStatus, ContestedTarget, EndpointsStatus, FailingTarget, Generation, Phase, PrivateKey,
    PrivateKeyAlgorithm, Reload, ReloadStrategy, ServingCertificate, ServingCertificateSpec,
    ServingCertificateStatus, TargetsStatus,
};

/// The CustomResourceDefinitions of Windlass itself.
pub fn custom_resource_definitions() -> [CustomResourceDefinition; 2] {
    [BundleDeployment::crd(), ServingCertificate::crd()]
}
