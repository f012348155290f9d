//! All operations over TLS, with the server name and trust bundle of the configuration.

use std::{collections::BTreeSet, net::SocketAddr, sync::Arc};

use http::{HeaderMap, Method, Response, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use interpreter::{
    Answer, Operation, ResourceInterpreter,
    answer::{Component, DependentObjectReference},
    question::AggregatedStatusItem,
    webhook::server::{InterpreterServer, webhook_transport::server::ConnectedClient},
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use test_authority::TestAuthority;

use crate::served::{Served, ask, health, replace, webhook, workload};

/// Karmada's example (`examples/customresourceinterpreter`), extended by the other operations.
fn example() -> InterpreterServer {
    InterpreterServer::new()
        .handle("/interpreter-workload", &Operation::ALL, async |request, _| {
            let object = request.object.into_owned();
            let replicas = object["spec"]["replicas"].as_i64().unwrap_or_default();
            let replicas = i32::try_from(replicas).map_err(|error| error.to_string())?;
            let with = |pointer: &str, value: Value| {
                let mut object = object.clone();
                *object.pointer_mut(pointer).unwrap() = value;
                Answer::Object(object)
            };
            Ok::<_, String>(match request.operation {
                Operation::InterpretReplica => Answer::Replica {
                    replicas,
                    requirements: None,
                },
                Operation::InterpretComponent => Answer::Component(vec![Component {
                    name: "main".into(),
                    replicas,
                    replica_requirements: None,
                }]),
                Operation::ReviseReplica => with("/spec/replicas", request.desired_replicas.into()),
                Operation::Retain => with("/spec", request.observed_object.unwrap()["spec"].clone()),
                Operation::AggregateStatus => {
                    let ready = request.aggregated_status.iter();
                    let ready = ready.filter_map(|item| item.status.as_ref()?["readyReplicas"].as_i64());
                    with("/status/readyReplicas", ready.sum::<i64>().into())
                }
                Operation::InterpretStatus => Answer::Status(Some(object["status"].clone())),
                Operation::InterpretHealth => {
                    Answer::Health(object["status"]["readyReplicas"] == object["spec"]["replicas"])
                }
                Operation::InterpretDependency => Answer::Dependency(vec![DependentObjectReference {
                    api_version: "v1".into(),
                    kind: "Secret".into(),
                    name: Some("s".into()),
                    ..DependentObjectReference::default()
                }]),
            })
        })
        .unwrap()
}

#[tokio::test]
async fn every_operation_is_answered_over_tls() {
    let authority = TestAuthority::new("first");
    let server = Served::start(&authority, example()).await;
    let interpreter = server.interpreter(&authority.pem(), "/interpreter-workload");
    let object = workload();
    assert_eq!(interpreter.replicas(&object).await.unwrap(), Some((2, None)));
    assert_eq!(
        interpreter.components(&object).await.unwrap().unwrap()[0].name,
        "main"
    );
    let revised = interpreter.revise_replicas(&object, 5).await.unwrap();
    assert_eq!(revised["spec"]["replicas"], 5);
    let observed = json!({"spec": {"replicas": 2, "paused": true}});
    let retained = interpreter.retain(&object, &observed).await.unwrap();
    assert_eq!(retained["spec"], observed["spec"]);
    assert_eq!(
        interpreter.retain(&object, &object).await.unwrap(),
        object,
        "no patch"
    );
    let items = [1, 3].map(|ready| AggregatedStatusItem {
        status: Some(json!({"readyReplicas": ready})),
        ..AggregatedStatusItem::default()
    });
    let aggregated = interpreter.aggregate_status(&object, &items).await.unwrap();
    assert_eq!(aggregated["status"]["readyReplicas"], 4);
    assert_eq!(
        interpreter.status(&object).await.unwrap(),
        Some(json!({"readyReplicas": 2}))
    );
    assert_eq!(health(&interpreter).await, Ok(true));
    assert_eq!(interpreter.dependencies(&object).await.unwrap().len(), 1);
}

#[tokio::test]
async fn the_ca_bundle_verifies_the_server() {
    let [authority, other] = ["first", "second"].map(TestAuthority::new);
    let server = Served::start(&authority, example()).await;
    let path = "/interpreter-workload";
    let both = format!("{}{}", other.pem(), authority.pem());
    for (bundle, is_trusted) in [
        (authority.pem(), true),
        (both, true),
        (other.pem(), false),
        // The system's root certificates do not include the test CA.
        (String::new(), false),
    ] {
        let said = health(&server.interpreter(&bundle, path)).await;
        assert_eq!(said.is_ok(), is_trusted, "{said:?}");
        if let Err(error) = said {
            assert!(error.starts_with("cannot connect: "), "{error}");
        }
    }
    // A Service or URL with a name that is not in the certificate.
    let webhooks = server.webhooks();
    let mut hook = webhook("a.example.com", &authority.pem(), path);
    for client_config in [
        json!({"service": {"namespace": "other", "name": "webhook", "path": path}}),
        json!({"url": format!("https://other.example.com{path}")}),
    ] {
        let bundle = hook["clientConfig"]["caBundle"].clone();
        hook["clientConfig"] = client_config;
        hook["clientConfig"]["caBundle"] = bundle;
        replace(&webhooks, std::slice::from_ref(&hook));
        let error = health(&ask(webhooks.clone())).await.unwrap_err();
        assert!(
            error.contains("cannot connect: invalid peer certificate"),
            "{error}"
        );
    }
    let url = format!("https://{}{path}", crate::served::NAME);
    hook["clientConfig"] = json!({"url": url, "caBundle": hook["clientConfig"]["caBundle"]});
    replace(&webhooks, &[hook]);
    assert_eq!(health(&ask(webhooks)).await, Ok(true));
}

#[tokio::test]
async fn one_connection_serves_all_paths_of_a_server_and_bundle() {
    let authority = TestAuthority::new("first");
    let seen = Arc::new(Mutex::new(BTreeSet::<SocketAddr>::new()));
    let mut server = InterpreterServer::new();
    for path in ["/a", "/b"] {
        let seen = seen.clone();
        let handler = move |_, call: interpreter::webhook::server::InterpreterCall| {
            let client = call.extensions.get::<ConnectedClient>().unwrap();
            seen.lock().insert(client.address);
            std::future::ready(Ok::<_, String>(Answer::Health(true)))
        };
        server = server
            .handle(path, &[Operation::InterpretHealth], handler)
            .unwrap();
    }
    let server = Served::start(&authority, server).await;
    let webhooks = server.webhooks();
    let interpreter = ask(webhooks.clone());
    let bundle = authority.pem();
    for turn in 0..20 {
        let path = if turn % 2 == 0 { "/a" } else { "/b" };
        replace(&webhooks, &[webhook("a.example.com", &bundle, path)]);
        assert_eq!(health(&interpreter).await, Ok(true));
    }
    assert_eq!(seen.lock().len(), 1);
    // A different trust bundle gets its own connection.
    let another = format!("{bundle}{}", TestAuthority::new("second").pem());
    replace(&webhooks, &[webhook("a.example.com", &another, "/a")]);
    assert_eq!(health(&interpreter).await, Ok(true));
    assert_eq!(seen.lock().len(), 2);
}

#[tokio::test]
async fn customizations_are_served_as_a_webhook() {
    let authority = TestAuthority::new("first");
    let customizations = interpreter::customization::Customizations::default();
    customizations.replace(&[json!({
        "apiVersion": "interpretation.windlass.dev/v1alpha1", "kind": "ResourceInterpretation",
        "metadata": {"name": "workloads"},
        "spec": {
            "targets": [{"apiVersion": "workload.example.io/v1alpha1", "kind": "Workload"}],
            "customizations": {"replicaResource": {"replicasPath": ".spec.replicas"}},
        },
    })]);
    let served = ResourceInterpreter::new(vec![Arc::new(customizations)]);
    let server = InterpreterServer::new()
        .handle_with("/", &Operation::ALL, served)
        .unwrap();
    let server = Served::start(&authority, server).await;
    let interpreter = server.interpreter(&authority.pem(), "/");
    assert_eq!(interpreter.replicas(&workload()).await.unwrap().unwrap().0, 2);
    assert_eq!(
        health(&interpreter).await.unwrap_err(),
        "the webhook failed with status 500: no interpreter answers InterpretHealth of Workload"
    );
}

#[tokio::test]
async fn the_http_request_is_that_of_karmada() {
    type Sent = (Method, Uri, HeaderMap, Value);
    let authority = TestAuthority::new("first");
    let sent = Arc::new(Mutex::new(Vec::<Sent>::new()));
    let noted = sent.clone();
    let server = Served::start_raw(&authority, move |request| {
        let noted = noted.clone();
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            let body: Value = serde_json::from_slice(&body).unwrap();
            let response = json!({"uid": body["request"]["uid"], "successful": true, "healthy": true});
            noted.lock().push((parts.method, parts.uri, parts.headers, body));
            let said = json!({"response": response}).to_string();
            Response::new(Full::new(Bytes::from(said)).boxed_unsync())
        }
    })
    .await;
    let interpreter = server.interpreter(&authority.pem(), "/interpreter-workload");
    for _ in 0..2 {
        assert_eq!(health(&interpreter).await, Ok(true));
    }
    let sent = sent.lock();
    for (method, uri, headers, body) in &*sent {
        assert_eq!(method, Method::POST);
        assert_eq!(uri.path_and_query().unwrap(), "/interpreter-workload?timeout=1s");
        assert_eq!(headers["content-type"], "application/json");
        assert_eq!(body["apiVersion"], "config.karmada.io/v1alpha1");
        assert_eq!(body["kind"], "ResourceInterpreterContext");
        let uid = body["request"]["uid"].as_str().unwrap();
        assert_eq!((uid.len(), uid.as_bytes()[14]), (36, b'4'), "{uid}");
    }
    assert_ne!(sent[0].3["request"]["uid"], sent[1].3["request"]["uid"]);
}
