//! `windlass certs`: serving certificates, their CAs and their targets.

use std::process::ExitCode;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::Serialize;
use windlass_api::{Conditions, Generation, ServingCertificate, ServingCertificateStatus};
use windlass_cluster::kinds;
use windlass_object::age::time_left;

use super::{
    arguments,
    cluster::{ClusterArgs, list},
};
use crate::terminal::{Format, Table, print};

/// Shows serving certificates: expiry, renewal, CAs, trusting targets and serving endpoints.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Namespace to list [default: all].
    #[arg(short, long, value_parser = arguments::namespace)]
    namespace: Option<String>,

    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,

    #[command(flatten)]
    cluster: ClusterArgs,
}

/// A ServingCertificate, for structured output.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    namespace: String,
    name: String,
    service_name: String,
    secret_name: String,
    generation: Option<i64>,
    ready: bool,
    #[serde(flatten)]
    status: ServingCertificateStatus,
}

impl Args {
    /// Prints the certificates.
    ///
    /// # Errors
    ///
    /// When they cannot be listed.
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let cluster = self.cluster.connect().await?;
        let listed = list(&cluster, &kinds::SERVING_CERTIFICATE, self.namespace.as_deref()).await?;
        let entries: Vec<_> = listed.into_iter().map(Entry::from_certificate).collect();
        print(self.output, &entries, || overview(&entries, Timestamp::now()))?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Entry {
    fn from_certificate(certificate: ServingCertificate) -> Self {
        let ready = certificate.is_ready();
        let ServingCertificate {
            metadata,
            spec,
            status,
        } = certificate;
        let status = status.unwrap_or_default();
        Self {
            namespace: metadata.namespace.unwrap_or_default(),
            name: metadata.name.unwrap_or_default(),
            service_name: spec.service_name,
            secret_name: spec.secret_name,
            generation: metadata.generation,
            ready,
            status,
        }
    }

    /// Returns the phase of the rotation, or why the certificate is not ready.
    fn state(&self) -> String {
        if !self.ready {
            let ready = self.status.conditions.find("Ready");
            return ready.map_or("Unseen", |ready| &ready.reason).to_owned();
        }
        self.status
            .phase
            .map_or_else(String::new, |phase| format!("{phase:?}"))
    }
}

fn overview(entries: &[Entry], now: Timestamp) -> String {
    if entries.is_empty() {
        return "No ServingCertificates found\n".to_owned();
    }
    let headings = [
        "NAMESPACE/NAME",
        "STATE",
        "UNTIL",
        "RENEWAL",
        "CA",
        "NEXT CA",
        "TRUSTED",
        "SERVED",
    ];
    let mut table = Table::new(&headings);
    for entry in entries {
        let status = &entry.status;
        let moment = |time: &Option<Time>| {
            time.as_ref()
                .map_or_else(String::new, |time| time_left(time.0, now))
        };
        let authority = |generation: Option<&Generation>| {
            generation.map_or_else(String::new, |ca| {
                format!("#{} {}", ca.generation, time_left(ca.not_after.0, now))
            })
        };
        let ca = status.ca.as_ref();
        let of = |current: u32, total: u32| format!("{current}/{total}");
        let targets = status
            .targets
            .as_ref()
            .map(|targets| of(targets.current, targets.total));
        let endpoints = status
            .endpoints
            .as_ref()
            .map(|endpoints| of(endpoints.current, endpoints.ready));
        table.add([
            &format!("{}/{}", entry.namespace, entry.name),
            &entry.state(),
            &moment(&status.not_after),
            &moment(&status.renewal_time),
            &authority(ca.and_then(|ca| ca.current.as_ref())),
            &authority(ca.and_then(|ca| ca.next.as_ref())),
            &targets.unwrap_or_default(),
            &endpoints.unwrap_or_default(),
        ]);
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(name: &str, ready: &str) -> Entry {
        let certificate = serde_json::from_value(json!({
            "apiVersion": "windlass.dev/v1alpha1", "kind": "ServingCertificate",
            "metadata": {"name": name, "namespace": "argocd-operator-system", "generation": 1},
            "spec": {"serviceName": name, "secretName": format!("{name}-cert")},
            "status": {
                "observedGeneration": 1, "phase": "Stable",
                "notAfter": "2027-02-19T12:00:00Z", "renewalTime": "2027-01-20T12:00:00Z",
                "ca": {"current": {"generation": 1, "notAfter": "2027-11-21T12:00:00Z"},
                    "next": {"generation": 2, "notAfter": "2028-07-22T12:00:00Z"}},
                "endpoints": {"ready": 2, "current": 2}, "targets": {"total": 3, "current": 3},
                "conditions": [{"type": "Ready", "status": ready, "reason": "NotServed", "message": "",
                    "lastTransitionTime": "2026-11-21T11:58:00Z"}],
            },
        }));
        Entry::from_certificate(certificate.unwrap())
    }

    #[test]
    fn a_certificate_is_one_line() {
        let now = "2026-11-21T12:00:00Z".parse().unwrap();
        let entries = [
            entry("argocd-operator-webhook-service", "True"),
            entry(&"long-".repeat(30), "False"),
        ];
        insta::assert_snapshot!(overview(&entries, now));
    }

    #[test]
    fn structured_output_has_the_api_fields() {
        insta::assert_json_snapshot!(entry("argocd-operator-webhook-service", "True"));
    }
}
