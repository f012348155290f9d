//! The sample policies, asked by an API server about what their cases write: what becomes of it is what the cases say.
//!
//! One folder of samples is served at a time, since each is for itself. Objects are written as dry runs; what is changed or deleted is
//! there before. What a creation is to give is what the same API server gives where nobody is asked, so its defaults do not matter.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow};
use futures::future::try_join_all;
use kube::Client;
use policy::{
    AdmissionOperation,
    cases::{CaseObject, CasePolicy, ExpectedObject, PolicyCase, PolicyCases, merged},
};
use serde_json::{Value, json};
use windlass_object::{object, yaml};

use super::{policies, traffic};
use crate::{
    cluster,
    request::{RequestAnswer, send, text},
    steps::{self, MUTATING, PATIENCE, VALIDATING, check, get, succeed, until},
    test_cluster::TestCluster,
};

/// The folders and cases that are left out, and why. A folder is named alone.
const LEFT_OUT: &[(&str, &str)] = &[
    (
        "references",
        "what serves policies reads no other objects and asks no servers",
    ),
    (
        "oversell: a namespace that is not known keeps nobody out silently",
        "an API server has no objects without their namespace",
    ),
];

/// Who writes where a case does not say that it is one of system:masters.
const WRITER: (&str, &str) = (policies::NAMESPACE, "writer");

/// What metadata has of an API server, whatever is written.
const OF_THE_SERVER: [&str; 5] = [
    "creationTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "uid",
];

/// A folder of samples.
struct Sample {
    name: String,
    policies: Vec<Value>,
    cases: PolicyCases,
}

/// A case, with what the creation of the expected object gives where nobody is asked.
struct PlayedCase<'a> {
    case: &'a PolicyCase,
    expected: Option<Value>,
}

/// Plays cases against an API server.
struct Player<'a> {
    cluster: &'a TestCluster,
    /// Who is not one of system:masters, and may do everything.
    writer: Client,
}

pub(super) async fn every_sample_policy_does_what_its_cases_say(cluster: &TestCluster) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    policies::install(cluster).await?;
    traffic::namespace(cluster, policies::NAMESPACE).await?;
    let player = Player {
        cluster,
        writer: writer(cluster).await?,
    };
    let samples = Sample::all()?;
    let mut played = Vec::new();
    for sample in &samples {
        player.prepare(sample).await?;
        let mut cases = Vec::new();
        for case in &sample.cases.cases {
            if !is_left_out(&format!("{}: {}", sample.name, case.name)) {
                let expected = player.expected(case).await;
                cases.push(PlayedCase {
                    case,
                    expected: expected.with_context(|| format!("{}: {}", sample.name, case.name))?,
                });
            }
        }
        // Before others, which need the object to be there. Whatever has to be otherwise than nobody would have it shows that policies
        // are asked.
        cases.sort_by_key(|played| {
            (
                played.case.operation != AdmissionOperation::Create,
                !changes(played.case),
            )
        });
        played.push(cases);
    }
    let _replica = policies::join(cluster, "policies-one").await?;
    for (sample, cases) in samples.iter().zip(&played) {
        policies::webhooks(cluster, MUTATING, 1).await?;
        policies::webhooks(cluster, VALIDATING, 1).await?;
        let ready = sample.policies.iter().map(async |policy| {
            let folder = folder(policy);
            policies::ready(cluster, &folder, policy).await
        });
        try_join_all(ready).await?;
        for played in cases {
            let name = format!("{}: {}", sample.name, played.case.name);
            player.play(played).await.with_context(|| name)?;
        }
        let deleted = sample.policies.iter().map(async |policy| {
            let (folder, name) = (folder(policy), text(policy, "/metadata/name"));
            steps::delete(&cluster.client, &format!("{}/{folder}/{name}", policies::API)).await
        });
        try_join_all(deleted).await?;
        for played in cases {
            player.remove(played.case).await?;
        }
    }
    Ok(())
}

fn is_left_out(name: &str) -> bool {
    LEFT_OUT.iter().any(|(left_out, _)| *left_out == name)
}

/// Whether a case shows that somebody was asked.
fn changes(case: &PolicyCase) -> bool {
    case.expected.denied.is_some() || case.expected.object != ExpectedObject::Same
}

