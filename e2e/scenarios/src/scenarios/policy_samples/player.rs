//! Plays the cases of the samples.
//!
//! One folder of samples is served at a time, since each is for itself. Objects are written as dry runs; what is changed or deleted is
//! there before. What a creation is to give is what the same API server gives where nobody is asked, so its defaults do not matter.

use std::collections::BTreeMap;

use anyhow::Context;
use futures::future::try_join_all;
use kube::Client;
use policy::{
    AdmissionOperation, KnownData,
    cases::{CaseObject, ExpectedObject, PolicyCase},
};
use serde_json::{Value, json};
use windlass_object::object;

use super::{
    expectation::{expected_object, is_expected},
    objects::{collection, comparable, complete, folder, over, owned},
    sample::PolicySample,
    servers::SampleServers,
};
use crate::{
    cluster::{self, BackingCluster},
    request::{send, text},
    scenarios::{policies, policy_references, traffic},
    steps::{self, MUTATING, PATIENCE, VALIDATING, check, get, succeed, until},
    test_cluster::TestCluster,
};

/// Who writes where a case does not say that it is one of system:masters.
const WRITER: (&str, &str) = (policies::NAMESPACE, "writer");

/// A case, with what the creation of the expected object gives where nobody is asked.
struct PlayedCase<'a> {
    name: String,
    case: &'a PolicyCase,
    expected: Option<Value>,
}

/// Plays cases against an API server.
struct Player<'a> {
    cluster: &'a TestCluster,
    /// Who is not one of system:masters, and may do everything.
    writer: Client,
    servers: SampleServers,
}

/// The kinds of objects of samples that sandboxes do not serve, as their differences say.
const NOT_IN_SANDBOXES: [&str; 1] = ["StatefulSet"];

/// What the samples refer to.
const REFERENCED: [(&str, &str); 3] = [("", "configmaps"), ("", "secrets"), ("apps", "replicasets")];

pub(in super::super) async fn every_sample_policy_does_what_its_cases_say(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    policies::install(cluster).await?;
    traffic::namespace(cluster, policies::NAMESPACE).await?;
    let player = Player {
        cluster,
        writer: writer(cluster).await?,
        servers: SampleServers::start(cluster).await?,
    };
    policy_references::grant(cluster, &REFERENCED).await?;
    let samples = PolicySample::all()?;
    let mut played = Vec::new();
    for sample in &samples {
        player.prepare(sample).await?;
        let mut cases = Vec::new();
        for (name, case) in sample.cases() {
            if !player.serves(&case.object.object()) {
                continue;
            }
            let expected = player.expected(sample, case).await;
            let expected = expected.with_context(|| name.clone())?;
            cases.push(PlayedCase { name, case, expected });
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
    let ca = cluster.write("servers.crt", &player.servers.ca)?;
    let arguments = [
        format!("--policy-http-host={}", player.servers.address),
        format!("--policy-http-ca={}", ca.display()),
        "--policy-http-cache=100ms".to_owned(),
    ];
    let arguments = arguments.each_ref().map(String::as_str);
    let _replica = policies::join_with(cluster, "policies-one", &arguments).await?;
    for (sample, cases) in samples.iter().zip(&played) {
        policies::webhooks(cluster, MUTATING, 1).await?;
        policies::webhooks(cluster, VALIDATING, 1).await?;
        let ready = sample.policies.iter().map(async |policy| {
            let policy = player.servers.asked_by(policy);
            policies::ready(cluster, &folder(&policy), &policy).await
        });
        try_join_all(ready).await?;
        for played in cases {
            let result = player.play(sample, played).await;
            result.with_context(|| played.name.clone())?;
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

// === impl Player ===

impl Player<'_> {
    /// Creates what objects and policies of a sample need to be there: namespaces, priority classes and the data of its cases.
    async fn prepare(&self, sample: &PolicySample) -> anyhow::Result<()> {
        let cases = sample.cases.cases.iter();
        let objects = cases.clone().map(|case| case.object.object());
        let old_objects = cases.clone().filter_map(|case| case.old_object.as_ref());
        let objects: Vec<_> = objects
            .chain(old_objects.map(CaseObject::object))
            .chain(sample.policies.iter().cloned())
            .collect();
        let known = &sample.cases.data.objects;
        for namespace in known.iter().filter(|known| text(known, "/kind") == "Namespace") {
            self.ensure(namespace).await?;
        }
        for object in objects.iter().chain(known) {
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
        self.know(&sample.cases.data).await
    }

    /// Has the objects there that a sample or a case knows.
    async fn know(&self, data: &KnownData) -> anyhow::Result<()> {
        for known in &data.objects {
            self.ensure(known).await?;
        }
        Ok(())
    }

    /// The uids that the API server gave to what is known, by those that a case calls it by.
    async fn uids(&self, known: [&KnownData; 2]) -> anyhow::Result<BTreeMap<String, String>> {
        let mut uids = BTreeMap::new();
        let mut paths = Vec::new();
        for known in known.into_iter().flat_map(|known| &known.objects) {
            let Some(uid) = object::text(known, "/metadata/uid") else {
                continue;
            };
            let path = format!("{}/{}", collection(known)?, text(known, "/metadata/name"));
            // What comes first is there instead of others of the same name.
            if paths.contains(&path) {
                continue;
            }
            let live = get(&self.writer, &path).await?.with_context(|| path.clone())?;
            uids.insert(uid.to_owned(), text(&live, "/metadata/uid").to_owned());
            paths.push(path);
        }
        Ok(uids)
    }

    /// Creates an object, or makes the one that is there like it in labels, annotations and what it says.
    async fn ensure(&self, object: &Value) -> anyhow::Result<()> {
        let mut object = complete(object);
        // That is for the API server to give.
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("uid");
        }
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
    async fn expected(&self, sample: &PolicySample, case: &PolicyCase) -> anyhow::Result<Option<Value>> {
        let expected = &case.expected;
        let is_written = case.operation == AdmissionOperation::Create
            && expected.denied.is_none()
            && expected.error.is_none();
        if !is_written {
            return Ok(None);
        }
        let uids = self.uids([&case.data, &sample.cases.data]).await?;
        let object = owned(&complete(&expected_object(case)?), &uids);
        let path = format!("{}?dryRun=All", collection(&object)?);
        let answer = succeed(&self.writer, "POST", &path, Some(&object)).await?;
        Ok(Some(comparable(&answer.body)))
    }

    async fn play(&self, sample: &PolicySample, played: &PlayedCase<'_>) -> anyhow::Result<()> {
        let PlayedCase { case, expected, .. } = played;
        let known = [&case.data, &sample.cases.data];
        self.servers.answer(known);
        self.know(&case.data).await?;
        let uids = self.uids(known).await?;
        let object = owned(&complete(&case.object.object()), &uids);
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
        .await?;
        if case.data.objects.is_empty() {
            return Ok(());
        }
        self.know(&sample.cases.data).await
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

    /// Whether the cluster has objects of the kind.
    fn serves(&self, object: &Value) -> bool {
        let is_sandbox = matches!(self.cluster.backing, BackingCluster::Sandbox(_));
        !(is_sandbox && NOT_IN_SANDBOXES.contains(&text(object, "/kind")))
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
