//! Outcomes of calls.

use runtime_hooks::{
    client::CallOptions,
    cluster_api::{BeforeClusterUpgrade, BeforeClusterUpgradeRequest},
};
use test_authority::TestAuthority;

use crate::extension::{Extension, call};

#[tokio::test]
async fn handlers_are_discovered_and_called() {
    let authority = TestAuthority::new("first");
    let server = Extension::start(&authority, None).await;
    let client = server.client(&authority.pem(), None).await;
    let names = client.handlers::<BeforeClusterUpgrade>("default").await.unwrap();
    let expected = ["fails", "hangs-ignored", "hangs", "odd", "panics", "says", "slow"];
    assert_eq!(names, expected.map(|name| format!("{name}.ext1")));
    for (handler, expected) in [
        ("says", Ok("v2 green 0")),
        ("slow", Ok("at last")),
        // A reported failure is independent of the failure policy.
        ("fails", Err("got failure response with message: no database")),
        ("odd", Err("got unknown response status \"Maybe\" with message: ")),
        (
            "panics",
            Err("got failure response with message: handler panicked"),
        ),
        ("hangs-ignored", Ok("")),
    ] {
        let error = |problem| format!("failed to call extension handler \"{handler}.ext1\": {problem}");
        let expected = expected.map(ToOwned::to_owned).map_err(error);
        assert_eq!(call(&client, handler).await, expected);
    }
    assert!(call(&client, "hangs").await.is_err());
}

#[tokio::test]
async fn an_oversized_request_is_reported() {
    let authority = TestAuthority::new("first");
    let server = Extension::start(&authority, None).await;
    let client = server.client(&authority.pem(), None).await;
    for (length, expected) in [
        (19 << 20, None),
        (21 << 20, Some("error reading request: larger than 20 MiB")),
        (35 << 20, Some("error reading request: larger than 20 MiB")),
    ] {
        let mut request = BeforeClusterUpgradeRequest::default();
        request.settings.insert("long".into(), "a".repeat(length));
        let options = CallOptions::default();
        let called = client.call::<BeforeClusterUpgrade>("says.ext1", "default", &request, options);
        let outcome = called.await.map(drop).map_err(|error| error.to_string());
        let expected = expected.map_or(Ok(()), |message| {
            let handler = "failed to call extension handler \"says.ext1\"";
            Err(format!("{handler}: got failure response with message: {message}"))
        });
        assert_eq!(outcome, expected, "{length}");
    }
}
