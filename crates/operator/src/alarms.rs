//! What an admin is to be woken for, as metrics to alert on.

use std::sync::Arc;

use serde_json::Value;
use windlass_cluster::{
    Index, kinds,
    telemetry::{Metrics, Reading},
};
use windlass_object::object;
use windlass_trust::rotation::Reason;

/// Reports the alarms at each scrape, as the status of ServingCertificates has them.
pub(crate) fn report(metrics: &Metrics, index: &Arc<Index>) {
    let help = "1 for each ServingCertificate that a server has not reloaded, or may not have, and whose replaced certificate ends soon";
    let index = index.clone();
    metrics.report("serving_certificate_not_reloaded", help, move || {
        let certificates = index.objects(&kinds::SERVING_CERTIFICATE);
        certificates
            .iter()
            .filter_map(|certificate| not_reloaded(certificate))
            .collect()
    });
}

fn not_reloaded(certificate: &Value) -> Option<Reading> {
    let ready = object::condition(certificate, "Ready")?;
    let is_it = object::text(ready, "/reason") == Some(&Reason::NotReloaded.to_string());
    let text = |pointer| Some(object::text(certificate, pointer)?.to_owned());
    let labels = vec![
        ("namespace", text("/metadata/namespace")?),
        ("name", text("/metadata/name")?),
    ];
    is_it.then_some((labels, 1))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_certificate_that_was_not_reloaded_is_reported_by_name() {
        let certificate = |reason: &str| {
            json!({
                "metadata": {"namespace": "n", "name": "hook"},
                "status": {"conditions": [{"type": "Served", "reason": "Current"}, {"type": "Ready", "reason": reason}]},
            })
        };
        let labels = vec![("namespace", "n".to_owned()), ("name", "hook".to_owned())];
        assert_eq!(not_reloaded(&certificate("NotReloaded")), Some((labels, 1)));
        assert_eq!(not_reloaded(&certificate("Current")), None);
    }
}
