//! Targets in a second cluster, as Karmada's API server has them: their webhook servers and certificates are in the first. The
//! second is a sandbox, whatever the first is.

use std::time::Duration;

use anyhow::Context;
use base64::{Engine, engine::general_purpose::STANDARD};
use kube::Client;
use serde_json::{Value, json};
use windlass_sandbox::{Sandbox, SandboxOptions};
use windlass_trust::pki::{Certificate, pem};

use super::{
    foreign,
    injection::{self, create_certificate},
};
use crate::{
    cluster,
    operator::{self, OperatorProcess},
    request::text,
    sample,
    steps::{
        self, CRDS, PATIENCE, VALIDATING, ask_for_rotation, check, conditions, current, get, list, succeed,
        until,
    },
    test_cluster::TestCluster,
};

/// The Secret with the kubeconfig.
const SECRET: &str = "karmada-kubeconfig";

/// The ServiceAccount in the second cluster, and its role.
const ACCOUNT: &str = "windlass";

/// Where kinds of Karmada are served.
const INTERPRETERS: &str = "/apis/config.karmada.io/v1alpha1/resourceinterpreterwebhookconfigurations";

/// Where roles are.
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";

/// How long the second cluster is away.
const AWAY: Duration = Duration::from_secs(20);

/// How long it is looked whether a rotation really waits.
const HELD: Duration = Duration::from_secs(5);

/// The second cluster.
struct Second {
    sandbox: Sandbox,
    /// Its admin.
    client: Client,
}

impl Second {
    /// One where [`ACCOUNT`] may do what README.md says.
    async fn start() -> anyhow::Result<Self> {
        let sandbox = Sandbox::start(SandboxOptions::default()).await?;
        let admin = sandbox.kubeconfig("admin", &["system:masters"])?;
        let client = cluster::client(&admin).await?;
        let namespace = json!({"metadata": {"name": operator::NAMESPACE}});
        succeed(&client, "POST", "/api/v1/namespaces", Some(&namespace)).await?;
        succeed(
            &client,
            "POST",
            ROLES,
            Some(&role(&["get", "list", "watch", "patch"])),
        )
        .await?;
        let second = Self { sandbox, client };
        second.account(ACCOUNT).await?;
        let interpreters = foreign::crd(
            "config.karmada.io/v1alpha1",
            "ResourceInterpreterWebhookConfiguration",
            "resourceinterpreterwebhookconfigurations",
            false,
        );
        foreign::define(&second.client, &interpreters).await?;
        Ok(second)
    }

