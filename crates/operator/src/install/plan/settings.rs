//! How a BundleDeployment wants its bundle to be installed.

use windlass_api::{BundleDeploymentSpec, ConversionManager};
use windlass_bundle::render::{
    CertificateProvider, ConversionMode, DeploymentConfig, Durations, InstallOptions,
};
use windlass_object::Problem;

/// Who arms the conversions.
pub fn conversion_mode(spec: &BundleDeploymentSpec) -> ConversionMode {
    match spec.conversion {
        ConversionManager::Managed => ConversionMode::Managed,
        ConversionManager::External => ConversionMode::External,
    }
}

/// What `spec` says of how the bundle is installed.
///
/// # Errors
///
/// Every problem of `spec.config`.
pub fn install_options(spec: &BundleDeploymentSpec) -> Result<InstallOptions, Vec<Problem>> {
    let config = match &spec.config {
        Some(config) => DeploymentConfig::from_value("spec.config", config)?,
        None => DeploymentConfig::default(),
    };
    Ok(InstallOptions {
        namespace: spec.namespace.clone(),
        watch_namespaces: spec.watch_namespaces.clone(),
        config,
        certificates: CertificateProvider::Windlass {
            durations: Some(Durations {
                certificate: spec.certificates.duration,
                ca: spec.certificates.ca_duration,
            }),
        },
        conversion: conversion_mode(spec),
    })
}
