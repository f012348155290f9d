//! Measures planning patches for targets, and encoding and parsing trust bundles: `cargo bench -p
//! windlass-trust`.

#![expect(clippy::expect_used, reason = "a benchmark fails if its setup fails")]

use divan::{AllocProfiler, Bencher, black_box};
use jiff::{SignedDuration, Timestamp};
use rcgen::KeyPair;
use serde_json::{Value, json};
use windlass_trust::{
    injection::{CaRequests, Injection, InjectionScope, TargetKinds},
    pki::{CertificateAuthority, DnsNames, Terms, Validity},
    trust_bundle::TrustBundle,
};

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

const KINDS: [&str; 2] = ["CustomResourceDefinition", "ValidatingWebhookConfiguration"];

fn main() {
    divan::main();
}

fn names() -> DnsNames {
    DnsNames::for_service("hook", "system", &[]).expect("both are valid names")
}

fn bundle(generations: &[u32]) -> TrustBundle {
    let now = Timestamp::UNIX_EPOCH;
    let terms = Terms {
        serial: [1; 16],
        now,
        validity: Validity {
            not_before: now,
            not_after: now + SignedDuration::from_hours(24 * 365),
        },
    };
    let roots = generations.iter().map(|generation| {
        let key = KeyPair::generate().expect("the system provides randomness");
        let ca = CertificateAuthority::self_signed(&names(), *generation, key.into(), &terms);
        ca.expect("the terms are valid").certificate().clone()
    });
    TrustBundle::new(roots).expect("a small bundle")
}

fn injection() -> Injection {
    Injection::new(
        bundle(&[1, 2]),
        InjectionScope::everything().with_servers(names()),
    )
}

/// A target without a trust bundle.
fn target(kind: &str) -> Value {
    let client_config = json!({"service": {"namespace": "system", "name": "hook", "port": 443}});
    let metadata = json!({"name": "target", "annotations": {"windlass.dev/inject-ca-from": "system/hook"}});
    if kind == KINDS[0] {
        let conversion = json!({"strategy": "Webhook", "webhook": {"clientConfig": client_config}});
        return json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": kind, "metadata": metadata,
            "spec": {"conversion": conversion},
        });
    }
    let webhooks =
        (0..5).map(|number| json!({"name": format!("{number}.example.com"), "clientConfig": client_config}));
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": metadata,
        "webhooks": webhooks.collect::<Vec<_>>(),
    })
}

/// A target with the trust bundle of `injection`.
fn injected(kind: &str, injection: &Injection) -> Value {
    let mut target = target(kind);
    let patch = injection.plan(&target).expect("no other controller manages it");
    json_patch::patch(&mut target, &patch.expect("it has no bundle yet")).expect("it is unchanged");
    target
}

#[divan::bench(args = KINDS)]
fn plan_for_a_target_with_the_bundle(bencher: Bencher<'_, '_>, kind: &str) {
    let injection = injection();
    let target = injected(kind, &injection);
    bencher.bench(|| injection.plan(black_box(&target)));
}

#[divan::bench(args = KINDS)]
fn plan_for_a_target_with_another_bundle(bencher: Bencher<'_, '_>, kind: &str) {
    let injection = injection();
    let target = injected(kind, &self::injection());
    bencher.bench(|| injection.plan(black_box(&target)));
}

#[divan::bench(args = KINDS)]
fn requests_of_a_target(bencher: Bencher<'_, '_>, kind: &str) {
    let (target, kinds) = (target(kind), TargetKinds::default());
    bencher.bench(|| CaRequests::from_object(black_box(&target), &kinds));
}

#[divan::bench(args = [1, 2, 10])]
fn combine_certificates(bencher: Bencher<'_, '_>, count: u32) {
    let certificates = bundle(&(0..count).collect::<Vec<_>>()).certificates().to_vec();
    bencher
        .with_inputs(|| certificates.clone())
        .bench_values(TrustBundle::new);
}

#[divan::bench(args = [1, 2, 10])]
fn read_a_foreign_bundle(bencher: Bencher<'_, '_>, count: u32) {
    let pem = bundle(&(0..count).collect::<Vec<_>>()).to_pem();
    bencher.bench(|| TrustBundle::from_foreign_pem(black_box(pem.as_bytes())));
}
