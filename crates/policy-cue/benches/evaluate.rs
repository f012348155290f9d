//! Measures the programs that templates render, on a pod of 2.5 kB: `cargo bench -p policy-cue`.

#![expect(clippy::expect_used, reason = "a failed setup ends the benchmark")]

use std::sync::LazyLock;

use divan::{AllocProfiler, Bencher, black_box};
use policy_cue::{CueBudget, CueInputs, CueProgram};
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

/// Programs by name, with their outputs.
const PROGRAMS: &[(&str, &str, &str)] = &[
    ("exists", include_str!("exists.cue"), "validate"),
    ("annotation", include_str!("annotation.cue"), "patches"),
    ("toleration", include_str!("toleration.cue"), "patches"),
    ("oversell", include_str!("oversell.cue"), "patches"),
    (
        "rendered_oversell",
        include_str!("rendered_oversell.cue"),
        "patches",
    ),
];

static DATA: LazyLock<Value> = LazyLock::new(|| json!({"object": pod(), "oldObject": {}, "extraParams": {}}));

fn main() {
    println!("a pod of {} bytes", pod().to_string().len());
    for (name, source, output) in PROGRAMS {
        let program = CueProgram::compile(source).expect("the program is in the subset");
        let inputs = CueInputs::new().with_input("data", &DATA);
        let value = program.evaluate(&inputs, output, &CueBudget::default());
        println!(
            "{name}: {}",
            value.expect("the program has the output").unwrap_or_default()
        );
    }
    divan::main();
}

fn pod() -> Value {
    let environment: Vec<Value> = (0..17)
        .map(|index| json!({"name": format!("VARIABLE_{index}"), "value": format!("the value of number {index}")}))
        .collect();
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "web-7d4b9c6f5-x2x9k",
            "namespace": "shop",
            "labels": {"app": "web", "app.kubernetes.io/part-of": "shop", "pod-template-hash": "7d4b9c6f5"},
            "annotations": {"example.com/owner": "team-a", "prometheus.io/scrape": "true", "prometheus.io/port": "8080"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-7d4b9c6f5", "uid": "7b1c", "controller": true}],
        },
        "spec": {
            "containers": [
                {
                    "name": "web",
                    "image": "registry.example.com/shop/web:1.25.3",
                    "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
                    "env": environment,
                    "resources": {"limits": {"cpu": "500m", "memory": "1Gi"}, "requests": {"cpu": "250m", "memory": "512Mi"}},
                    "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}, "periodSeconds": 5},
                    "volumeMounts": [{"name": "configuration", "mountPath": "/etc/web"}, {"name": "data", "mountPath": "/var/lib/web"}],
                },
                {"name": "proxy", "image": "registry.example.com/mesh/proxy:0.9", "resources": {}},
            ],
            "tolerations": [
                {"key": "dedicated", "operator": "Equal", "value": "shop", "effect": "NoSchedule"},
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
                {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
            ],
            "volumes": [{"name": "configuration", "configMap": {"name": "web"}}, {"name": "data", "emptyDir": {}}],
            "serviceAccountName": "web",
            "schedulerName": "default-scheduler",
            "terminationGracePeriodSeconds": 30,
        },
        "status": {"phase": "Running", "podIP": "10.0.3.17", "hostIP": "192.168.1.4"},
    })
}

fn run(bencher: Bencher, index: usize) {
    let (_, source, output) = PROGRAMS[index];
    let program = CueProgram::compile(source).expect("the program is in the subset");
    let inputs = CueInputs::new().with_input("data", &DATA);
    let budget = CueBudget::default();
    bencher.bench_local(|| black_box(&program).evaluate(black_box(&inputs), output, &budget));
}

#[divan::bench]
fn exists(bencher: Bencher) {
    run(bencher, 0);
}

#[divan::bench]
fn annotation(bencher: Bencher) {
    run(bencher, 1);
}

#[divan::bench]
fn toleration(bencher: Bencher) {
    run(bencher, 2);
}

#[divan::bench]
fn oversell(bencher: Bencher) {
    run(bencher, 3);
}

#[divan::bench]
fn rendered_oversell(bencher: Bencher) {
    run(bencher, 4);
}

#[divan::bench]
fn compile_oversell(bencher: Bencher) {
    bencher.bench_local(|| CueProgram::compile(black_box(PROGRAMS[3].1)));
}
