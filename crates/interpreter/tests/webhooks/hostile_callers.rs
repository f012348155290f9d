//! Misbehaving callers and failing handlers.

use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use interpreter::{
    Answer, Operation, Question,
    webhook::server::{AddInterpreterError, InterpreterServer},
};
use serde_json::{Value, json};

use crate::served::workload;

fn server() -> InterpreterServer {
    InterpreterServer::new()
        .handle(
            "/",
            &[Operation::InterpretHealth],
            async |request, _| match request.name.as_str() {
                "panics" => panic!("on request"),
                "hangs" => std::future::pending().await,
                "fails" => Err("no database"),
                "other" => Ok(Answer::Component(vec![])),
                _ => Ok(Answer::Health(true)),
            },
        )
        .unwrap()
}

async fn read_response(response: Response<Full<Bytes>>) -> (u16, String) {
    let (parts, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    (parts.status.as_u16(), String::from_utf8(body.to_vec()).unwrap())
}

fn post(path: &str, content_type: &str, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    let request = Request::post(path).header("content-type", content_type);
    request.body(Full::new(body.into())).unwrap()
}

fn request_json(name: &str, operation: &str) -> Value {
    json!({"request": {
        "uid": "u1", "kind": {"group": "", "version": "v1", "kind": "Pod"}, "name": name,
        "operation": operation, "object": {"kind": "Pod"},
    }})
}

#[tokio::test]
async fn an_invalid_request_gets_an_http_error() {
    let server = server();
    let mut get = post("/", "application/json", "");
    *get.method_mut() = Method::GET;
    for (request, expected) in [
        (get, (405, "only POST is supported")),
        (post("/none", "application/json", "{}"), (404, "not found")),
        (
            post("/", "text/plain", "{}"),
            (415, "Content-Type must be application/json"),
        ),
        (
            post("/", "application/jsonx", "{}"),
            (415, "Content-Type must be application/json"),
        ),
        (
            post("/", "application/json", "{"),
            (
                400,
                "the request is not JSON: EOF while parsing an object at line 1 column 1",
            ),
        ),
        (
            post("/", "application/json", "{}"),
            (400, "request.uid: is missing"),
        ),
        (
            post("/", "application/json", "[]"),
            (400, "request.uid: is missing"),
        ),
        (
            post("/", "application/json", vec![b' '; (20 << 20) + 1]),
            (400, "cannot read the request: larger than 20 MiB"),
        ),
        (
            post(
                "/?timeout=50ms",
                "application/json",
                request_json("hangs", "InterpretHealth").to_string(),
            ),
            (504, "timed out"),
        ),
    ] {
        let (status, body) = read_response(server.answer(request).await).await;
        assert_eq!((status, body.as_str()), expected);
    }
}

#[tokio::test]
async fn every_response_has_the_uid_of_its_request() {
    let server = server();
    let mut other_type = request_json("a", "InterpretHealth");
    other_type["kind"] = "AdmissionReview".into();
    other_type["apiVersion"] = "admission.k8s.io/v1".into();
    for (request, code, message) in [
        (
            request_json("panics", "InterpretHealth"),
            500,
            "the handler panicked",
        ),
        (request_json("fails", "InterpretHealth"), 500, "no database"),
        (
            request_json("other", "InterpretHealth"),
            500,
            "the answer does not fit the operation InterpretHealth",
        ),
        (request_json("a", "Retain"), 404, "no handler for Retain at /"),
        (
            request_json("a", "Prune"),
            400,
            "request.operation: unknown variant `Prune`, ",
        ),
        (json!({"request": {"uid": "u1"}}), 400, "request"),
        (
            other_type,
            400,
            "the response is a \"AdmissionReview\" of \"admission.k8s.io/v1\", not a ",
        ),
    ] {
        let request = post("/", "application/json; charset=utf-8", request.to_string());
        let (status, body) = read_response(server.answer(request).await).await;
        assert_eq!(status, 200);
        let response: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(response["kind"], "ResourceInterpreterContext");
        let response = &response["response"];
        assert_eq!(
            (&response["uid"], &response["successful"]),
            (&json!("u1"), &json!(false))
        );
        assert_eq!(response["status"]["code"], code);
        let told = response["status"]["message"].as_str().unwrap();
        assert!(told.starts_with(message), "{told}");
    }
    let request = post(
        "/",
        "application/json",
        request_json("a", "InterpretHealthy").to_string(),
    );
    let (_, body) = read_response(server.answer(request).await).await;
    let response: Value = serde_json::from_str(&body).unwrap();
    let expected = json!({"uid": "u1", "successful": true, "status": {"code": 200}, "healthy": true});
    assert_eq!(response["response"], expected);
}

#[tokio::test]
async fn a_handler_can_be_called_directly() {
    let server = server();
    let mut object = workload();
    for (name, expected) in [
        ("a", Ok(Answer::Health(true))),
        ("fails", Err("the webhook failed with status 500: no database")),
    ] {
        object["metadata"]["name"] = name.into();
        let asked = server
            .call_directly("/", Question::Health { object: &object })
            .await;
        assert_eq!(
            asked.map_err(|error| error.to_string()),
            expected.map_err(ToOwned::to_owned)
        );
    }
    let asked = server
        .call_directly("/none", Question::Health { object: &object })
        .await;
    assert_eq!(
        asked.unwrap_err().to_string(),
        "answered 404 Not Found: not found"
    );
}

#[test]
fn invalid_handlers_are_rejected() {
    let answers = |path: &str, operations: &[Operation]| {
        server().handle(path, operations, async |_, _| {
            Ok::<_, String>(Answer::Health(true))
        })
    };
    assert_eq!(
        answers("a", &[]).unwrap_err(),
        AddInterpreterError::Path("a".into())
    );
    assert_eq!(
        answers("/", &[Operation::Retain, Operation::InterpretHealth]).unwrap_err(),
        AddInterpreterError::Duplicate {
            operation: Operation::InterpretHealth,
            path: "/".into()
        }
    );
    assert!(answers("/other", &Operation::ALL).is_ok());
}