async fn writer(cluster: &TestCluster) -> anyhow::Result<Client> {
    let (namespace, name) = WRITER;
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}});
    let accounts = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
    succeed(&cluster.client, "POST", &accounts, Some(&account)).await?;
    policies::may_everything(cluster, namespace, name).await?;
    cluster::client(&cluster.backing.service_account(namespace, name).await?).await
}

/// Where policies of a kind are.
fn folder(policy: &Value) -> String {
    let plural = match text(policy, "/kind") {
        "ClusterOverridePolicy" => "clusteroverridepolicies",
        "OverridePolicy" => "overridepolicies",
        _ => "clustervalidatepolicies",
    };
    match object::text(policy, "/metadata/namespace") {
        Some(namespace) => format!("namespaces/{namespace}/{plural}"),
        None => plural.to_owned(),
    }
}

/// Where objects of the kinds of the samples are.
fn collection(object: &Value) -> anyhow::Result<String> {
    let (api_version, kind) = (text(object, "/apiVersion"), text(object, "/kind"));
    let plural = match kind {
        "Namespace" | "PriorityClass" => {
            let plural = kind.to_lowercase() + if kind == "Namespace" { "s" } else { "es" };
            return Ok(format!("{}/{plural}", api(api_version)));
        }
        "Pod" | "ConfigMap" | "Secret" | "Service" | "Deployment" | "ReplicaSet" | "StatefulSet" => {
            kind.to_lowercase() + "s"
        }
        kind => return Err(anyhow!("say where objects of kind {kind} are")),
    };
    let namespace = text(object, "/metadata/namespace");
    Ok(format!("{}/namespaces/{namespace}/{plural}", api(api_version)))
}

fn api(api_version: &str) -> String {
    match api_version {
        "v1" => "/api/v1".to_owned(),
        api_version => format!("/apis/{api_version}"),
    }
}

/// An object with what API servers ask for, and policies do not.
fn complete(object: &Value) -> Value {
    let container = json!([{"name": "c", "image": "a"}]);
    let needed = match text(object, "/kind") {
        // The name of a volume with a token would be another each time. The account by both its names: the sandbox gives one from the
        // other only where somebody was asked.
        "Pod" => json!({"spec": {
            "automountServiceAccountToken": false, "serviceAccountName": "default", "serviceAccount": "default",
            "containers": container,
        }}),
        "Deployment" | "ReplicaSet" | "StatefulSet" => json!({"spec": {
            "selector": {"matchLabels": {"app": "a"}},
            "template": {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": container}},
        }}),
        "PriorityClass" => json!({"value": 1}),
        _ => json!({}),
    };
    merged(&needed, object)
}

/// An object without what is different each time it is written.
fn comparable(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for field in OF_THE_SERVER {
            metadata.remove(field);
        }
    }
    for path in ["/spec/tolerations", "/spec/template/spec/tolerations"] {
        // API servers tolerate nodes that are not ready, before policies are asked.
        if let Some(tolerations) = object.pointer_mut(path).and_then(Value::as_array_mut) {
            tolerations.sort_by_key(Value::to_string);
        }
    }
    object
}

// === impl Sample ===

impl Sample {
    /// All that are not left out.
    fn all() -> anyhow::Result<Vec<Self>> {
        let samples: PathBuf = [
            env!("CARGO_MANIFEST_DIR"),
            "..",
            "..",
            "crates",
            "policy",
            "examples",
        ]
        .iter()
        .collect();
        let mut folders = BTreeSet::new();
        for entry in fs::read_dir(&samples).with_context(|| format!("reading {}", samples.display()))? {
            let path = entry?.path();
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if path.is_dir() && !is_left_out(&name) {
                folders.insert((name, path));
            }
        }
        let read = folders.into_iter().map(|(name, path)| {
            let shown = name.clone();
            Self::read(name, &path).with_context(|| shown)
        });
        read.collect()
    }

