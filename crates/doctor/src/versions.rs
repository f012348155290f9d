//! The version and the APIs of the API server.

use std::fmt;

use crate::{check::DoctorCheck, finding::DoctorFinding};

/// The oldest minor version with every field of the manifests.
const OLDEST: (u32, u32) = (1, 30);

/// The version used in tests.
const TESTED: (u32, u32) = (1, 36);

/// The subject of findings about the API server.
const API_SERVER: &str = "API server";

/// Judges the Kubernetes version from `/version`.
pub fn kubernetes_version(version: &str) -> DoctorFinding {
    let check = DoctorCheck::KubernetesVersion;
    let Some(minor) = minor(version) else {
        let message = format!("reports no readable version ({version:?}): Windlass requires 1.30 or newer");
        return check.warning(API_SERVER, message);
    };
    if minor < OLDEST {
        let message =
            format!("{version} is not supported: Windlass requires 1.30 or newer; upgrade the cluster first");
        return check.error(API_SERVER, message);
    }
    let message = if minor == TESTED {
        format!("{version} is supported")
    } else {
        format!("{version}: Windlass is tested with 1.36 and requires 1.30 or newer")
    };
    check.info(API_SERVER, message)
}

/// `v1.30.2-gke.1` and `v1.27+` are 1.30 and 1.27.
fn minor(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.trim_start_matches('v').split('.');
    let mut number = || {
        let text = numbers.next()?;
        let digits = text.split(|character: char| !character.is_ascii_digit()).next()?;
        digits.parse().ok()
    };
    Some((number()?, number()?))
}

/// The finding that a kind is not served.
pub fn api_not_served(kind: impl fmt::Display) -> DoctorFinding {
    let message = format!(
        "does not serve {kind}, which Windlass uses: enable the API (--runtime-config of kube-apiserver), or upgrade the cluster"
    );
    DoctorCheck::ApiNotServed.error(API_SERVER, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::DoctorSeverity::{self, Error, Info, Warning};

    #[test]
    fn provider_version_formats_are_parsed() {
        for (version, expected) in [
            ("v1.36.3", Info),
            ("v1.30.2-gke.1587003", Info),
            ("v1.30+", Info),
            ("v1.40.0-alpha.1+abc", Info),
            ("v1.29.15-eks-1", Error),
            ("v1.9.0", Error),
            ("", Warning),
            ("main", Warning),
        ] {
            let finding = kubernetes_version(version);
            assert_eq!(finding.severity, expected, "{version}: {}", finding.message);
        }
        let not_served = api_not_served("discovery.k8s.io/v1, Kind=EndpointSlice");
        assert_eq!(not_served.severity, DoctorSeverity::Error);
    }
}
