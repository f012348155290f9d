//! Calls of Services by webhooks, conversions and APIServices, and whether these have ready endpoints.

use std::fmt;

use windlass_object::ObjectKey;

use crate::{
    check::DoctorCheck,
    finding::{DoctorFinding, DoctorSeverity},
};

/// A call of a Service by an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServiceCall {
    /// The webhook configuration, CustomResourceDefinition, APIService or ExtensionConfig.
    pub caller: ObjectKey,
    /// The webhook, if the caller has several.
    pub webhook: Option<String>,
    /// Whether requests fail if the call does.
    pub is_fatal: bool,
    /// The namespace of the Service.
    pub namespace: String,
    /// The name of the Service.
    pub service: String,
    /// The called port.
    pub port: i64,
}

/// The state of the called Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallState {
    /// The Service does not exist.
    NoService,
    /// The Service does not have the port.
    NoPort,
    /// The Service has type `ExternalName`, which API servers reject.
    External,
    /// The Service exists and has the port; the fields count its endpoints.
    Endpoints {
        /// How many endpoints are ready.
        ready: usize,
        /// How many endpoints exist.
        total: usize,
    },
}

impl ServiceCall {
    /// The severity of a failing call.
    fn severity(&self) -> DoctorSeverity {
        match self.is_fatal {
            true => DoctorSeverity::Error,
            false => DoctorSeverity::Warning,
        }
    }

    /// What happens to requests while the call fails.
    fn consequence(&self) -> &'static str {
        match (&*self.caller.kind, self.is_fatal) {
            ("CustomResourceDefinition", _) => "its objects cannot be read or written in other versions",
            ("APIService", _) => "its kinds are unavailable, and no namespace can be deleted",
            (_, true) => "every request that it intercepts is rejected",
            (_, false) => "it is skipped",
        }
    }

    /// Returns the finding for the state of the called Service; `None` if an endpoint is ready.
    pub fn judge(&self, state: CallState) -> Option<DoctorFinding> {
        let place = format!("{}/{}", self.namespace, self.service);
        let port = self.port;
        let (check, what) = match state {
            CallState::NoService => (
                DoctorCheck::ServiceNotFound,
                format!(
                    "calls Service {place}, which does not exist: reinstall its server, or delete the caller"
                ),
            ),
            CallState::NoPort => (
                DoctorCheck::PortNotServed,
                format!(
                    "calls port {port} of Service {place}, which does not have it: add the port, or correct the caller"
                ),
            ),
            CallState::External => (
                DoctorCheck::PortNotServed,
                format!(
                    "calls Service {place} of type ExternalName, which API servers do not support: use a URL instead"
                ),
            ),
            CallState::Endpoints { ready: 0, total } => (
                DoctorCheck::NoReadyEndpoint,
                format!(
                    "calls port {port} of Service {place}, where 0 of {total} endpoints are ready: check the pods that it selects"
                ),
            ),
            CallState::Endpoints { .. } => return None,
        };
        let webhook = match &self.webhook {
            Some(webhook) => format!("webhook {webhook} "),
            None => String::new(),
        };
        let message = format!("{webhook}{what}; until then {}", self.consequence());
        Some(check.finding(self.severity(), self, message))
    }
}

impl fmt::Display for ServiceCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.caller.fmt(f)
    }
}

/// The finding that all `count` calls reach ready endpoints.
pub fn answered_calls(count: usize) -> DoctorFinding {
    let message = format!("{count} reach Services with ready endpoints");
    DoctorCheck::NoReadyEndpoint.info("Calls of webhooks, conversions and APIServices", message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_object::InCluster;

    fn call(kind: &str, is_fatal: bool) -> ServiceCall {
        ServiceCall {
            caller: ObjectKey {
                cluster: InCluster::Local,
                api_version: "v1".to_owned(),
                kind: kind.to_owned(),
                namespace: None,
                name: "a".to_owned(),
            },
            webhook: Some("a.example.com".to_owned()),
            is_fatal,
            namespace: "n".to_owned(),
            service: "hook".to_owned(),
            port: 443,
        }
    }

    #[test]
    fn an_unanswered_call_is_as_severe_as_its_failure_policy() {
        let none_ready = CallState::Endpoints { ready: 0, total: 2 };
        for (state, reason) in [
            (CallState::NoService, "ServiceNotFound"),
            (CallState::NoPort, "PortNotServed"),
            (CallState::External, "PortNotServed"),
            (none_ready, "NoReadyEndpoint"),
        ] {
            for (is_fatal, severity) in [(true, DoctorSeverity::Error), (false, DoctorSeverity::Warning)] {
                let found = call("ValidatingWebhookConfiguration", is_fatal)
                    .judge(state)
                    .unwrap();
                assert_eq!((&*found.reason, found.severity), (reason, severity));
                assert!(found.message.contains("n/hook"), "{found:?}");
            }
        }
        let answered = CallState::Endpoints { ready: 1, total: 2 };
        assert_eq!(call("APIService", true).judge(answered), None);
        let message = call("CustomResourceDefinition", true)
            .judge(none_ready)
            .unwrap()
            .message;
        assert!(
            message.ends_with("cannot be read or written in other versions"),
            "{message}"
        );
    }
}
