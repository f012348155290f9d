//! Measures admission requests: matching and other policies, by the language of their rules, on a pod of 2.5
//! kB.
#![expect(clippy::unwrap_used, reason = "a failed setup ends the benchmark")]

use std::sync::Arc;

use divan::{Bencher, black_box};
use policy::{
    AdmissionAttributes, Answers, CompiledPolicy, Engines, EvaluationBudget, PolicyEvaluation, PolicySet,
};
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATOR: divan::AllocProfiler = divan::AllocProfiler::system();

fn main() {
    divan::main();
}

/// A pod of about 2.5 kB.
fn pod() -> Value {
    let container = |name: &str| {
        let env: Vec<_> = (0..8)
            .map(|index| json!({"name": format!("VARIABLE_{index}"), "value": "some value of it"}))
            .collect();
        json!({
            "name": name, "image": format!("registry.example.com/team/{name}:1.2.3"), "env": env,
            "resources": {"limits": {"cpu": "1500m", "memory": "1.5Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}},
            "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
            "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        })
    };
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "a", "namespace": "n", "labels": {"app": "x"}, "annotations": {"example.com/owner": "me"}},
        "spec": {
            "containers": [container("one"), container("two")],
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}],
            "volumes": [{"name": "data", "emptyDir": {}}],
        },
    })
}

fn overriding(name: &str, kind: &str, overriders: &Value) -> Arc<CompiledPolicy> {
    let policy = json!({
        "apiVersion": "policy.kcloudlabs.io/v1alpha1", "kind": "ClusterOverridePolicy", "metadata": {"name": name},
        "spec": {"resourceSelectors": [{"apiVersion": "v1", "kind": kind}], "overrideRules": [{"overriders": overriders}]},
    });
    let compiled = CompiledPolicy::compile(&policy, &Engines::built_in()).unwrap();
    assert_eq!(compiled.problems(), []);
    compiled.into()
}

fn overriders(language: &str) -> Value {
    match language {
        "plaintext" => {
            json!({"plaintext": [{"op": "replace", "path": "/metadata/annotations/a", "value": "b"}]})
        }
        "origin" => {
            json!({"origin": [{"type": "tolerations", "operation": "add", "tolerations": [{"key": "a", "operator": "Exists"}]}]})
        }
        "template" => {
            json!({"template": {"type": "annotations", "operation": "add", "path": "a", "value": {"string": "b"}}})
        }
        "oversell" => {
            json!({"template": {"type": "resourcesOversell", "operation": "replace", "resourcesOversell": {"cpuFactor": "0.5", "memoryFactor": "0.2"}}})
        }
        _ => {
            json!({"cel": {"expression": "has(object.spec.nodeName) ? [] : [JSONPatch{op: 'replace', path: '/metadata/annotations/a', value: 'b'}]"}})
        }
    }
}

fn run(bencher: Bencher<'_, '_>, policies: Vec<Arc<CompiledPolicy>>) {
    let set = PolicySet::new(policies);
    let pod = pod();
    let (answers, budget) = (Answers::default(), EvaluationBudget::default());
    bencher.bench_local(|| {
        let attributes = AdmissionAttributes::create(black_box(&pod));
        match set.override_object(&attributes, &answers, &budget) {
            PolicyEvaluation::Done(outcome) => {
                assert_eq!(outcome.refusal, None);
                outcome
            }
            PolicyEvaluation::Missing(missing) => unreachable!("{missing:?}"),
        }
    });
}

/// One policy matches.
#[divan::bench(args = ["plaintext", "origin", "template", "oversell", "cel"])]
fn one_rule(bencher: Bencher<'_, '_>, language: &str) {
    run(bencher, vec![overriding("a", "Pod", &overriders(language))]);
}

/// A hundred policies match.
#[divan::bench(args = ["plaintext", "origin", "template", "oversell", "cel"])]
fn a_hundred_rules(bencher: Bencher<'_, '_>, language: &str) {
    let policies = (0..100).map(|number| overriding(&format!("p{number}"), "Pod", &overriders(language)));
    run(bencher, policies.collect());
}

/// Three of a hundred policies match.
#[divan::bench]
fn three_of_a_hundred(bencher: Bencher<'_, '_>) {
    let policies = (0..100).map(|number| {
        let kind = if number < 3 {
            "Pod".to_owned()
        } else {
            format!("Kind{number}")
        };
        overriding(&format!("p{number}"), &kind, &overriders("template"))
    });
    run(bencher, policies.collect());
}

/// No policy matches.
#[divan::bench]
fn none_of_a_hundred(bencher: Bencher<'_, '_>) {
    let policies = (0..100).map(|number| overriding(&format!("p{number}"), "Kind", &overriders("template")));
    run(bencher, policies.collect());
}
