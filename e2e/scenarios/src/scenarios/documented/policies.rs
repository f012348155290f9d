//! Admission policies that pages show: who may install what.

use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::{Value, json};

use super::super::traffic;
use crate::{
    documentation::code_blocks,
    request::{self, RequestAnswer, send, text},
    sample,
    steps::{self, BUNDLE_DEPLOYMENTS, PATIENCE, check, delete, gone, ready, succeed, until},
    test_cluster::{TestCluster, apply, path_of},
};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// Who may install, by the role that a page shows.
const INSTALLER: &str = "installer-of-a-team";

/// The namespace that the page on tenancy installs into.
const TEAM: &str = "team-a";

/// Where the page on rights lets people install.
const ALLOWED: &str = "operators-sample";

pub(in super::super) async fn documented_policies_refuse_what_they_say(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    for namespace in [TEAM, ALLOWED] {
        traffic::namespace(cluster, namespace).await?;
    }
    for role in shown("rights.md", "ClusterRole")? {
        if text(&role, "/metadata/name") != "windlass-remote" {
            apply(&cluster.client, &role).await?;
        }
    }
    let binding = json!({
        "metadata": {"name": "installers"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "windlass-installer"},
        "subjects": [
            {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": INSTALLER},
            {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "platform-admins"},
        ],
    });
    succeed(
        &cluster.client,
        "POST",
        &format!("{RBAC}/clusterrolebindings"),
        Some(&binding),
    )
    .await?;
    nobody_without_an_account(cluster).await?;
    nothing_but_what_is_approved(cluster).await
}

/// The policy of the page on tenancy.
async fn nobody_without_an_account(cluster: &TestCluster) -> anyhow::Result<()> {
    let policy = policy(cluster, "tenancy.md").await?;
    let installer = acting(cluster, INSTALLER, &[]).await?;
    let shown = shown("tenancy.md", "BundleDeployment")?.remove(0);
    let bare = steps::bundle_deployment("sample", TEAM, "sample");
    let said = "name a spec.serviceAccountName that you may impersonate";
    refused(&installer, &bare, said).await?;
    refused(&installer, &shown, said).await?;
    // Whoever may escalate may do everything anyway.
    taken(&cluster.client, &bare).await?;

    let rights = json!({
        "metadata": {"name": "installers"},
        "rules": [{"apiGroups": [""], "resources": ["serviceaccounts"], "resourceNames": ["installer"], "verbs": ["impersonate"]}],
    });
    let binding = json!({
        "metadata": {"name": "installers"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "installers"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": INSTALLER}],
    });
    for (plural, object) in [("roles", rights), ("rolebindings", binding)] {
        let path = format!("{RBAC}/namespaces/{TEAM}/{plural}");
        succeed(&cluster.client, "POST", &path, Some(&object)).await?;
    }
    until("what may be impersonated may be named", PATIENCE, async || {
        let answer = try_it(&installer, &shown).await?;
        Ok(check(answer.code == 201, || answer.to_string()))
    })
    .await?;
    // Of that namespace, and by that name only.
    for (field, other) in [("namespace", ALLOWED), ("serviceAccountName", "default")] {
        let mut elsewhere = shown.clone();
        elsewhere["spec"][field] = other.into();
        refused(&installer, &elsewhere, said).await?;
    }
    remove(cluster, &policy).await
}

/// The policy of the page on rights.
async fn nothing_but_what_is_approved(cluster: &TestCluster) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    let policy = policy(cluster, "rights.md").await?;
    cluster.add_bundle(&sample::bundle("sample.v1"), "approved/sample.v1")?;
    let installer = acting(cluster, INSTALLER, &[]).await?;
    let approved = steps::bundle_deployment("sample", ALLOWED, "approved/sample.v1");
    for (field, value, said) in [
        (
            "namespace",
            json!(TEAM),
            "install into a namespace whose name begins with operators-",
        ),
        (
            "source",
            json!({"directory": {"path": "sample.v1"}}),
            "install only directories below approved/",
        ),
        (
            "source",
            json!({"image": {"ref": "registry.example.com/a/b:v1"}}),
            "install only directories below approved/",
        ),
        (
            "adopt",
            json!([{"kind": "ConfigMap", "namespace": ALLOWED, "name": "a"}]),
            "adopting objects is left to platform admins",
        ),
        (
            "deletionPolicy",
            json!("DeleteCRDs"),
            "deleting CustomResourceDefinitions is left to platform admins",
        ),
    ] {
        let mut object = approved.clone();
        object["spec"][field] = value;
        refused(&installer, &object, said).await?;
        let admin = acting(cluster, INSTALLER, &["platform-admins"]).await?;
        taken(&admin, &object).await?;
    }
    // A path upwards is refused by whom it may be.
    let mut upwards = approved.clone();
    upwards["spec"]["source"] = json!({"directory": {"path": "approved/../sample.v1"}});
    let answer = try_it(&installer, &upwards).await?;
    anyhow::ensure!(answer.code == 422 || answer.code == 403, "{answer}");

    // And what is approved is installed: Windlass itself may write what it has to.
    succeed(&installer, "POST", BUNDLE_DEPLOYMENTS, Some(&approved)).await?;
    ready(&cluster.client, "sample", PATIENCE).await?;
    let adopting = json!({"spec": {"deletionPolicy": "DeleteCRDs"}});
    let answer = send(&installer, "PATCH", sample::BUNDLE_DEPLOYMENT, Some(&adopting)).await?;
    anyhow::ensure!(answer.code == 422 || answer.code == 403, "{answer}");
    delete(&installer, sample::BUNDLE_DEPLOYMENT).await?;
    gone(&cluster.client, sample::BUNDLE_DEPLOYMENT).await?;
    remove(cluster, &policy).await
}

/// The objects of a kind that a page shows.
fn shown(page: &str, kind: &str) -> anyhow::Result<Vec<Value>> {
    let mut found = Vec::new();
    for block in code_blocks()?.iter().filter(|block| block.page.ends_with(page)) {
        found.extend(block.documents()?);
    }
    found.retain(|object| text(object, "/kind") == kind);
    anyhow::ensure!(!found.is_empty(), "{page} shows no {kind}");
    Ok(found)
}

/// Applies the policy of a page, and its binding.
async fn policy(cluster: &TestCluster, page: &str) -> anyhow::Result<Vec<Value>> {
    let mut objects = shown(page, "ValidatingAdmissionPolicy")?;
    objects.extend(shown(page, "ValidatingAdmissionPolicyBinding")?);
    for object in &objects {
        apply(&cluster.client, object).await?;
    }
    Ok(objects)
}

async fn remove(cluster: &TestCluster, policy: &[Value]) -> anyhow::Result<()> {
    for object in policy.iter().rev() {
        delete(&cluster.client, &path_of(object)).await?;
    }
    Ok(())
}

/// A client that acts as a user.
async fn acting(cluster: &TestCluster, user: &str, groups: &[&str]) -> anyhow::Result<Client> {
    let mut kubeconfig = Kubeconfig::read_from(&cluster.command.kubeconfig)?;
    for named in &mut kubeconfig.auth_infos {
        if let Some(auth_info) = &mut named.auth_info {
            auth_info.impersonate = Some(user.to_owned());
            auth_info.impersonate_groups = Some(groups.iter().map(|group| (*group).to_owned()).collect());
        }
    }
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}

/// Creates an object, in a dry run.
async fn try_it(client: &Client, object: &Value) -> anyhow::Result<RequestAnswer> {
    send(
        client,
        "POST",
        &format!("{BUNDLE_DEPLOYMENTS}?dryRun=All"),
        Some(object),
    )
    .await
}

/// Waits until an object is refused with `said`: a policy is enforced some time after it is there.
async fn refused(client: &Client, object: &Value, said: &str) -> anyhow::Result<()> {
    until(said, PATIENCE, async || {
        let answer = try_it(client, object).await?;
        let words = request::text(&answer.body, "/message").to_owned();
        Ok(check(answer.code == 422 && words.contains(said), || {
            answer.to_string()
        }))
    })
    .await
}

async fn taken(client: &Client, object: &Value) -> anyhow::Result<()> {
    let answer = try_it(client, object).await?;
    anyhow::ensure!(answer.code == 201, "{object} is not taken: {answer}");
    Ok(())
}
