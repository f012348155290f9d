//! Misbehaving servers.

use std::time::Instant;

use super::*;

#[tokio::test]
async fn no_answer_takes_longer_than_the_timeout() {
    for reply in [Reply::Silence, Reply::Drip] {
        let mut bed = Bed::new();
        let brief = Handler {
            timeout_seconds: Some(1),
            ..handler("x")
        };
        let first = bed.with("a", vec![brief], reply.clone()).await;
        let second = bed.with("b", vec![handler("x")], success()).await;
        let client = bed.client();
        let started = Instant::now();
        let failed = call_all(&client, CallOptions::default()).await.unwrap_err();
        assert!(
            failed.starts_with("failed to call extension handler \"x.a\": no answer within "),
            "{failed}"
        );
        let took = started.elapsed();
        assert!(
            took >= Duration::from_millis(900) && took < Duration::from_secs(10),
            "{reply:?}: {took:?}"
        );
        assert_eq!(
            (first.hits(), second.hits()),
            (1, 0),
            "later handlers are not called"
        );
    }
}

#[tokio::test]
async fn all_calls_end_within_the_budget() {
    let mut bed = Bed::new();
    for name in ["a", "b", "c"] {
        bed.with(name, vec![ignoring("x")], Reply::Silence).await;
    }
    let last = bed.with("d", vec![handler("x")], success()).await;
    let client = bed.client();
    let options = CallOptions {
        budget: Some(Duration::from_millis(1500)),
        ..<_>::default()
    };
    let started = Instant::now();
    let failed = call_all(&client, options).await.unwrap_err();
    assert_eq!(
        failed,
        "failed to call extension handler \"x.d\": no time left in the budget"
    );
    assert!(started.elapsed() < Duration::from_secs(10));
    assert_eq!(last.hits(), 0);
}

#[tokio::test]
async fn a_large_answer_is_not_read_beyond_the_limit() {
    let mut bed = Bed::new();
    bed.with("a", vec![handler("x"), ignoring("y")], Reply::Large(21 << 20))
        .await;
    let client = bed.client();
    let failed = call(&client, "x.a").await.unwrap_err();
    assert_eq!(
        failed,
        "failed to call extension handler \"x.a\": the answer is larger than 20971520 bytes"
    );
    call(&client, "y.a").await.unwrap();
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let mut bed = Bed::new();
    let target = bed.with("b", vec![], success()).await;
    let to = format!("https://b.system.svc:{}/", target.address.port());
    bed.with("a", vec![handler("x")], Reply::Redirect(to)).await;
    let failed = call(&bed.client(), "x.a").await.unwrap_err();
    assert_eq!(failed, "failed to call extension handler \"x.a\": HTTP 302 Found");
    assert_eq!(target.hits(), 0);
}

#[tokio::test]
async fn each_server_is_verified_by_its_name_and_bundle() {
    let mut bed = Bed::new();
    let servers: Vec<Stub> = {
        let mut servers = Vec::new();
        for name in ["a", "b", "c", "d"] {
            servers.push(bed.with(name, vec![handler("x")], success()).await);
        }
        servers
    };
    let client = bed.client();
    let calls = (0..100).map(|call_number| {
        let name = ["x.a", "x.b", "x.c", "x.d"][call_number % 4];
        call(&client, name)
    });
    let called = futures::future::join_all(calls).await;
    assert!(called.iter().all(Result::is_ok));
    for (stub, name) in servers.iter().zip(["a", "b", "c", "d"]) {
        let expected = format!("{name}.system.svc");
        assert!(stub.called.lock().iter().all(|called| *called == expected));
        assert_eq!(stub.hits(), 25);
    }
    // A server at another's address is not trusted, although its own trust bundle would verify it.
    let mut names = bed.names.clone();
    names.0.insert("a.system.svc".into(), servers[1].address);
    let swapped = Bed {
        registry: bed.registry.clone(),
        names,
    };
    let failed = call(&swapped.client(), "x.a").await.unwrap_err();
    assert!(
        failed.contains("cannot connect: invalid peer certificate"),
        "{failed}"
    );
}

#[tokio::test]
async fn a_bundle_with_two_cas_trusts_both() {
    let mut bed = Bed::new();
    let old = bed.with("a", vec![handler("x")], success()).await;
    let new = Stub::start("a.system.svc", success()).await;
    let both = format!("{}{}", old.ca_bundle, new.ca_bundle);
    bed.registry
        .register(Bed::config("a", &both), vec![handler("x")])
        .unwrap();
    call(&bed.client(), "x.a").await.unwrap();
    bed.names.0.insert("a.system.svc".into(), new.address);
    call(&bed.client(), "x.a").await.unwrap();
    assert_eq!((old.hits(), new.hits()), (1, 1));
}

#[tokio::test]
async fn connections_are_reused() {
    let mut bed = Bed::new();
    let stub = bed.with("a", vec![handler("x")], success()).await;
    let client = bed.client();
    for _ in 0..20 {
        call(&client, "x.a").await.unwrap();
    }
    assert_eq!((stub.hits(), stub.called.lock().len()), (20, 1));
    client.transport.forget_connections();
    call(&client, "x.a").await.unwrap();
    assert_eq!(stub.called.lock().len(), 2);
}

#[tokio::test]
async fn an_unresponsive_server_is_not_called_for_a_while() {
    let mut bed = Bed::new();
    let stub = bed
        .with(
            "a",
            vec![handler("x"), ignoring("y")],
            Reply::Text(StatusCode::BAD_GATEWAY, String::new()),
        )
        .await;
    let breaker = CircuitBreaker {
        failures: 2,
        pause: Duration::from_millis(300),
        longest_pause: Duration::from_secs(1),
    };
    let client = bed.client().with_circuit_breaker(Some(breaker));
    for _ in 0..10 {
        call(&client, "x.a").await.unwrap_err();
    }
    let failed = call(&client, "x.a").await.unwrap_err();
    assert!(
        failed.contains("its server did not answer, next call in 0."),
        "{failed}"
    );
    call(&client, "y.a").await.unwrap();
    assert_eq!(stub.hits(), 2);
    stub.set(success());
    tokio::time::sleep(Duration::from_millis(400)).await;
    call(&client, "x.a").await.unwrap();
    assert_eq!(stub.hits(), 3);
}

#[tokio::test]
async fn only_idempotent_hooks_are_retried() {
    /// A hook that is not idempotent.
    struct Once;

    impl Hook for Once {
        type Request = BeforeClusterCreateRequest;
        type Response = BeforeClusterCreateResponse;
        const GROUP: &'static str = "hooks.example.com";
        const VERSION: &'static str = "v1";
        const NAME: &'static str = "Once";
    }

    let mut bed = Bed::new();
    let once = Handler {
        hook: Once::reference(),
        ..handler("once")
    };
    let stub = bed.with("a", vec![handler("x"), once], Reply::Close).await;
    let mut catalog = Catalog::cluster_api();
    catalog.register::<Once>().unwrap();
    let client = HookClient {
        catalog: Arc::new(catalog),
        ..bed.client()
    };
    const { assert!(BeforeClusterCreate::METADATA.idempotent) };
    let failed = call(&client, "x.a").await.unwrap_err();
    assert!(
        failed.contains("the connection ended without an answer"),
        "{failed}"
    );
    assert_eq!(stub.hits(), 3);
    let called = client
        .call::<Once>("once.a", "", &<_>::default(), CallOptions::default())
        .await;
    called.unwrap_err();
    assert_eq!(stub.hits(), 4);
}