    /// A ServiceAccount with the role, and its kubeconfig.
    async fn account(&self, name: &str) -> anyhow::Result<String> {
        let namespace = operator::NAMESPACE;
        let accounts = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
        let account = json!({"metadata": {"name": name}});
        succeed(&self.client, "POST", &accounts, Some(&account)).await?;
        let binding = json!({
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ACCOUNT},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
        });
        let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
        succeed(&self.client, "POST", bindings, Some(&binding)).await?;
        Ok(self.sandbox.kubeconfig_for_service_account(namespace, name))
    }

    /// The kubeconfig of [`ACCOUNT`].
    fn kubeconfig(&self) -> String {
        self.sandbox
            .kubeconfig_for_service_account(operator::NAMESPACE, ACCOUNT)
    }

    /// Creates one target of each kind, all of which call `https://{service}.{namespace}.svc` and ask for the certificate of the
    /// same name.
    async fn create_targets(&self, namespace: &str, service: &str) -> anyhow::Result<()> {
        let asking = json!({"windlass.dev/inject-ca-from": format!("{namespace}/{service}")});
        let by_url = json!({"url": format!("https://{service}.{namespace}.svc:443/hook")});
        let by_service = json!({"service": {"namespace": namespace, "name": service}});
        let rules = json!([{
            "apiGroups": ["none.example.com"], "apiVersions": ["v1"], "resources": ["nothings"], "operations": ["CREATE"],
        }]);
        let hooks = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "remote", "annotations": asking},
            "webhooks": [{
                "name": "hook.example.com", "clientConfig": by_url, "rules": rules, "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
            }],
        });
        succeed(&self.client, "POST", VALIDATING, Some(&hooks)).await?;
        let interpreter = json!({
            "apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterWebhookConfiguration",
            "metadata": {"name": "remote", "annotations": asking},
            "webhooks": [{"name": "hook.example.com", "clientConfig": by_url, "interpreterContextVersions": ["v1alpha1"]}],
        });
        succeed(&self.client, "POST", INTERPRETERS, Some(&interpreter)).await?;
        let mut crd = foreign::crd("remote.example.com/v1", "Gadget", "gadgets", true);
        crd["metadata"]["annotations"] = asking;
        crd["spec"]["conversion"] = json!({
            "strategy": "Webhook",
            "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": by_service},
        });
        succeed(&self.client, "POST", CRDS, Some(&crd)).await?;
        Ok(())
    }

    /// What each of the targets carries, if they can be asked.
    async fn carried(&self) -> anyhow::Result<Vec<String>> {
        let mut carried = Vec::new();
        for (path, pointer) in targets() {
            let target = get(&self.client, &path).await?.context("gone")?;
            carried.push(text(&target, pointer).to_owned());
        }
        Ok(carried)
    }

    /// Waits until all of the targets carry `ca.crt` of the Secret at `path`.
    async fn carries(&self, client: &Client, path: &str) -> anyhow::Result<String> {
        until("the targets carry the trust bundle", PATIENCE, async || {
            let secret = get(client, path).await?.unwrap_or_default();
            let trust = text(&secret, "/data/ca.crt").to_owned();
            let carried = self.carried().await?;
            let is_there = !trust.is_empty() && carried.iter().all(|bundle| *bundle == trust);
            Ok(check(is_there, || format!("{carried:?}")).map(|()| trust))
        })
        .await
    }
}

/// What the account may do in the second cluster.
fn role(verbs: &[&str]) -> Value {
    let rules: Vec<_> = windlass_trust::injection::KINDS
        .iter()
        .map(|kind| json!({"apiGroups": [kind.group], "resources": [kind.plural], "verbs": verbs}))
        .collect();
    json!({"metadata": {"name": ACCOUNT}, "rules": rules})
}

