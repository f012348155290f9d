//! Calls over TLS, with credentials from Secrets.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use kube::client::Body;
use policy::{
    Answers, DataReference, FetchedAnswer, HttpRequest,
    api::{HttpAuth, HttpMethod, SecretReference},
};
use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use serde_json::{Value, json};
use test_authority::TestAuthority;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::Instant,
};
use tokio_rustls::TlsAcceptor;
use tower::{BoxError, service_fn};
use windlass_cluster::{Cluster, SystemClock};

use super::{ReferenceOptions, ReferenceReading, References};

const LONG: Duration = Duration::from_secs(20);

/// The token for `/`, and the password for `/token`.
const TOKEN: &str = "s3cr3t";
const PASSWORD: &str = "pa55word";

/// Serves TLS with a certificate that `authority` issued for `names`: `/` to clients with [`TOKEN`], and
/// `/token` to clients with [`PASSWORD`].
async fn serve(authority: &TestAuthority, names: &[&str]) -> SocketAddr {
    let issued = authority.server(names);
    let tls = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(issued.certificate.as_bytes()).unwrap()],
            PrivateKeyDer::from_pem_slice(issued.key.as_bytes()).unwrap(),
        )
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(acceptor.clone(), stream));
        }
    });
    address
}

async fn answer(acceptor: TlsAcceptor, stream: TcpStream) {
    // Fails for a client that does not trust the certificate.
    let Ok(mut stream) = acceptor.accept(stream).await else {
        return;
    };
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    let basic = STANDARD.encode(format!("windlass:{PASSWORD}")).to_lowercase();
    let (status, body) = if head.starts_with("post /token ") {
        match head.contains(&format!("authorization: basic {basic}\r\n")) {
            true => ("200 OK", json!({"token": TOKEN})),
            false => ("403 Forbidden", Value::Null),
        }
    } else if head.contains(&format!("authorization: bearer {TOKEN}\r\n")) {
        ("200 OK", json!({"team": "red"}))
    } else {
        ("401 Unauthorized", Value::Null)
    };
    let body = body.to_string();
    let length = body.len();
    let answer = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
    stream.write_all(answer.as_bytes()).await.unwrap();
    let _ = stream.shutdown().await;
}

/// A cluster with Secrets, by name, in the namespace `team`.
fn cluster() -> Cluster {
    let answering = service_fn(|request: http::Request<Body>| async move {
        let secret = |data: Value| {
            let mut data = data;
            for value in data.as_object_mut().unwrap().values_mut() {
                *value = STANDARD.encode(value.as_str().unwrap()).into();
            }
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "team", "name": "s"}, "data": data})
        };
        let (status, body) = match request.uri().path() {
            "/api/v1" => (
                200,
                json!({"resources": [{"name": "secrets", "kind": "Secret", "namespaced": true}]}),
            ),
            // A Secret created from a file contains its final line break.
            "/api/v1/namespaces/team/secrets/token" => (200, secret(json!({"token": format!("{TOKEN}\n")}))),
            "/api/v1/namespaces/team/secrets/old" => (200, secret(json!({"token": "0ld"}))),
            "/api/v1/namespaces/team/secrets/user" => {
                (200, secret(json!({"username": "windlass", "password": PASSWORD})))
            }
            "/api/v1/namespaces/team/secrets/half" => (200, secret(json!({"username": "windlass"}))),
            "/api/v1/namespaces/team/secrets/forbidden" => (
                403,
                json!({"kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden", "message": "no"}),
            ),
            _ => (
                404,
                json!({"kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound", "message": "gone"}),
            ),
        };
        let body = Body::from(body.to_string().into_bytes());
        Ok::<_, BoxError>(http::Response::builder().status(status).body(body).unwrap())
    });
    Cluster::new(kube::Client::new(answering, "default"), Duration::from_secs(1))
}

