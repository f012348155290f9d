//! Previous owners of installs.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The previous owner of an install, with its name for the install.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub enum AdoptionSource {
    /// Any installer, with a certificate from cert-manager: the Certificate.
    CertManager(SourceName),
    /// Helm: the release.
    Helm(SourceName),
    /// OLM v0: the ClusterServiceVersion.
    Olm(SourceName),
    /// Any installer, with a certificate from OpenShift's service-ca: the Service.
    ServiceCa(SourceName),
}

/// A name with an optional namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceName {
    /// The namespace; by default that of the install.
    pub namespace: Option<String>,
    /// Name of the object.
    pub name: String,
}

/// Why a text is not a source.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ParseAdoptionSourceError {
    /// The kind of source is unknown.
    #[error(
        "{0:?} is not a known source: use cert-manager/[NAMESPACE/]CERTIFICATE, helm/[NAMESPACE/]RELEASE, olm/[NAMESPACE/]CLUSTERSERVICEVERSION or service-ca/[NAMESPACE/]SERVICE"
    )]
    Unknown(String),
    /// The name is missing, or has too many parts.
    #[error("must be {0}/NAME or {0}/NAMESPACE/NAME")]
    Nameless(&'static str),
}

const CERT_MANAGER: &str = "cert-manager";
const HELM: &str = "helm";
const OLM: &str = "olm";
const SERVICE_CA: &str = "service-ca";

impl AdoptionSource {
    /// Returns the namespace and name of the source.
    pub fn name(&self) -> &SourceName {
        match self {
            Self::CertManager(name) | Self::Helm(name) | Self::Olm(name) | Self::ServiceCa(name) => name,
        }
    }

    /// Returns the same source with a namespace: `namespace` if it has none.
    #[must_use]
    pub fn within(self, namespace: &str) -> Self {
        let within = |name: SourceName| SourceName {
            namespace: Some(name.namespace.unwrap_or_else(|| namespace.to_owned())),
            ..name
        };
        match self {
            Self::CertManager(name) => Self::CertManager(within(name)),
            Self::Helm(name) => Self::Helm(within(name)),
            Self::Olm(name) => Self::Olm(within(name)),
            Self::ServiceCa(name) => Self::ServiceCa(within(name)),
        }
    }

    /// Reports whether all callers trust Windlass's CA in addition to the old one before anything is adopted,
    /// so that old and new servers can both serve them. With OLM, the operator has already been released by
    /// then.
    pub fn is_trusted_ahead(&self) -> bool {
        matches!(self, Self::Olm(_))
    }

    /// Returns the name of the tool that owned the objects.
    pub fn owner(&self) -> &'static str {
        match self {
            Self::CertManager(_) => CERT_MANAGER,
            Self::Helm(_) => HELM,
            Self::Olm(_) => OLM,
            Self::ServiceCa(_) => SERVICE_CA,
        }
    }
}

impl fmt::Display for AdoptionSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/", self.owner())?;
        let SourceName { namespace, name } = self.name();
        match namespace {
            Some(namespace) => write!(f, "{namespace}/{name}"),
            None => f.write_str(name),
        }
    }
}

impl FromStr for AdoptionSource {
    type Err = ParseAdoptionSourceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (kind, rest) = text.split_once('/').unwrap_or((text, ""));
        let (kind, source): (_, fn(SourceName) -> Self) = match kind {
            CERT_MANAGER => (CERT_MANAGER, Self::CertManager),
            HELM => (HELM, Self::Helm),
            OLM => (OLM, Self::Olm),
            SERVICE_CA => (SERVICE_CA, Self::ServiceCa),
            _ => return Err(ParseAdoptionSourceError::Unknown(text.to_owned())),
        };
        let (namespace, name) = match rest.split_once('/') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, rest),
        };
        if name.is_empty() || name.contains('/') || namespace == Some("") {
            return Err(ParseAdoptionSourceError::Nameless(kind));
        }
        Ok(source(SourceName {
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        }))
    }
}

impl TryFrom<String> for AdoptionSource {
    type Error = ParseAdoptionSourceError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<AdoptionSource> for String {
    fn from(source: AdoptionSource) -> Self {
        source.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_sources_are_parsed_back() {
        for (text, within) in [
            ("helm/widgets", "helm/n/widgets"),
            ("helm/apps/widgets", "helm/apps/widgets"),
            ("cert-manager/serving-cert", "cert-manager/n/serving-cert"),
            ("olm/widgets.v1.0.0", "olm/n/widgets.v1.0.0"),
            ("service-ca/webhooks", "service-ca/n/webhooks"),
        ] {
            let source: AdoptionSource = text.parse().unwrap();
            assert_eq!(source.to_string(), text);
            assert_eq!(source.within("n").to_string(), within);
        }
    }

    #[test]
    fn an_unknown_source_is_rejected_with_the_known_ones() {
        for (text, expected) in [
            (
                "argo/a",
                "\"argo/a\" is not a known source: use cert-manager/[NAMESPACE/]CERTIFICATE, helm/[NAMESPACE/]RELEASE, olm/[NAMESPACE/]CLUSTERSERVICEVERSION or service-ca/[NAMESPACE/]SERVICE",
            ),
            ("helm", "must be helm/NAME or helm/NAMESPACE/NAME"),
            ("helm/", "must be helm/NAME or helm/NAMESPACE/NAME"),
            ("helm//a", "must be helm/NAME or helm/NAMESPACE/NAME"),
            (
                "cert-manager/a/b/c",
                "must be cert-manager/NAME or cert-manager/NAMESPACE/NAME",
            ),
        ] {
            let refused = text.parse::<AdoptionSource>().unwrap_err();
            assert_eq!(refused.to_string(), expected);
        }
    }
}