/// Where the targets are, and what they carry.
fn targets() -> [(String, &'static str); 3] {
    [
        (
            format!("{VALIDATING}/remote"),
            "/webhooks/0/clientConfig/caBundle",
        ),
        (
            format!("{INTERPRETERS}/remote"),
            "/webhooks/0/clientConfig/caBundle",
        ),
        (
            format!("{CRDS}/gadgets.remote.example.com"),
            "/spec/conversion/webhook/clientConfig/caBundle",
        ),
    ]
}

fn secrets() -> String {
    format!("/api/v1/namespaces/{}/secrets", operator::NAMESPACE)
}

/// A Secret with a kubeconfig, as Karmada writes it.
fn secret(kubeconfig: &str) -> Value {
    json!({"metadata": {"name": SECRET}, "data": {"karmada.config": STANDARD.encode(kubeconfig)}})
}

/// The operator, which is told of the second cluster.
fn operator(cluster: &TestCluster) -> OperatorProcess {
    let mut operator = cluster.operator.clone();
    operator.arguments.push(format!(
        "--remote-kubeconfig-secret={}/{SECRET}",
        operator::NAMESPACE
    ));
    operator
}

/// Waits until the ServingCertificate at `path` says something with that reason; what it says.
async fn says(client: &Client, path: &str, condition: &str, reason: &str) -> anyhow::Result<String> {
    until(&format!("{path}: {reason}"), PATIENCE, async || {
        let certificate = get(client, path).await?.context("gone")?;
        let said = ["True", "False", "Unknown"]
            .iter()
            .filter_map(|status| current(&certificate, condition, status))
            .find(|said| said["reason"] == reason);
        Ok(said
            .map(|said| text(said, "/message").to_owned())
            .ok_or_else(|| conditions(&certificate)))
    })
    .await
}

/// Waits until an event about the Secret says this.
async fn is_told(client: &Client, reason: &str, words: &str) -> anyhow::Result<()> {
    let events = format!("/apis/events.k8s.io/v1/namespaces/{}/events", operator::NAMESPACE);
    until(&format!("an event says {words:?}"), PATIENCE, async || {
        let events = list(client, &events).await?;
        let is_said = events.iter().any(|event| {
            event["regarding"]["name"] == SECRET
                && event["reason"] == reason
                && text(event, "/note").contains(words)
        });
        Ok(check(is_said, || format!("{events:?}")))
    })
    .await
}

pub(super) async fn targets_of_a_second_cluster_are_cared_for_as_those_of_the_first(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    let second = Second::start().await?;
    succeed(client, "POST", &secrets(), Some(&secret(&second.kubeconfig()))).await?;
    let _operator = operator(cluster).start()?;
    create_certificate(cluster).await?;
    second.create_targets(injection::NAMESPACE, "hook").await?;
    let serving = format!("/api/v1/namespaces/{}/secrets/hook-cert", injection::NAMESPACE);
    second.carries(client, &serving).await?;
    let path = format!("{}/hook", steps::serving_certificates(injection::NAMESPACE));
    until("they are counted", PATIENCE, async || {
        let status = &get(client, &path).await?.context("gone")?["status"];
        Ok(check(
            status["targets"] == json!({"total": 3, "current": 3}),
            || status.to_string(),
        ))
    })
    .await?;

    let hooks = format!("{VALIDATING}/remote");
    for broken in ["", "Z2FyYmFnZQ=="] {
        let drift = json!([{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": broken}]);
        let answer = crate::request::send(&second.client, "PATCH", &hooks, Some(&drift)).await?;
        tracing::info!(code = answer.code, "Wrote over a trust bundle");
        second.carries(client, &serving).await?;
    }
    ask_for_rotation(client, injection::NAMESPACE, "hook", "ca:compromised").await?;
    says(client, &path, "Trusted", "Current").await?;
    second.carries(client, &serving).await?;

    // Sources are in the first cluster.
    let source = json!({
        "metadata": {"name": "ca", "annotations": {"windlass.dev/allow-direct-injection": "true"}},
        "data": {"ca.crt": foreign::trust_bundle()?},
    });
    succeed(client, "POST", &secrets(), Some(&source)).await?;
    let asks = |annotation: &str, value: &str| {
        let mut annotations = json!({
            "windlass.dev/inject-ca-from": null, "windlass.dev/inject-ca-from-secret": null,
            "windlass.dev/inject-apiserver-ca": null,
        });
        annotations[annotation] = value.into();
        json!({"metadata": {"annotations": annotations}})
    };
    let from_secret = asks(
        "windlass.dev/inject-ca-from-secret",
        &format!("{}/ca", operator::NAMESPACE),
    );
    succeed(&second.client, "PATCH", &hooks, Some(&from_secret)).await?;
    let carries = async |expected: &str| {
        until("the webhook carries it", PATIENCE * 2, async || {
            let target = get(&second.client, &hooks).await?.context("gone")?;
            let carried = text(&target, "/webhooks/0/clientConfig/caBundle");
            Ok(check(carried == expected, || carried.to_owned()))
        })
        .await
    };
    carries(text(&source, "/data/ca.crt")).await?;

    // Which API server is meant would not be clear.
    let of_server = asks("windlass.dev/inject-apiserver-ca", "true");
    succeed(&second.client, "PATCH", &hooks, Some(&of_server)).await?;
    is_told(
        client,
        "NoTrustBundle",
        "ValidatingWebhookConfiguration remote in the remote cluster: annotation windlass.dev/inject-apiserver-ca",
    )
    .await?;

    let nothing = asks("windlass.dev/inject-ca-from", "");
    succeed(&second.client, "PATCH", &hooks, Some(&nothing)).await?;
    carries("").await
}

pub(super) async fn a_rotation_waits_for_targets_of_a_second_cluster(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    let second = Second::start().await?;
    succeed(client, "POST", &secrets(), Some(&secret(&second.kubeconfig()))).await?;
    let _operator = operator(cluster).start()?;
    sample::install(cluster, "sample.v1").await?;
    second
        .create_targets(sample::NAMESPACE, sample::CERTIFICATE)
        .await?;
    second.carries(client, sample::SERVING_SECRET).await?;
    sample::settled(cluster).await?;
    let carried = second.carried().await?;
    let rotating = async {
        rotate_while_it_is_away(cluster, &second).await?;
        rotate_while_it_cannot_be_written(cluster, &second).await
    };
    tokio::select! {
        rotated = rotating => rotated,
        broken = stay_trusted(client, &second, carried) => broken,
    }
}

/// Looks, for as long as nothing is wrong, whether the targets trust what is served.
async fn stay_trusted(client: &Client, second: &Second, mut carried: Vec<String>) -> anyhow::Result<()> {
    loop {
        let secret = get(client, sample::SERVING_SECRET).await?.context("gone")?;
        let leaf = certificates(text(&secret, "/data/tls.crt"))?;
        let leaf = leaf.first().context("no leaf")?;
        // Nobody writes them while they cannot be read.
        carried = second.carried().await.unwrap_or(carried);
        for bundle in &carried {
            let is_trusted = certificates(bundle)?.iter().any(|root| leaf.is_signed_by(root));
            anyhow::ensure!(is_trusted, "served is {leaf}, and a target trusts {bundle}");
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn certificates(encoded: &str) -> anyhow::Result<Vec<Certificate>> {
    Ok(pem::read(&STANDARD.decode(encoded)?).certificates)
}

/// Asks for another CA, and looks for a while whether the serving certificate stays.
async fn ask_in_vain(cluster: &TestCluster) -> anyhow::Result<()> {
    let leaf = async || {
        let secret = get(&cluster.client, sample::SERVING_SECRET)
            .await?
            .context("gone")?;
        anyhow::Ok(text(&secret, "/data/tls.crt").to_owned())
    };
    let before = leaf().await?;
    sample::ask_for_rotation(cluster, "ca").await?;
    tokio::time::sleep(HELD).await;
    anyhow::ensure!(leaf().await? == before, "the rotation did not wait");
    Ok(())
}

/// Waits until another CA than `before` signs, and everybody trusts it.
async fn rotated(cluster: &TestCluster, second: &Second, before: &Value) -> anyhow::Result<Value> {
    let client = &cluster.client;
    let generation = until("another CA signs", PATIENCE, async || {
        let certificate = get(client, sample::SERVING_CERTIFICATE).await?.context("gone")?;
        let generation = &certificate["status"]["ca"]["current"]["generation"];
        Ok(
            check(generation != before && steps::is_settled(&certificate), || {
                format!("{}: {}", conditions(&certificate), certificate["status"])
            })
            .map(|()| generation.clone()),
        )
    })
    .await?;
    second.carries(client, sample::SERVING_SECRET).await?;
    Ok(generation)
}

async fn generation(client: &Client) -> anyhow::Result<Value> {
    let certificate = get(client, sample::SERVING_CERTIFICATE).await?.context("gone")?;
    Ok(certificate["status"]["ca"]["current"]["generation"].clone())
}

/// What targets are like in a cluster that does not answer is not known, and they are not counted as absent.
async fn rotate_while_it_is_away(cluster: &TestCluster, second: &Second) -> anyhow::Result<()> {
    let client = &cluster.client;
    let before = generation(client).await?;
    let away = async { anyhow::Ok(second.sandbox.restart(AWAY).await?) };
    let asked = async {
        let message = says(client, sample::SERVING_CERTIFICATE, "Ready", "TargetsUnlisted").await?;
        anyhow::ensure!(message.contains("the remote cluster"), "{message}");
        ask_in_vain(cluster).await?;
        // Whatever is away there, here everything is as ever.
        let drift = json!([{
            "op": "replace", "path": "/spec/conversion/webhook/clientConfig/caBundle", "value": foreign::trust_bundle()?,
        }]);
        succeed(client, "PATCH", sample::DEFINITION, Some(&drift)).await?;
        let trust = sample::trust_bundle(cluster).await?;
        until("the definition is repaired", Duration::from_secs(3), async || {
            let crd = sample::crd(cluster).await?;
            let carried = text(&crd, "/spec/conversion/webhook/clientConfig/caBundle");
            Ok(check(carried == trust, || carried.to_owned()))
        })
        .await
    };
    let ((), ()) = tokio::try_join!(away, asked)?;
    rotated(cluster, second, &before).await?;
    Ok(())
}

/// One CA ahead is what targets have: the next rotation is done from that, and then nothing more until they have the one after.
async fn rotate_while_it_cannot_be_written(cluster: &TestCluster, second: &Second) -> anyhow::Result<()> {
    let client = &cluster.client;
    let path = format!("{ROLES}/{ACCOUNT}");
    let before = generation(client).await?;
    let reading = role(&["get", "list", "watch"]);
    succeed(&second.client, "PUT", &path, Some(&reading)).await?;
    sample::ask_for_rotation(cluster, "ca").await?;
    until("another CA signs", PATIENCE, async || {
        Ok(check(generation(client).await? != before, || {
            "the same signs".to_owned()
        }))
    })
    .await?;
    let between = generation(client).await?;
    let message = says(client, sample::SERVING_CERTIFICATE, "Ready", "Blocked").await?;
    anyhow::ensure!(message.contains("in the remote cluster"), "{message}");
    ask_in_vain(cluster).await?;
    let writing = role(&["get", "list", "watch", "patch"]);
    succeed(&second.client, "PUT", &path, Some(&writing)).await?;
    rotated(cluster, second, &between).await?;
    Ok(())
}

pub(super) async fn a_kubeconfig_that_cannot_be_used_is_named_and_holds_nothing_up_here(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    let second = Second::start().await?;
    let _operator = operator(cluster).start()?;
    create_certificate(cluster).await?;
    let path = format!("{}/hook", steps::serving_certificates(injection::NAMESPACE));
    let message = says(client, &path, "Trusted", "TargetsUnlisted").await?;
    anyhow::ensure!(message.contains("karmada-kubeconfig: not found"), "{message}");
    is_told(client, "RemoteClusterUnavailable", "not found").await?;

    let hostile = second.kubeconfig().replace(
        "  user:\n    token: ",
        "  user:\n    exec: {command: touch, args: [/tmp/windlass-was-here], apiVersion: client.authentication.k8s.io/v1}\n    token: ",
    );
    anyhow::ensure!(hostile.contains("exec"), "{hostile}");
    succeed(client, "POST", &secrets(), Some(&secret(&hostile))).await?;
    is_told(
        client,
        "RemoteClusterUnavailable",
        "karmada.config: users[0].user.exec: not allowed",
    )
    .await?;
    let config_map = json!({
        "metadata": {"name": "trust", "annotations": {"windlass.dev/inject-ca-from": format!("{}/hook", injection::NAMESPACE)}},
    });
    let config_maps = format!("/api/v1/namespaces/{}/configmaps", injection::NAMESPACE);
    succeed(client, "POST", &config_maps, Some(&config_map)).await?;
    until("a target here gets its trust bundle", PATIENCE, async || {
        let target = get(client, &format!("{config_maps}/trust"))
            .await?
            .context("gone")?;
        Ok(check(target["data"].is_object(), || target.to_string()))
    })
    .await?;

    second.create_targets(injection::NAMESPACE, "hook").await?;
    let path_of_secret = format!("{}/{SECRET}", secrets());
    let serving = format!("/api/v1/namespaces/{}/secrets/hook-cert", injection::NAMESPACE);
    let good = secret(&second.kubeconfig());
    succeed(client, "PUT", &path_of_secret, Some(&good)).await?;
    second.carries(client, &serving).await?;
    says(client, &path, "Trusted", "Current").await?;

    // Other credentials take the place of those.
    let other = secret(&second.account("another").await?);
    succeed(client, "PUT", &path_of_secret, Some(&other)).await?;
    let binding = format!("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{ACCOUNT}");
    succeed(&second.client, "DELETE", &binding, None).await?;
    ask_for_rotation(client, injection::NAMESPACE, "hook", "ca:compromised").await?;
    says(client, &path, "Trusted", "Current").await?;
    second.carries(client, &serving).await?;
    Ok(())
}
