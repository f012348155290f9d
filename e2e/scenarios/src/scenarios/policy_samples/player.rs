//! Runs the cases of the samples.
//!
//! Each folder of samples is served alone, since samples are independent. Objects are written as dry runs;
//! those that are changed or deleted exist before. The expected result of a creation is that of the same API
//! server without policies, so that its defaults do not matter.

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
    objects::{
        collection, comparable, policy_collection, with_live_owners, with_required_fields, with_updates,
    },
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

/// The ServiceAccount of writes whose case does not name system:masters.
const WRITER: (&str, &str) = (policies::NAMESPACE, "writer");

/// A case with the result of creating the expected object without policies.
struct PlayedCase<'a> {
    name: String,
    case: &'a PolicyCase,
    expected: Option<Value>,
}

/// Runs cases against an API server.
struct Player<'a> {
    cluster: &'a TestCluster,
    /// A client that is not in system:masters, and is a cluster-admin.
    writer: Client,
    servers: SampleServers,
}

/// Kinds in samples that sandboxes do not serve; see the differences of the sandbox.
const NOT_IN_SANDBOXES: [&str; 1] = ["StatefulSet"];

/// The resources that samples refer to.
const REFERENCED: [(&str, &str); 3] = [("", "configmaps"), ("", "secrets"), ("apps", "replicasets")];

pub(in super::super) async fn every_sample_policy_passes_its_cases(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    policies::install(cluster).await?;
    traffic::create_namespace(cluster, policies::NAMESPACE).await?;
    let player = Player {
        cluster,
        writer: create_writer(cluster).await?,
        servers: SampleServers::start(cluster).await?,
    };
    policy_references::grant_reads(cluster, &REFERENCED).await?;
    let samples = PolicySample::all()?;
    let mut played = Vec::new();
    for sample in &samples {
        player.prepare(sample).await?;
        let mut cases = Vec::new();
        for (name, case) in sample.cases() {
            if !player.serves(&case.object.object()) {
                continue;
            }
            let expected = player.expected_creation(sample, case).await;
            let expected = expected.with_context(|| name.clone())?;
            cases.push(PlayedCase { name, case, expected });
        }
        // Creations first: other cases require that the object exists. A case that changes or refuses its
        // object shows that policies are called, so it comes before those that do not.
        cases.sort_by_key(|played| {
            (
                played.case.operation != AdmissionOperation::Create,
                !has_effect(played.case),
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
        policies::wait_for_webhooks(cluster, MUTATING, 1).await?;
        policies::wait_for_webhooks(cluster, VALIDATING, 1).await?;
        let ready = sample.policies.iter().map(async |policy| {
            let policy = player.servers.redirect(policy);
            policies::create_policy(cluster, &policy_collection(&policy), &policy).await
        });
        try_join_all(ready).await?;
        for played in cases {
            let result = player.run_case(sample, played).await;
            result.with_context(|| played.name.clone())?;
        }
        let deleted = sample.policies.iter().map(async |policy| {
            let (folder, name) = (policy_collection(policy), text(policy, "/metadata/name"));
            steps::delete(&cluster.client, &format!("{}/{folder}/{name}", policies::API)).await
        });
        try_join_all(deleted).await?;
        for played in cases {
            player.delete_object(played.case).await?;
        }
    }
    Ok(())
}

/// Reports whether a case shows that policies were called.
fn has_effect(case: &PolicyCase) -> bool {
    case.expected.denied.is_some() || case.expected.object != ExpectedObject::Same
}

async fn create_writer(cluster: &TestCluster) -> anyhow::Result<Client> {
    let (namespace, name) = WRITER;
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}});
    let accounts = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
    succeed(&cluster.client, "POST", &accounts, Some(&account)).await?;
    policies::grant_everything(cluster, namespace, name).await?;
    cluster::client(&cluster.backing.service_account(namespace, name).await?).await
}

