//! Cost of index updates and of target lookups: `cargo bench -p windlass-cluster`.

use divan::{AllocProfiler, Bencher, black_box};
use serde_json::{Value, json};
use windlass_cluster::{Index, kinds, watch::Watch};
use windlass_object::{ObjectKey, names};
use windlass_trust::injection::CaSource;

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

/// The number of subscribed controllers.
const LISTENERS: usize = 4;

fn main() {
    divan::main();
}

fn watch() -> Watch {
    Watch::all(kinds::VALIDATING_WEBHOOK_CONFIGURATION)
}

/// A configuration of five webhooks with a CA bundle of two certificates.
fn target(number: usize) -> Value {
    let webhooks = (0..5).map(|webhook| {
        json!({
            "name": format!("{webhook}.example.com"), "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {
                "service": {"namespace": "system", "name": "hook", "port": 443, "path": "/validate"},
                "caBundle": "A".repeat(1600),
            },
            "rules": [{"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["widgets"]}],
        })
    });
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": format!("target-{number}"), "annotations": {names::INJECT_CA_FROM: "system/hook"}},
        "webhooks": webhooks.collect::<Vec<_>>(),
    })
}

fn index(targets: usize) -> Index {
    let index = Index::new();
    for number in 0..targets {
        index.apply(&watch(), target(number));
    }
    index
}

#[divan::bench(args = [10, 10_000])]
fn update_one(bencher: Bencher<'_, '_>, targets: usize) {
    let (index, watch) = (index(targets), watch());
    bencher
        .with_inputs(|| target(7))
        .bench_local_values(|changed| index.apply(&watch, changed));
}

/// Every controller compares the old and the new object.
#[divan::bench(args = [10, 10_000])]
fn update_and_notify(bencher: Bencher<'_, '_>, targets: usize) {
    let (index, watch) = (index(targets), watch());
    let mut listeners: Vec<_> = (0..LISTENERS).map(|_| index.subscribe()).collect();
    bencher.with_inputs(|| target(7)).bench_local_values(|changed| {
        index.apply(&watch, changed);
        for listener in &mut listeners {
            let change = listener.try_recv();
            black_box(change.map(|change| change.differs_in(&["/webhooks"])).ok());
        }
    });
}

#[divan::bench(args = [10, 10_000])]
fn find_one(bencher: Bencher<'_, '_>, targets: usize) {
    let index = index(targets);
    let key: ObjectKey = kinds::VALIDATING_WEBHOOK_CONFIGURATION.object(None, "target-7");
    bencher.bench(|| index.find(black_box(&key)));
}

#[divan::bench(args = [10, 10_000])]
fn find_requesting_targets(bencher: Bencher<'_, '_>, targets: usize) {
    let index = index(targets);
    let source = CaSource::ServingCertificate {
        namespace: "system".to_owned(),
        name: "hook".to_owned(),
    };
    bencher.bench(|| index.targets(black_box(&source)));
}