    fn read(name: String, folder: &Path) -> anyhow::Result<Self> {
        let documents = |file: &str| {
            let bytes = fs::read(folder.join(file)).with_context(|| format!("reading {file}"))?;
            yaml::documents(&bytes).map_err(|problem| anyhow!("{file}: {problem}"))
        };
        let cases = documents("cases.yaml")?;
        let cases = cases.first().context("no cases")?;
        let cases = PolicyCases::read(cases).map_err(|problems| anyhow!("{problems:?}"))?;
        let mut policies = Vec::new();
        for policy in &cases.policies {
            match policy {
                CasePolicy::File(file) => policies.extend(documents(file)?),
                CasePolicy::Inline(policy) => policies.push(policy.clone()),
            }
        }
        Ok(Self {
            name,
            policies,
            cases,
        })
    }
}

// === impl Player ===

impl Player<'_> {
    /// Creates what objects and policies of a sample need to be there: namespaces, priority classes and the data of its cases.
    async fn prepare(&self, sample: &Sample) -> anyhow::Result<()> {
        let cases = sample.cases.cases.iter();
        let objects = cases.clone().map(|case| case.object.object());
        let old_objects = cases.clone().filter_map(|case| case.old_object.as_ref());
        let objects: Vec<_> = objects
            .chain(old_objects.map(CaseObject::object))
            .chain(sample.policies.iter().cloned())
            .collect();
        for known in sample
            .cases
            .data
            .objects
            .iter()
            .filter(|known| text(known, "/kind") == "Namespace")
        {
            self.ensure(known).await?;
        }
        for object in &objects {
            if let Some(namespace) = object::text(object, "/metadata/namespace") {
                traffic::namespace(self.cluster, namespace).await?;
            }
            if let Some(class) = object::text(object, "/spec/priorityClassName") {
                let class = json!({
                    "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": class},
                });
                self.ensure(&class).await?;
            }
        }
        for known in &sample.cases.data.objects {
            self.ensure(known).await?;
        }
        Ok(())
    }

    /// Creates an object, or makes the one that is there like it in labels, annotations and what it says.
    async fn ensure(&self, object: &Value) -> anyhow::Result<()> {
        let object = complete(object);
        let collection = collection(&object)?;
        let path = format!("{collection}/{}", text(&object, "/metadata/name"));
        match get(&self.writer, &path).await? {
            Some(current) => {
                let changed = over(&current, &object);
                succeed(&self.writer, "PUT", &path, Some(&changed)).await?;
            }
            None => {
                succeed(&self.writer, "POST", &collection, Some(&object)).await?;
            }
        }
        Ok(())
    }

    /// What the creation of the object that a case expects gives where nobody is asked.
    async fn expected(&self, case: &PolicyCase) -> anyhow::Result<Option<Value>> {
        let expected = &case.expected;
        let is_written = case.operation == AdmissionOperation::Create
            && expected.denied.is_none()
            && expected.error.is_none();
        if !is_written {
            return Ok(None);
        }
        let object = complete(&expected_object(case)?);
        let path = format!("{}?dryRun=All", collection(&object)?);
        let answer = succeed(&self.writer, "POST", &path, Some(&object)).await?;
        Ok(Some(comparable(&answer.body)))
    }

    async fn play(&self, played: &PlayedCase<'_>) -> anyhow::Result<()> {
        let PlayedCase { case, expected } = played;
        let object = complete(&case.object.object());
        let collection = collection(&object)?;
        let path = format!("{collection}/{}", text(&object, "/metadata/name"));
        let client = self.client(case);
        until("what is written is as expected", PATIENCE, async || {
            let answer = match case.operation {
                AdmissionOperation::Create => {
                    send(client, "POST", &format!("{collection}?dryRun=All"), Some(&object)).await?
                }
                AdmissionOperation::Delete => {
                    self.ensure(&object).await?;
                    send(client, "DELETE", &format!("{path}?dryRun=All"), None).await?
                }
                _ => {
                    let old = case.old_object.as_ref().context("no oldObject")?;
                    self.ensure(&old.object()).await?;
                    let current = get(client, &path).await?.context("it is gone")?;
                    let changed = over(&current, &object);
                    send(client, "PUT", &format!("{path}?dryRun=All"), Some(&changed)).await?
                }
            };
            let seen = || match expected {
                Some(expected) => {
                    let differences = json_patch::diff(expected, &comparable(&answer.body));
                    format!("{answer}, and since nobody was asked {differences}")
                }
                None => format!("{answer}: {}", answer.body),
            };
            Ok(check(is_expected(case, expected.as_ref(), &answer)?, seen))
        })
        .await
    }

    /// Deletes the object of a case where it was there, but for namespaces, which later samples have too. Policies that are gone may be
    /// asked for a moment still.
    async fn remove(&self, case: &PolicyCase) -> anyhow::Result<()> {
        let object = complete(&case.object.object());
        if case.operation == AdmissionOperation::Create || text(&object, "/kind") == "Namespace" {
            return Ok(());
        }
        let path = format!("{}/{}", collection(&object)?, text(&object, "/metadata/name"));
        until(&format!("{path} may be deleted"), PATIENCE, async || {
            let path = format!("{path}?gracePeriodSeconds=0");
            let answer = send(&self.cluster.client, "DELETE", &path, None).await?;
            Ok(check([200, 202, 404].contains(&answer.code), || {
                answer.to_string()
            }))
        })
        .await
    }

    /// Who asks.
    fn client(&self, case: &PolicyCase) -> &Client {
        let groups = object::items(&case.request, "/userInfo/groups");
        if groups.iter().any(|group| group == "system:masters") {
            return &self.cluster.client;
        }
        &self.writer
    }
}

