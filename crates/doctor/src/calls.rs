//! Who calls which Service, and whether anybody is there.

use std::fmt;

use windlass_object::ObjectKey;

use crate::{
    check::DoctorCheck,
    finding::{DoctorFinding, DoctorSeverity},
};

/// A call that an object makes of a Service.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServiceCall {
    /// The webhook configuration, CustomResourceDefinition, APIService or ExtensionConfig.
    pub caller: ObjectKey,
    /// Which of its webhooks, where it has several.
    pub webhook: Option<String>,
    /// Whether requests fail where nobody answers.
    pub is_fatal: bool,
    /// The namespace of the Service.
    pub namespace: String,
    /// The Service.
    pub service: String,
    /// The number of its port.
    pub port: i64,
}

/// What is there where a call leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallState {
    /// There is no such Service.
    NoService,
    /// It has no such port.
    NoPort,
    /// It leads out of the cluster (`ExternalName`), which API servers refuse.
    External,
    /// So many of its endpoints are ready, of so many.
    Endpoints {
        /// Those that are ready.
        ready: usize,
        /// All.
        total: usize,
    },
}

// === impl ServiceCall ===

impl ServiceCall {
    /// How much it matters that nobody answers.
    fn severity(&self) -> DoctorSeverity {
        match self.is_fatal {
            true => DoctorSeverity::Error,
            false => DoctorSeverity::Warning,
        }
    }

    /// What becomes of requests meanwhile.
    fn consequence(&self) -> &'static str {
        match (&*self.caller.kind, self.is_fatal) {
            ("CustomResourceDefinition", _) => "its objects cannot be read or written in other versions",
            ("APIService", _) => "its kinds cannot be used, and no namespace can be deleted",
            (_, true) => "every request that it is asked about is refused",
            (_, false) => "it is left out",
        }
    }

    /// Judges what is there.
    pub fn judge(&self, state: CallState) -> Option<DoctorFinding> {
        let place = format!("{}/{}", self.namespace, self.service);
        let port = self.port;
        let (check, what) = match state {
            CallState::NoService => (
                DoctorCheck::ServiceNotFound,
                format!(
                    "calls Service {place}, which is not found: install its server again, or delete what calls it"
                ),
            ),
            CallState::NoPort => (
                DoctorCheck::PortNotServed,
                format!(
                    "calls port {port} of Service {place}, which has no such port: add it, or change the port that is called"
                ),
            ),
            CallState::External => (
                DoctorCheck::PortNotServed,
                format!(
                    "calls Service {place}, which is of type ExternalName: API servers do not follow that; name a URL instead"
                ),
            ),
            CallState::Endpoints { ready: 0, total } => (
                DoctorCheck::NoReadyEndpoint,
                format!(
                    "calls port {port} of Service {place}, of whose {total} endpoints none is ready: look at the pods that it selects"
                ),
            ),
            CallState::Endpoints { .. } => return None,
        };
        let webhook = match &self.webhook {
            Some(webhook) => format!("webhook {webhook} "),
            None => String::new(),
        };
        let message = format!("{webhook}{what}; until then {}", self.consequence());
        Some(check.found(self.severity(), self, message))
    }
}

impl fmt::Display for ServiceCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.caller.fmt(f)
    }
}

/// So many calls were looked at, and somebody is there for each.
pub fn answered_calls(count: usize) -> DoctorFinding {
    let message = format!("{count} lead to Services with ready endpoints");
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
        let nobody = CallState::Endpoints { ready: 0, total: 2 };
        for (state, reason) in [
            (CallState::NoService, "ServiceNotFound"),
            (CallState::NoPort, "PortNotServed"),
            (CallState::External, "PortNotServed"),
            (nobody, "NoReadyEndpoint"),
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
        let said = call("CustomResourceDefinition", true)
            .judge(nobody)
            .unwrap()
            .message;
        assert!(
            said.ends_with("cannot be read or written in other versions"),
            "{said}"
        );
    }
}
