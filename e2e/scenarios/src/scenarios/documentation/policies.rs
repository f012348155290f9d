//! The admission policies in the documentation that restrict installs.

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

/// A user with the documented role for installs.
const INSTALLER: &str = "installer-of-a-team";

/// The namespace of the installs in docs/tenancy.md.
const TEAM: &str = "team-a";

/// A namespace in which docs/rights.md allows installs.
const ALLOWED: &str = "operators-sample";

pub(in super::super) async fn documented_policies_reject_forbidden_installs(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    for namespace in [TEAM, ALLOWED] {
        traffic::create_namespace(cluster, namespace).await?;
    }
    for role in documented_objects("rights.md", "ClusterRole")? {
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
    check_tenancy_policy(cluster).await?;
    check_rights_policy(cluster).await
}

/// Tests the policy of docs/tenancy.md.
async fn check_tenancy_policy(cluster: &TestCluster) -> anyhow::Result<()> {
    let policy = policy(cluster, "tenancy.md").await?;
    let installer = impersonating_client(cluster, INSTALLER, &[]).await?;
    let shown = documented_objects("tenancy.md", "BundleDeployment")?.remove(0);
    let bare = steps::bundle_deployment("sample", TEAM, "sample");
    let said = "name a spec.serviceAccountName that you may impersonate";
    wait_until_rejected(&installer, &bare, said).await?;
    wait_until_rejected(&installer, &shown, said).await?;
    // The policy does not apply to users with the verb `escalate`, who can get every right.
    check_accepted(&cluster.client, &bare).await?;

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
    until(
        "the user can name an account that it may impersonate",
        PATIENCE,
        async || {
            let answer = dry_run_create(&installer, &shown).await?;
            Ok(check(answer.code == 201, || answer.to_string()))
        },
    )
    .await?;
    // The account must have exactly this namespace and name.
    for (field, other) in [("namespace", ALLOWED), ("serviceAccountName", "default")] {
        let mut elsewhere = shown.clone();
        elsewhere["spec"][field] = other.into();
        wait_until_rejected(&installer, &elsewhere, said).await?;
    }
    remove(cluster, &policy).await
}

/// Tests the policy of docs/rights.md.
async fn check_rights_policy(cluster: &TestCluster) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    let policy = policy(cluster, "rights.md").await?;
    cluster.add_bundle(&sample::bundle("sample.v1"), "approved/sample.v1")?;
    let installer = impersonating_client(cluster, INSTALLER, &[]).await?;
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
        wait_until_rejected(&installer, &object, said).await?;
        let admin = impersonating_client(cluster, INSTALLER, &["platform-admins"]).await?;
        check_accepted(&admin, &object).await?;
    }
    // Either the policy or the CRD rejects `..`.
    let mut upwards = approved.clone();
    upwards["spec"]["source"] = json!({"directory": {"path": "approved/../sample.v1"}});
    let answer = dry_run_create(&installer, &upwards).await?;
    anyhow::ensure!(answer.code == 422 || answer.code == 403, "{answer}");

    // An approved bundle is installed: the policy does not restrict Windlass itself.
    succeed(&installer, "POST", BUNDLE_DEPLOYMENTS, Some(&approved)).await?;
    ready(&cluster.client, "sample", PATIENCE).await?;
    let adopting = json!({"spec": {"deletionPolicy": "DeleteCRDs"}});
    let answer = send(&installer, "PATCH", sample::BUNDLE_DEPLOYMENT, Some(&adopting)).await?;
    anyhow::ensure!(answer.code == 422 || answer.code == 403, "{answer}");
    delete(&installer, sample::BUNDLE_DEPLOYMENT).await?;
    gone(&cluster.client, sample::BUNDLE_DEPLOYMENT).await?;
    remove(cluster, &policy).await
}

/// Returns the objects of a kind in a page.
fn documented_objects(page: &str, kind: &str) -> anyhow::Result<Vec<Value>> {
    let mut found = Vec::new();
    for block in code_blocks()?.iter().filter(|block| block.page.ends_with(page)) {
        found.extend(block.documents()?);
    }
    found.retain(|object| text(object, "/kind") == kind);
    anyhow::ensure!(!found.is_empty(), "{page} has no {kind}");
    Ok(found)
}

/// Applies the policy of a page, and its binding.
async fn policy(cluster: &TestCluster, page: &str) -> anyhow::Result<Vec<Value>> {
    let mut objects = documented_objects(page, "ValidatingAdmissionPolicy")?;
    objects.extend(documented_objects(page, "ValidatingAdmissionPolicyBinding")?);
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

/// Returns a client that impersonates a user.
async fn impersonating_client(cluster: &TestCluster, user: &str, groups: &[&str]) -> anyhow::Result<Client> {
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

/// Creates an object in a dry run.
async fn dry_run_create(client: &Client, object: &Value) -> anyhow::Result<RequestAnswer> {
    send(
        client,
        "POST",
        &format!("{BUNDLE_DEPLOYMENTS}?dryRun=All"),
        Some(object),
    )
    .await
}

/// Waits until an object is rejected with `said`. A new policy is enforced after a delay.
async fn wait_until_rejected(client: &Client, object: &Value, said: &str) -> anyhow::Result<()> {
    until(said, PATIENCE, async || {
        let answer = dry_run_create(client, object).await?;
        let words = request::text(&answer.body, "/message").to_owned();
        Ok(check(answer.code == 422 && words.contains(said), || {
            answer.to_string()
        }))
    })
    .await
}

async fn check_accepted(client: &Client, object: &Value) -> anyhow::Result<()> {
    let answer = dry_run_create(client, object).await?;
    anyhow::ensure!(answer.code == 201, "{object} was rejected: {answer}");
    Ok(())
}
