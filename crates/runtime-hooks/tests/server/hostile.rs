//! Any request gets a response.

use http::{Method, Request};
use http_body_util::Full;
use hyper::body::Bytes;
use proptest::prelude::*;
use runtime_hooks::server::HookServer;
use serde_json::{Map, Value};
use tokio::runtime::{Builder, Runtime};

use crate::fixture::{DISCOVERY, FIRST, echo, send};

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().build().unwrap()
}

/// Sends a request; returns the message if a handler answered.
fn handler_message(server: &HookServer, request: Request<Full<Bytes>>) -> Option<String> {
    let answer = runtime().block_on(send(server, request));
    match answer.status.as_u16() {
        200 => Some(answer.outcome().0),
        status => {
            assert!(matches!(status, 404 | 405), "{status}");
            None
        }
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    let field = prop_oneof![
        "(?i)settings|cluster|kind|apiVersion|fromKubernetesVersion|toKubernetesVersion|metadata|name|workersUpgrades",
        ".{0,6}",
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((field.clone(), inner), 0..6)
                .prop_map(|fields| Value::Object(Map::from_iter(fields))),
        ]
    })
}

proptest! {
    #[test]
    fn any_bytes_get_a_response(body in prop::collection::vec(any::<u8>(), 0..200), path in "first|discovery") {
        let path = if path == "first" { FIRST } else { DISCOVERY };
        let request = Request::post(path).body(Full::from(body)).unwrap();
        prop_assert!(handler_message(&echo(), request).is_some());
    }

    #[test]
    fn any_json_gets_a_response(body in any_json()) {
        let request = Request::post(FIRST).body(Full::from(body.to_string())).unwrap();
        let status = handler_message(&echo(), request).unwrap();
        prop_assert!(status == "Success" || status == "Failure");
        prop_assert!(status == "Failure" || body.is_object() || body.is_null());
    }

    #[test]
    fn damaged_json_gets_a_response(body in any_json(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut damaged = body.to_string().into_bytes();
        let at = at.index(damaged.len());
        let cut = damaged[..at].to_vec();
        damaged[at] = byte;
        for body in [cut, damaged] {
            let request = Request::post(FIRST).body(Full::from(body)).unwrap();
            prop_assert!(handler_message(&echo(), request).is_some());
        }
    }

    #[test]
    fn any_path_and_method_gets_a_response(method in "[A-Z]{1,8}|POST", path in "/[!-~]{0,60}", timeout in "[!-~]{0,12}") {
        for uri in [path.clone(), format!("{FIRST}?timeout={timeout}"), format!("{FIRST}{path}")] {
            let method: Method = method.parse().unwrap();
            if let Ok(request) = Request::builder().method(method).uri(uri).body(Full::from("{}")) {
                handler_message(&echo(), request);
            }
        }
    }
}