/// Returns the result of calling `address` with the credentials of a Secret, trusting `ca`.
async fn call_server(address: SocketAddr, ca: &str, secret: &str, auth_url: &str) -> FetchedAnswer {
    let options = ReferenceOptions {
        hosts: [address.to_string().parse().unwrap()].into_iter().collect(),
        ca: ca.as_bytes().to_vec(),
        ..ReferenceOptions::default()
    };
    let references = References::new(cluster(), Arc::new(SystemClock), &options);
    let reference = DataReference::Http(HttpRequest {
        method: HttpMethod::Get,
        url: format!("https://{address}/"),
        headers: [].into(),
        body: None,
        auth: Some(HttpAuth {
            secret_ref: Some(SecretReference {
                name: secret.to_owned(),
                namespace: "team".to_owned(),
            }),
            auth_url: auth_url.to_owned(),
            ..HttpAuth::default()
        }),
    });
    let reading = ReferenceReading {
        until: Instant::now() + LONG,
        is_dry_run: false,
    };
    let mut answers = Answers::default();
    references
        .read(vec![reference.clone()], reading, &mut answers)
        .await;
    answers.get(&reference).unwrap().clone()
}

fn problem(answer: FetchedAnswer) -> String {
    match answer {
        FetchedAnswer::Failed(problem) => problem,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_secret_token_is_sent_to_a_server_whose_certificate_is_trusted() {
    let authority = TestAuthority::new("of servers");
    let address = serve(&authority, &["127.0.0.1"]).await;
    let found = call_server(address, &authority.pem(), "token", "").await;
    assert_eq!(found, FetchedAnswer::Found(json!({"team": "red"})));
    // The CA file may contain several certificates.
    let both = TestAuthority::new("another").pem() + &authority.pem();
    let found = call_server(address, &both, "token", "").await;
    assert_eq!(found, FetchedAnswer::Found(json!({"team": "red"})));
}

#[tokio::test]
async fn an_untrusted_server_gets_no_token() {
    let authority = TestAuthority::new("of servers");
    let address = serve(&authority, &["127.0.0.1"]).await;
    for ca in [String::new(), TestAuthority::new("of servers").pem()] {
        let error = problem(call_server(address, &ca, "token", "").await);
        assert!(error.starts_with("cannot connect: "), "{error}");
        assert!(error.contains("certificate"), "{error}");
    }
    let other = serve(&authority, &["other.example.com"]).await;
    let error = problem(call_server(other, &authority.pem(), "token", "").await);
    assert!(error.contains("certificate"), "{error}");
    let error = problem(call_server(address, "-----BEGIN CERTIFICATE-----\n", "token", "").await);
    assert!(error.contains("--policy-http-ca"), "{error}");
}

#[tokio::test]
async fn a_token_is_fetched_with_the_password_of_a_secret() {
    let authority = TestAuthority::new("of servers");
    let address = serve(&authority, &["127.0.0.1"]).await;
    let auth_url = format!("https://{address}/token");
    let found = call_server(address, &authority.pem(), "user", &auth_url).await;
    assert_eq!(found, FetchedAnswer::Found(json!({"team": "red"})));
    let stranger =
        problem(call_server(address, &authority.pem(), "user", "https://stranger.example.com/").await);
    assert!(stranger.contains("--policy-http-host"), "{stranger}");
}

#[tokio::test]
async fn errors_about_a_secret_do_not_contain_its_values() {
    let authority = TestAuthority::new("of servers");
    let address = serve(&authority, &["127.0.0.1"]).await;
    for (secret, expected) in [
        ("old", "HTTP 401 Unauthorized"),
        ("user", "HTTP 401 Unauthorized"),
        ("absent", "Secret team/absent not found"),
        (
            "half",
            "Secret team/half must have token, or username and password",
        ),
        ("forbidden", "team/forbidden"),
    ] {
        let error = problem(call_server(address, &authority.pem(), secret, "").await);
        assert!(error.contains(expected), "{secret}: {error}");
        for word in ["0ld", PASSWORD, TOKEN] {
            assert!(!error.contains(word), "{secret}: {error}");
        }
    }
}