/// The object of a case as it is expected to become.
fn expected_object(case: &PolicyCase) -> anyhow::Result<Value> {
    let before = case.object.object();
    Ok(match &case.expected.object {
        ExpectedObject::Same => before,
        ExpectedObject::Whole(object) => object.object(),
        ExpectedObject::Change(change) => merged(&before, change),
        ExpectedObject::Patch(patch) => {
            let mut object = before;
            let patch: json_patch::Patch = serde_json::from_value(patch.clone())?;
            json_patch::patch(&mut object, &patch)?;
            object
        }
    })
}

/// What is there with an object put over it, and exactly its labels and annotations.
fn over(current: &Value, object: &Value) -> Value {
    let mut changed = merged(current, object);
    for field in ["labels", "annotations"] {
        changed["metadata"][field] = object["metadata"][field].clone();
    }
    // Controllers write its status meanwhile.
    changed["metadata"]["resourceVersion"] = Value::Null;
    changed
}

/// Whether an answer is what a case says.
fn is_expected(case: &PolicyCase, expected: Option<&Value>, answer: &RequestAnswer) -> anyhow::Result<bool> {
    let outcome = &case.expected;
    if let Some(reason) = &outcome.denied {
        return Ok(answer.is_denied() && answer.message().contains(reason.as_str()));
    }
    if let Some(error) = &outcome.error {
        return Ok(answer.code >= 400 && answer.message().contains(error.as_str()));
    }
    Ok(match (case.operation, expected) {
        (AdmissionOperation::Create, Some(expected)) => {
            answer.code == 201 && comparable(&answer.body) == *expected
        }
        (AdmissionOperation::Delete, _) => answer.code == 200,
        _ => {
            let expected = expected_object(case)?;
            answer.code == 200 && has_all(&answer.body, &expected) && has_marks(&answer.body, &expected)
        }
    })
}

/// Whether an object has all that another says.
fn has_all(object: &Value, expected: &Value) -> bool {
    match (object, expected) {
        (Value::Object(object), Value::Object(expected)) => expected
            .iter()
            .all(|(name, expected)| object.get(name).is_some_and(|value| has_all(value, expected))),
        (Value::Array(items), Value::Array(expected)) => {
            items.len() == expected.len()
                && items
                    .iter()
                    .zip(expected)
                    .all(|(item, expected)| has_all(item, expected))
        }
        (value, expected) => value == expected,
    }
}

/// Whether an object has the labels and annotations of another, and no more but those of Kubernetes itself.
fn has_marks(object: &Value, expected: &Value) -> bool {
    ["labels", "annotations"].into_iter().all(|field| {
        let marks = |object: &Value| -> BTreeSet<(String, String)> {
            let marks = object["metadata"][field].as_object().into_iter().flatten();
            marks
                .filter(|(name, _)| !name.contains("kubernetes.io/"))
                .map(|(name, value)| (name.clone(), value.to_string()))
                .collect()
        };
        marks(object) == marks(expected)
    })
}
