//! What `windlass doctor` finds.

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

/// The namespace of what others have left broken.
const OTHERS: &str = "others";

const CLUSTER_ROLE: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles/windlass";

/// A cluster that is well is said to be well, each fault is found, and nothing is written by looking.
pub(super) async fn the_doctor_finds_what_would_go_wrong(cluster: &TestCluster) -> anyhow::Result<()> {
    let operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    sample::settled(cluster).await?;
    traffic::namespace(cluster, OTHERS).await?;
    let widgets = sample::widgets(OTHERS, "v1");
    let mut widget = sample::widget("v1");
    widget["metadata"]["name"] = json!("stored");
    succeed(&cluster.client, "POST", &widgets, Some(&widget)).await?;

    let healthy = Looked::at(&cluster.command).await?;
    healthy.says_no_error()?;
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
        healthy.has("info", reason, "")?;
    }

    let called = Looked::with(&cluster.command, &["--call-webhooks"]).await?;
    called.says_no_error()?;
    called.has("info", "WebhookFails", "")?;

    webhooks_of_others(cluster).await?;
    contested_and_stale_definitions(cluster).await?;
    a_weak_account_is_told_what_it_lacks(cluster).await?;

    // While nobody works with them.
    operator.stop().await?;
    rights_of_the_operator(cluster).await
}

/// A webhook whose server is gone, and one that trusts a CA that has ended.
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
    let looked = Looked::at(&cluster.command).await?;
    let alone = "ValidatingWebhookConfiguration alone";
    looked.has("error", "NoReadyEndpoint", alone)?;
    looked.has("error", "TrustEnded", alone)?;
    let orphan = "ValidatingWebhookConfiguration orphan";
    looked.has("error", "ServiceNotFound", orphan)?;
    looked.has("error", "NothingTrusted", orphan)?;
    let called = Looked::with(&cluster.command, &["--call-webhooks"]).await?;
    called.has("error", "WebhookFails", "Webhooks of Widget")?;
    // As people see it: the worst first.
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
    Looked::at(&cluster.command).await?.says_no_error()
}

/// CustomResourceDefinitions of Windlass that ask cert-manager, too, and that are of an earlier version.
async fn contested_and_stale_definitions(cluster: &TestCluster) -> anyhow::Result<()> {
    let path = format!("{}/injectiontargets.windlass.dev", steps::CRDS);
    let before = get(&cluster.client, &path)
        .await?
        .context("no CustomResourceDefinition")?;
    let mut stale = before.clone();
    let schema = &mut stale["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let spec = schema.pointer_mut("/properties/spec/properties");
    let spec = spec.and_then(Value::as_object_mut).context("it has no fields")?;
    let field = spec.keys().next().context("it has no field")?.clone();
    spec.remove(&field);
    // Nothing may require what is not there.
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
    let looked = Looked::at(&cluster.command).await?;
    let subject = "CustomResourceDefinition injectiontargets.windlass.dev";
    looked.has("error", "DefinitionStale", subject)?;
    looked.has("warning", "TwoInjectors", subject)?;
    let mut restored = get(&cluster.client, &path)
        .await?
        .context("no CustomResourceDefinition")?;
    restored["spec"] = before["spec"].clone();
    restored["metadata"]["annotations"] = json!({});
    succeed(&cluster.client, "PUT", &path, Some(&restored)).await?;
    Looked::at(&cluster.command).await?.says_no_error()
}

/// Whoever may read nothing gets an answer all the same, which names what was not read.
async fn a_weak_account_is_told_what_it_lacks(cluster: &TestCluster) -> anyhow::Result<()> {
    let accounts = format!("/api/v1/namespaces/{OTHERS}/serviceaccounts");
    let account = json!({"metadata": {"name": "weak"}});
    succeed(&cluster.client, "POST", &accounts, Some(&account)).await?;
    let kubeconfig = cluster.backing.service_account(OTHERS, "weak").await?;
    let weak = Command {
        kubeconfig: cluster.write("weak.kubeconfig", &kubeconfig)?,
        ..cluster.command.clone()
    };
    let looked = Looked::at(&weak).await?;
    looked.says_no_error()?;
    let user = format!("User system:serviceaccount:{OTHERS}:weak");
    looked.has("warning", "CallerLacksRights", &user)?;
    looked.has("warning", "NotLookedAt", "ValidatingWebhookConfiguration")?;
    let printed = weak.run(&["doctor", "--missing-rights"], |_| {}).await?;
    grant(cluster, &printed.stdout).await?;
    let looked = Looked::at(&weak).await?;
    looked.has("info", "CallerLacksRights", &user)
}

/// A right that was taken from the operator; what is printed gives it back.
async fn rights_of_the_operator(cluster: &TestCluster) -> anyhow::Result<()> {
    let mut role = get(&cluster.client, CLUSTER_ROLE)
        .await?
        .context("no ClusterRole")?;
    role["rules"].as_array_mut().context("it has no rules")?.remove(0);
    succeed(&cluster.client, "PUT", CLUSTER_ROLE, Some(&role)).await?;
    let account = format!("ServiceAccount {}/{}", operator::NAMESPACE, operator::ACCOUNT);
    // An API server learns of a role a moment later.
    let found = steps::until("the right is missed", steps::PATIENCE, async || {
        let looked = Looked::at(&cluster.command).await?;
        Ok(looked
            .has("error", "OperatorLacksRights", &account)
            .map_err(|error| error.to_string()))
    });
    found.await?;
    let printed = cluster
        .command
        .run(&["doctor", "--missing-rights"], |_| {})
        .await?;
    grant(cluster, &printed.stdout).await?;
    let found = steps::until("the right is back", steps::PATIENCE, async || {
        let looked = Looked::at(&cluster.command).await?;
        Ok(looked
            .has("info", "OperatorLacksRights", &account)
            .map_err(|error| error.to_string()))
    });
    found.await
}

/// Creates the roles and bindings that were printed.
async fn grant(cluster: &TestCluster, printed: &str) -> anyhow::Result<()> {
    let granted = windlass_object::yaml::documents(printed.as_bytes())
        .map_err(|problem| anyhow::anyhow!("{problem}: {printed}"))?;
    anyhow::ensure!(!granted.is_empty(), "nothing was printed");
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

/// What was found, and how the command ended.
struct Looked {
    found: Value,
    succeeded: bool,
}

// === impl Looked ===

impl Looked {
    async fn at(command: &Command) -> anyhow::Result<Self> {
        Self::with(command, &[]).await
    }

    async fn with(command: &Command, arguments: &[&str]) -> anyhow::Result<Self> {
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

    /// Whether a finding begins with that subject.
    fn has(&self, severity: &str, reason: &str, subject: &str) -> anyhow::Result<()> {
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

    fn says_no_error(&self) -> anyhow::Result<()> {
        let errors: Vec<_> = self
            .findings()
            .filter(|finding| finding["severity"] == "error")
            .collect();
        anyhow::ensure!(errors.is_empty() && self.succeeded, "{errors:#?}");
        Ok(())
    }
}
