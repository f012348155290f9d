//! One examination of a cluster. Unreadable objects are findings.

use jiff::Timestamp;
use serde_json::Value;
use windlass_cluster::{ApiServerClock, Clock as _, Cluster, Kind, RequestError};
use windlass_doctor::{Diagnosis, DoctorCheck, DoctorFinding, api_server_clock};
use windlass_object::ObjectKey;

/// An examination of a cluster, and its findings so far.
pub(super) struct Examination<'a> {
    pub(super) cluster: &'a Cluster,
    clock: &'a ApiServerClock,
    /// The namespace of the operator.
    pub(super) namespace: &'a str,
    findings: Vec<DoctorFinding>,
    /// Roles and bindings that grant the missing rights.
    pub(super) grants: Vec<Value>,
}

impl<'a> Examination<'a> {
    /// Returns an examination without findings.
    pub(super) fn new(cluster: &'a Cluster, clock: &'a ApiServerClock, namespace: &'a str) -> Self {
        Self {
            cluster,
            clock,
            namespace,
            findings: Vec::new(),
            grants: Vec::new(),
        }
    }

    /// Runs all checks. With `call_webhooks`, the API server calls admission webhooks in dry runs.
    ///
    /// # Errors
    ///
    /// When the manifests of this program cannot be written as JSON.
    pub(super) async fn examine(&mut self, kubernetes: &str, call_webhooks: bool) -> anyhow::Result<()> {
        let installation = self.check_versions(kubernetes).await?;
        self.check_rights(&installation).await?;
        let callers = self.check_callers(&installation).await;
        self.check_conversions(&callers).await;
        self.check_outage_risks(&callers).await;
        if !installation.has_leader {
            let message = "not checked: endpoints and their certificates as Windlass sees them. No replica is the leader, so there is no recent data";
            self.add([DoctorCheck::NotLookedAt.info("The operator's view", message)]);
        }
        let clock = api_server_clock(self.clock.ahead());
        self.add([clock]);
        if call_webhooks {
            self.check_webhooks(&callers).await;
        } else {
            let message = "not checked: whether admission webhooks respond. --call-webhooks makes the API server call those of custom \
                           resources in dry runs";
            self.add([DoctorCheck::NotLookedAt.info("Webhooks", message)]);
        }
        Ok(())
    }

    /// Returns the findings in order, and the roles and bindings that grant the missing rights.
    pub(super) fn into_diagnosis(self) -> (Diagnosis, Vec<Value>) {
        (Diagnosis::new(self.findings), self.grants)
    }

    /// Returns the time of the API server.
    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(super) fn add(&mut self, findings: impl IntoIterator<Item = DoctorFinding>) {
        self.findings.extend(findings);
    }

    /// Lists the objects of a kind and maps them with `read`. Returns `None` and adds a finding if they
    /// cannot be listed; a kind that is not served has no objects.
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

    /// Reads an object. Returns `None` and adds a finding if it cannot be read.
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

    /// Adds the finding that an object could not be read.
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

    /// Adds the finding that something was not checked, and which right that needs.
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
            format!("not checked: that needs the right to {verb} {resource} {place}")
        } else {
            format!("not checked: {error}")
        };
        self.add([DoctorCheck::NotLookedAt.warning(subject, message)]);
    }
}
