//! The findings of `windlass doctor`.

use anyhow::Context;
use serde_json::{Value, json};

use super::{expired, traffic};
use crate::{
    command::Command,
    operator,
    request::text,
    sample,
    steps::{self, VALIDATING, delete, get, succeed},
    test_cluster::TestCluster,
};

/// The namespace of broken objects without a connection to Windlass.
const OTHERS: &str = "others";

const CLUSTER_ROLE: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles/windlass";

/// Checks that a healthy cluster has no findings, that each fault is found, and that the command writes
/// nothing.
pub(super) async fn doctor_finds_each_fault(cluster: &TestCluster) -> anyhow::Result<()> {
    let operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    sample::settled(cluster).await?;
    traffic::create_namespace(cluster, OTHERS).await?;
    let widgets = sample::widgets(OTHERS, "v1");
    let mut widget = sample::widget("v1");
    widget["metadata"]["name"] = json!("stored");
    succeed(&cluster.client, "POST", &widgets, Some(&widget)).await?;

    let healthy = DoctorReport::run(&cluster.command).await?;
    healthy.check_no_error()?;
    for reason in [
        "KubernetesVersion",
        "DefinitionStale",
        "NobodyLeads",
        "OperatorLacksRights",
        "CallerLacksRights",
        "NoReadyEndpoint",
        "ConversionFails",
        "ClockSkew",
    ] {
        healthy.check_finding("info", reason, "")?;
    }

    let called = DoctorReport::run_with(&cluster.command, &["--call-webhooks"]).await?;
    called.check_no_error()?;
    called.check_finding("info", "WebhookFails", "")?;

    webhooks_of_others(cluster).await?;
    contested_and_stale_definitions(cluster).await?;
    rights_of_a_weak_account(cluster).await?;

    // Without an operator that uses the rights.
    operator.stop().await?;
    rights_of_the_operator(cluster).await
}

/// Creates a webhook whose Service does not exist, and one that trusts an expired CA.
async fn webhooks_of_others(cluster: &TestCluster) -> anyhow::Result<()> {
    let ended = expired::secrets("hook", OTHERS)?.serving["ca.crt"].clone();
    let configuration = |name: &str, service: &str, bundle: Option<&Value>| {
        json!({"metadata": {"name": name}, "webhooks": [{
            "name": format!("{name}.example.com"), "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": {"namespace": OTHERS, "name": service}, "caBundle": bundle},
            "rules": [{"apiGroups": [sample::GROUP], "apiVersions": ["*"], "resources": ["widgets"], "operations": ["UPDATE"]}],
        }]})
    };
    let service = json!({"metadata": {"name": "hook"}, "spec": {
        "selector": {"app": "nothing"}, "ports": [{"port": 443, "targetPort": 9443, "protocol": "TCP"}],
    }});
    let services = format!("/api/v1/namespaces/{OTHERS}/services");
    succeed(&cluster.client, "POST", &services, Some(&service)).await?;
    for object in [
        configuration("alone", "hook", Some(&ended)),
        configuration("orphan", "nowhere", None),
    ] {
        succeed(&cluster.client, "POST", VALIDATING, Some(&object)).await?;
    }
    let looked = DoctorReport::run(&cluster.command).await?;
    let alone = "ValidatingWebhookConfiguration alone";
    looked.check_finding("error", "NoReadyEndpoint", alone)?;
    looked.check_finding("error", "TrustEnded", alone)?;
    let orphan = "ValidatingWebhookConfiguration orphan";
    looked.check_finding("error", "ServiceNotFound", orphan)?;
    looked.check_finding("error", "NothingTrusted", orphan)?;
    let called = DoctorReport::run_with(&cluster.command, &["--call-webhooks"]).await?;
    called.check_finding("error", "WebhookFails", "Webhooks of Widget")?;
    // The text output lists the most severe findings first.
    let output = cluster.command.run(&["doctor"], |_| {}).await?;
    anyhow::ensure!(
        !output.succeeded
            && output
                .stdout
                .starts_with("error    ValidatingWebhookConfiguration"),
        "{}",
        output.stdout
    );
    for name in ["alone", "orphan"] {
        delete(&cluster.client, &format!("{VALIDATING}/{name}")).await?;
    }
    DoctorReport::run(&cluster.command).await?.check_no_error()
}

