//! Renders a bundle into the objects of an install, by the rules of OLM v1, with certificates at the paths of
//! OLM v0.
//!
//! ```text
//! bundle.csv    permissions        -> ServiceAccounts, roles, bindings   rbac
//!               deployments        -> Deployments                        deployments, certificates, rollout
//!               webhookdefinitions -> Services, ServingCertificates      services, certificates
//!                                  -> webhook configurations             webhooks
//!                                  -> conversions                        crds
//! bundle.crds                      -> CustomResourceDefinitions          crds
//! bundle.others                    -> the same in another namespace      plain_objects
//!   callers of its Deployments     -> as for webhook definitions         callers
//! ```

mod callers;
mod certificates;
mod crds;
mod deployment_config;
mod deployments;
mod error;
mod hash;
mod install_modes;
pub(super) mod names;
mod operator_condition;
mod options;
mod plain_objects;
mod rbac;
mod rendered;
mod rollout;
#[cfg(test)]
pub(crate) mod sample;
mod services;
mod serving_deployments;
mod termination;
#[cfg(test)]
mod tests;
mod trust;
mod webhooks;

pub use certificates::WebhookCertificate;
pub use crds::Conversion;
pub use deployment_config::{DeploymentConfig, ServingDefaults};
pub use error::{RenderError, Supported, TargetNamespacesReason};
pub use options::{CertificateProvider, ConversionMode, Durations, InstallOptions};
pub use rendered::{Rendered, render};