impl Player<'_> {
    /// Creates the objects that a sample and its policies require: namespaces, priority classes and the data
    /// of its cases.
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
                traffic::create_namespace(self.cluster, namespace).await?;
            }
            if let Some(class) = object::text(object, "/spec/priorityClassName") {
                let class = json!({
                    "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": class},
                });
                self.ensure(&class).await?;
            }
        }
        self.ensure_data(&sample.cases.data).await
    }

    /// Creates the objects that a sample or a case refers to.
    async fn ensure_data(&self, data: &KnownData) -> anyhow::Result<()> {
        for known in &data.objects {
            self.ensure(known).await?;
        }
        Ok(())
    }

    /// Maps the uids in a case to those of the API server.
    async fn live_uids(&self, known: [&KnownData; 2]) -> anyhow::Result<BTreeMap<String, String>> {
        let mut uids = BTreeMap::new();
        let mut paths = Vec::new();
        for known in known.into_iter().flat_map(|known| &known.objects) {
            let Some(uid) = object::text(known, "/metadata/uid") else {
                continue;
            };
            let path = format!("{}/{}", collection(known)?, text(known, "/metadata/name"));
            // The first object of a name replaces later ones.
            if paths.contains(&path) {
                continue;
            }
            let live = get(&self.writer, &path).await?.with_context(|| path.clone())?;
            uids.insert(uid.to_owned(), text(&live, "/metadata/uid").to_owned());
            paths.push(path);
        }
        Ok(uids)
    }

    /// Creates an object, or updates the existing one with its labels, annotations and fields.
    async fn ensure(&self, object: &Value) -> anyhow::Result<()> {
        let mut object = with_required_fields(object);
        // The API server sets the uid.
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("uid");
        }
        let collection = collection(&object)?;
        let path = format!("{collection}/{}", text(&object, "/metadata/name"));
        match get(&self.writer, &path).await? {
            Some(current) => {
                let changed = with_updates(&current, &object);
                succeed(&self.writer, "PUT", &path, Some(&changed)).await?;
            }
            None => {
                succeed(&self.writer, "POST", &collection, Some(&object)).await?;
            }
        }
        Ok(())
    }

    /// Returns the result of creating the expected object of a case without policies.
    async fn expected_creation(
        &self,
        sample: &PolicySample,
        case: &PolicyCase,
    ) -> anyhow::Result<Option<Value>> {
        let expected = &case.expected;
        let is_written = case.operation == AdmissionOperation::Create
            && expected.denied.is_none()
            && expected.error.is_none();
        if !is_written {
            return Ok(None);
        }
        let uids = self.live_uids([&case.data, &sample.cases.data]).await?;
        let object = with_live_owners(&with_required_fields(&expected_object(case)?), &uids);
        let path = format!("{}?dryRun=All", collection(&object)?);
        let answer = succeed(&self.writer, "POST", &path, Some(&object)).await?;
        Ok(Some(comparable(&answer.body)))
    }

    async fn run_case(&self, sample: &PolicySample, played: &PlayedCase<'_>) -> anyhow::Result<()> {
        let PlayedCase { case, expected, .. } = played;
        let known = [&case.data, &sample.cases.data];
        self.servers.set_responses(known);
        self.ensure_data(&case.data).await?;
        let uids = self.live_uids(known).await?;
        let object = with_live_owners(&with_required_fields(&case.object.object()), &uids);
        let collection = collection(&object)?;
        let path = format!("{collection}/{}", text(&object, "/metadata/name"));
        let client = self.client(case);
        until("the result is the expected one", PATIENCE, async || {
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
                    let current = get(client, &path).await?.context("it was deleted")?;
                    let changed = with_updates(&current, &object);
                    send(client, "PUT", &format!("{path}?dryRun=All"), Some(&changed)).await?
                }
            };
            let seen = || match expected {
                Some(expected) => {
                    let differences = json_patch::diff(expected, &comparable(&answer.body));
                    format!("{answer}, which differs from the result without policies by {differences}")
                }
                None => format!("{answer}: {}", answer.body),
            };
            Ok(check(is_expected(case, expected.as_ref(), &answer)?, seen))
        })
        .await?;
        if case.data.objects.is_empty() {
            return Ok(());
        }
        self.ensure_data(&sample.cases.data).await
    }

    /// Deletes the object of a case, except for namespaces, which later samples need. Deleted policies may
    /// still be in force for a moment.
    async fn delete_object(&self, case: &PolicyCase) -> anyhow::Result<()> {
        let object = with_required_fields(&case.object.object());
        if case.operation == AdmissionOperation::Create || text(&object, "/kind") == "Namespace" {
            return Ok(());
        }
        let path = format!("{}/{}", collection(&object)?, text(&object, "/metadata/name"));
        until(&format!("{path} can be deleted"), PATIENCE, async || {
            let path = format!("{path}?gracePeriodSeconds=0");
            let answer = send(&self.cluster.client, "DELETE", &path, None).await?;
            Ok(check([200, 202, 404].contains(&answer.code), || {
                answer.to_string()
            }))
        })
        .await
    }

    /// Reports whether the cluster serves the kind.
    fn serves(&self, object: &Value) -> bool {
        let is_sandbox = matches!(self.cluster.backing, BackingCluster::Sandbox(_));
        !(is_sandbox && NOT_IN_SANDBOXES.contains(&text(object, "/kind")))
    }

    /// Returns the client of a case.
    fn client(&self, case: &PolicyCase) -> &Client {
        let groups = object::items(&case.request, "/userInfo/groups");
        if groups.iter().any(|group| group == "system:masters") {
            return &self.cluster.client;
        }
        &self.writer
    }
}
