//! A thousand extensions, some of which are dead, slow, lying or dripping.

use std::time::Instant;

use super::*;

/// The behaviours that every tenth extension takes in turn.
const WRONG: [fn() -> Option<Reply>; 4] = [
    || None,
    || Some(Reply::Silence),
    || Some(Reply::Json(json!({"status": "Lie", "message": "x"}))),
    || Some(Reply::Drip),
];

const EXTENSIONS: usize = 1000;

/// How far a call may exceed its budget, since tests share few cores.
const LATE: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_extensions_do_not_delay_each_other() {
    let mut bed = Bed::new();
    let good = Stub::start("*.system.svc", success()).await;
    let mut bad = Vec::new();
    for wrong in WRONG {
        bad.push(match wrong() {
            Some(reply) => Some(Stub::start("*.system.svc", reply).await),
            None => None,
        });
    }
    for number in 0..EXTENSIONS {
        let name = format!("ext-{number}");
        let is_wrong = number % 10 == 0;
        let stub = match is_wrong {
            true => &bad[number / 10 % bad.len()],
            false => &Some(good.clone()),
        };
        let brief = |handler| Handler {
            timeout_seconds: Some(1),
            ..handler
        };
        let handler = if is_wrong {
            brief(ignoring("x"))
        } else {
            handler("x")
        };
        let ca_bundle = stub.as_ref().map_or(&good.ca_bundle, |stub| &stub.ca_bundle);
        // Port 9 is closed.
        let address = stub
            .as_ref()
            .map_or(([127, 0, 0, 1], 9).into(), |stub| stub.address);
        bed.names.0.insert(format!("{name}.system.svc"), address);
        bed.registry
            .register(Bed::config(&name, ca_bundle), vec![handler])
            .unwrap();
    }
    assert_eq!(bed.registry.handlers().unwrap().len(), EXTENSIONS);
    let client = bed.client();

    // An invalid status is never ignored: it fails the whole call, in any order.
    let budget = Duration::from_secs(20);
    let options = CallOptions {
        budget: Some(budget),
        order: CallOrder::Concurrent(64),
        ..<_>::default()
    };
    let started = Instant::now();
    let failed = call_all(&client, options).await.unwrap_err();
    assert!(failed.contains("got unknown response status \"Lie\""), "{failed}");
    assert!(started.elapsed() < budget + LATE);

    // Without invalid statuses the call succeeds: failures of dead, slow and dripping servers are ignored by their policy.
    for number in (0..EXTENSIONS).filter(|number| number % 40 == 20) {
        bed.registry.remove(&format!("ext-{number}"));
    }
    let before = good.hits();
    let started = Instant::now();
    call_all(&client, options).await.unwrap();
    assert!(started.elapsed() < budget + LATE);
    assert_eq!(
        good.hits() - before,
        EXTENSIONS / 10 * 9,
        "each healthy handler is called once"
    );

    // Sequential calls exceed the budget, because each slow server takes a second.
    let options = CallOptions {
        budget: Some(Duration::from_secs(3)),
        ..<_>::default()
    };
    let client = client.with_circuit_breaker(None);
    let started = Instant::now();
    let _ = call_all(&client, options).await;
    assert!(started.elapsed() < Duration::from_secs(3) + LATE);
}
