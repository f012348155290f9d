//! Looking at a cluster: what cannot be read is a finding like others.

use jiff::Timestamp;
use serde_json::Value;
use windlass_cluster::{ApiServerClock, Clock as _, Cluster, Kind, RequestError};
use windlass_doctor::{Diagnosis, DoctorCheck, DoctorFinding, api_server_clock};
use windlass_object::ObjectKey;

/// One look at a cluster, and what came of it so far.
pub(super) struct Examination<'a> {
    pub(super) cluster: &'a Cluster,
    clock: &'a ApiServerClock,
    /// The namespace of the operator.
    pub(super) namespace: &'a str,
    findings: Vec<DoctorFinding>,
    /// Roles and bindings that give what is missing.
    pub(super) grants: Vec<Value>,
}

// === impl Examination ===

impl<'a> Examination<'a> {
    /// Nothing was looked at yet.
    pub(super) fn new(cluster: &'a Cluster, clock: &'a ApiServerClock, namespace: &'a str) -> Self {
        Self {
            cluster,
            clock,
            namespace,
            findings: Vec::new(),
            grants: Vec::new(),
        }
    }

    /// Looks at everything; where that is wished, the API server calls admission webhooks in dry runs.
    ///
    /// # Errors
    ///
    /// When what the program brings along cannot be written as JSON.
    pub(super) async fn examine(&mut self, kubernetes: &str, call_webhooks: bool) -> anyhow::Result<()> {
        let installation = self.check_versions(kubernetes).await?;
        self.check_rights(&installation).await?;
        let callers = self.check_callers(&installation).await;
        self.check_conversions(&callers).await;
        self.check_outage_risks(&callers).await;
        if !installation.has_leader {
            let message = "not looked at: what Windlass sees of endpoints and their certificates; nobody leads, so nobody has looked lately";
            self.add([DoctorCheck::NotLookedAt.info("The operator's seat", message)]);
        }
        let clock = api_server_clock(self.clock.ahead());
        self.add([clock]);
        if call_webhooks {
            self.check_webhooks(&callers).await;
        } else {
            let message = "not looked at: whether admission webhooks answer; --call-webhooks has the API server call those of custom \
                           resources in dry runs";
            self.add([DoctorCheck::NotLookedAt.info("Webhooks", message)]);
        }
        Ok(())
    }

    /// All of it in order, and what gives the rights that are missing.
    pub(super) fn into_diagnosis(self) -> (Diagnosis, Vec<Value>) {
        (Diagnosis::new(self.findings), self.grants)
    }

    /// The time, as the API server has it.
    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(super) fn add(&mut self, findings: impl IntoIterator<Item = DoctorFinding>) {
        self.findings.extend(findings);
    }

    /// The objects of a kind and what `read` makes of them; `None` where they cannot be listed, which is noted. Of a kind that is not
    /// served there is none.
    pub(super) async fn list<T>(
        &mut self,
        kind: &Kind,
        namespace: Option<&str>,
        selector: Option<&str>,
        read: impl FnMut(Value) -> Option<T>,
    ) -> Option<Vec<T>> {
        match self.cluster.list_as(kind, namespace, selector, read).await {
            Ok(listed) => Some(listed),
            Err(RequestError::UnknownKind { .. }) => Some(Vec::new()),
            Err(error) => {
                let place = match namespace {
                    Some(namespace) => format!(" in namespace {namespace}"),
                    None => String::new(),
                };
                self.report_unchecked(&format!("{}{place}", kind.kind), kind, "list", namespace, &error)
                    .await;
                None
            }
        }
    }

    /// An object; `None` where it cannot be read, which is noted.
    pub(super) async fn read(&mut self, key: &ObjectKey) -> Option<Option<Value>> {
        match self.cluster.read(key).await {
            Ok(read) => Some(read),
            Err(RequestError::UnknownKind { .. }) => Some(None),
            Err(error) => {
                self.report_unreadable(key, &error).await;
                None
            }
        }
    }

    /// Notes that an object could not be read.
    pub(super) async fn report_unreadable(&mut self, key: &ObjectKey, error: &RequestError) {
        let namespace = key.namespace.clone();
        self.report_unchecked(
            &key.to_string(),
            &Kind::from_key(key),
            "get",
            namespace.as_deref(),
            error,
        )
        .await;
    }

    /// Notes what was not looked at, and which right that takes.
    pub(super) async fn report_unchecked(
        &mut self,
        subject: &str,
        kind: &Kind,
        verb: &str,
        namespace: Option<&str>,
        error: &RequestError,
    ) {
        let message = if error.is_forbidden() {
            let resource = self.cluster.resource(kind).await.ok().flatten();
            let resource = resource.unwrap_or_else(|| kind.kind.to_lowercase());
            let resource = match kind.group_version().0 {
                "" => resource,
                group => format!("{resource}.{group}"),
            };
            let place = match namespace {
                Some(namespace) => format!("in namespace {namespace}"),
                None => "in the whole cluster".to_owned(),
            };
            format!("not looked at: that needs the right to {verb} {resource} {place}")
        } else {
            format!("not looked at: {error}")
        };
        self.add([DoctorCheck::NotLookedAt.warning(subject, message)]);
    }
}