/// Gives a CRD of Windlass an annotation of cert-manager and the schema of an earlier version.
async fn contested_and_stale_definitions(cluster: &TestCluster) -> anyhow::Result<()> {
    let path = format!("{}/injectiontargets.windlass.dev", steps::CRDS);
    let before = get(&cluster.client, &path)
        .await?
        .context("no CustomResourceDefinition")?;
    let mut stale = before.clone();
    let schema = &mut stale["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let spec = schema.pointer_mut("/properties/spec/properties");
    let spec = spec
        .and_then(Value::as_object_mut)
        .context("the spec has no properties")?;
    let field = spec.keys().next().context("the spec has no property")?.clone();
    spec.remove(&field);
    // No rule may refer to the removed field.
    for (place, rules) in [
        ("/properties/spec", "required"),
        ("/properties/spec", "x-kubernetes-validations"),
        ("", "x-kubernetes-validations"),
    ] {
        if let Some(rules) = schema
            .pointer_mut(place)
            .and_then(Value::as_object_mut)
            .and_then(|schema| schema.get_mut(rules))
        {
            *rules = json!([]);
        }
    }
    stale["metadata"]["annotations"] = json!({"cert-manager.io/inject-ca-from": "others/hook"});
    succeed(&cluster.client, "PUT", &path, Some(&stale)).await?;
    let looked = DoctorReport::run(&cluster.command).await?;
    let subject = "CustomResourceDefinition injectiontargets.windlass.dev";
    looked.check_finding("error", "DefinitionStale", subject)?;
    looked.check_finding("warning", "TwoInjectors", subject)?;
    let mut restored = get(&cluster.client, &path)
        .await?
        .context("no CustomResourceDefinition")?;
    restored["spec"] = before["spec"].clone();
    restored["metadata"]["annotations"] = json!({});
    succeed(&cluster.client, "PUT", &path, Some(&restored)).await?;
    DoctorReport::run(&cluster.command).await?.check_no_error()
}

/// Checks that a user without rights gets a report that lists what was not checked.
async fn rights_of_a_weak_account(cluster: &TestCluster) -> anyhow::Result<()> {
    let accounts = format!("/api/v1/namespaces/{OTHERS}/serviceaccounts");
    let account = json!({"metadata": {"name": "weak"}});
    succeed(&cluster.client, "POST", &accounts, Some(&account)).await?;
    let kubeconfig = cluster.backing.service_account(OTHERS, "weak").await?;
    let weak = Command {
        kubeconfig: cluster.write("weak.kubeconfig", &kubeconfig)?,
        ..cluster.command.clone()
    };
    let looked = DoctorReport::run(&weak).await?;
    looked.check_no_error()?;
    let user = format!("User system:serviceaccount:{OTHERS}:weak");
    looked.check_finding("warning", "CallerLacksRights", &user)?;
    looked.check_finding("warning", "NotLookedAt", "ValidatingWebhookConfiguration")?;
    let printed = weak.run(&["doctor", "--missing-rights"], |_| {}).await?;
    grant(cluster, &printed.stdout).await?;
    let looked = DoctorReport::run(&weak).await?;
    looked.check_finding("info", "CallerLacksRights", &user)
}

/// Removes a rule from the operator's ClusterRole and restores it with the printed rights.
async fn rights_of_the_operator(cluster: &TestCluster) -> anyhow::Result<()> {
    let mut role = get(&cluster.client, CLUSTER_ROLE)
        .await?
        .context("no ClusterRole")?;
    role["rules"].as_array_mut().context("no rules")?.remove(0);
    succeed(&cluster.client, "PUT", CLUSTER_ROLE, Some(&role)).await?;
    let account = format!("ServiceAccount {}/{}", operator::NAMESPACE, operator::ACCOUNT);
    // API servers apply a changed role with a delay.
    let found = steps::until("the missing right is reported", steps::PATIENCE, async || {
        let looked = DoctorReport::run(&cluster.command).await?;
        Ok(looked
            .check_finding("error", "OperatorLacksRights", &account)
            .map_err(|error| error.to_string()))
    });
    found.await?;
    let printed = cluster
        .command
        .run(&["doctor", "--missing-rights"], |_| {})
        .await?;
    grant(cluster, &printed.stdout).await?;
    let found = steps::until("the right is granted", steps::PATIENCE, async || {
        let looked = DoctorReport::run(&cluster.command).await?;
        Ok(looked
            .check_finding("info", "OperatorLacksRights", &account)
            .map_err(|error| error.to_string()))
    });
    found.await
}

/// Creates the printed roles and bindings.
async fn grant(cluster: &TestCluster, printed: &str) -> anyhow::Result<()> {
    let granted = windlass_object::yaml::documents(printed.as_bytes())
        .map_err(|problem| anyhow::anyhow!("{problem}: {printed}"))?;
    anyhow::ensure!(!granted.is_empty(), "the command printed nothing");
    for object in &granted {
        let plural = format!("{}s", text(object, "/kind").to_lowercase());
        let path = match text(object, "/metadata/namespace") {
            "" => format!("/apis/rbac.authorization.k8s.io/v1/{plural}"),
            namespace => format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/{plural}"),
        };
        succeed(&cluster.client, "POST", &path, Some(object)).await?;
    }
    Ok(())
}

/// The findings of a run, and whether the command succeeded.
struct DoctorReport {
    found: Value,
    succeeded: bool,
}

impl DoctorReport {
    async fn run(command: &Command) -> anyhow::Result<Self> {
        Self::run_with(command, &[]).await
    }

    async fn run_with(command: &Command, arguments: &[&str]) -> anyhow::Result<Self> {
        let arguments = [&["doctor", "-o", "json"], arguments].concat();
        let output = command.run(&arguments, |_| {}).await?;
        let found = serde_json::from_str(&output.stdout)
            .with_context(|| format!("{}{}", output.stdout, output.stderr))?;
        Ok(Self {
            found,
            succeeded: output.succeeded,
        })
    }

    fn findings(&self) -> impl Iterator<Item = &Value> {
        self.found["findings"].as_array().into_iter().flatten()
    }

    /// Checks that there is a finding whose subject starts with `subject`.
    fn check_finding(&self, severity: &str, reason: &str, subject: &str) -> anyhow::Result<()> {
        let mut findings = self.findings();
        let is_found = findings.any(|finding| {
            finding["severity"] == severity
                && finding["reason"] == reason
                && text(finding, "/subject").starts_with(subject)
        });
        anyhow::ensure!(
            is_found,
            "{severity} {reason} {subject} is not among {:#}",
            self.found
        );
        Ok(())
    }

    fn check_no_error(&self) -> anyhow::Result<()> {
        let errors: Vec<_> = self
            .findings()
            .filter(|finding| finding["severity"] == "error")
            .collect();
        anyhow::ensure!(errors.is_empty() && self.succeeded, "{errors:#?}");
        Ok(())
    }
}
