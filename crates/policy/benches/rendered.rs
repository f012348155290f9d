//! Measures rules with templates: rendering, and running the program on a pod of 2.5 kB. `cargo bench -p
//! policy --bench rendered`

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a failed setup ends the benchmark"
)]

use std::sync::LazyLock;

use divan::Bencher;
use policy::render::{render_override, render_validation};
use policy_cue::{CueBudget, CueInputs, CueProgram};
use serde_json::{Value, json};

const RULES: [&str; 6] = [
    "exist",
    "annotation",
    "toleration",
    "oversell",
    "resources",
    "affinity",
];

/// The input of a rendered program.
static DATA: LazyLock<Value> = LazyLock::new(|| json!({"object": pod(), "oldObject": {}, "extraParams": {}}));

fn main() {
    println!("a pod of {} bytes", DATA["object"].to_string().len());
    divan::main();
}

fn pod() -> Value {
    let container = |name: &str| {
        let variable =
            |number: usize| json!({"name": format!("SETTING_{number}"), "value": format!("value {number}")});
        json!({
            "name": name, "image": format!("registry.example.com/team/{name}:1.2.3"), "args": ["--verbose"],
            "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
            "env": (0..5).map(variable).collect::<Vec<_>>(),
            "resources": {"limits": {"cpu": "500m", "memory": "1.5Gi"}, "requests": {"cpu": "500m", "memory": "1Gi"}},
            "livenessProbe": {"httpGet": {"path": "/healthz", "port": "http"}, "periodSeconds": 10},
            "readinessProbe": {"httpGet": {"path": "/readyz", "port": "http"}, "periodSeconds": 10},
            "volumeMounts": [{"name": "config", "mountPath": "/etc/config", "readOnly": true}],
            "terminationMessagePolicy": "File", "imagePullPolicy": "IfNotPresent",
        })
    };
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "web-5d8f7c9b6d-abcde", "namespace": "shop",
            "labels": {"app.kubernetes.io/name": "web", "app.kubernetes.io/part-of": "shop", "pod-template-hash": "5d8f7c9b6d"},
            "annotations": {"example.com/owner": "team-a", "kubectl.kubernetes.io/restartedAt": "2026-11-25T10:00:00Z"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d8f7c9b6d", "controller": true}],
        },
        "spec": {
            "containers": [container("web"), container("sidecar")],
            "volumes": [{"name": "config", "configMap": {"name": "web", "defaultMode": 420}}],
            "tolerations": [
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
                {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
            ],
            "serviceAccountName": "web", "schedulerName": "default-scheduler", "restartPolicy": "Always",
        },
    })
}

/// The template of a rule, and the output field of its program.
fn rendered(rule: &str) -> (String, &'static str) {
    let pods = json!([{"weight": 1, "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app.kubernetes.io/name": "web"}}}}]);
    let template = match rule {
        "exist" => {
            let place = json!({"from": "current", "path": "/metadata/annotations/example.com~1no-delete"});
            let condition = json!({"cond": "Exist", "message": "it is kept", "dataRef": place});
            let template = json!({"type": "condition", "condition": condition});
            let template = serde_json::from_value(template).expect("the template is valid");
            return (
                render_validation(&template).expect("the template renders"),
                "validate",
            );
        }
        "annotation" => json!({"type": "annotations", "path": "example.com/added", "value": {"string": "x"}}),
        "toleration" => {
            json!({"type": "tolerations", "tolerations": [{"key": "spot", "operator": "Exists"}]})
        }
        "oversell" => {
            json!({"type": "resourcesOversell", "resourcesOversell": {"cpuFactor": "0.5", "memoryFactor": "0.2"}})
        }
        "resources" => {
            json!({"type": "resources", "containers": ["*"], "resources": {"limits": {"cpu": "1"}}})
        }
        "affinity" => {
            json!({"type": "affinity", "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": pods}}})
        }
        other => panic!("{other} is not a rule"),
    };
    let mut template = template;
    template["operation"] = "add".into();
    let template = serde_json::from_value(template).expect("the template is valid");
    (
        render_override(&template).expect("the template renders"),
        "patches",
    )
}

#[divan::bench(args = RULES)]
fn render(bencher: Bencher<'_, '_>, rule: &str) {
    bencher.bench(|| rendered(rule));
}

#[divan::bench(args = RULES)]
fn compile(bencher: Bencher<'_, '_>, rule: &str) {
    let (program, _) = rendered(rule);
    bencher.bench(|| CueProgram::compile(&program).expect("the program is policy CUE"));
}

#[divan::bench(args = RULES)]
fn run(bencher: Bencher<'_, '_>, rule: &str) {
    let (program, output) = rendered(rule);
    let program = CueProgram::compile(&program).expect("the program is policy CUE");
    let inputs = CueInputs::new().with_input("data", &DATA);
    bencher.bench(|| {
        let answer = program.evaluate(&inputs, output, &CueBudget::default());
        answer
            .expect("the program succeeds")
            .expect("the program has the output")
    });
}
