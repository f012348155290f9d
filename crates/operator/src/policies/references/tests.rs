//! Calls to malicious servers.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::future::{BoxFuture, join_all};
use policy::{
    Answers, DataReference, FetchedAnswer, HttpRequest,
    api::{HttpAuth, HttpMethod},
};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::Instant,
};
use windlass_cluster::{Cluster, SystemClock};

use super::{AllowedHosts, ReferenceOptions, ReferenceReading, References};

/// A server with a fixed behaviour for each request.
struct HostileServer {
    address: SocketAddr,
    asked: Arc<AtomicUsize>,
}

type Behaviour = fn(String, TcpStream) -> BoxFuture<'static, ()>;

impl HostileServer {
    async fn start(behaviour: Behaviour) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = asked.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let counted = counted.clone();
                tokio::spawn(async move {
                    let mut head = Vec::new();
                    while !head.ends_with(b"\r\n\r\n") {
                        match stream.read_u8().await {
                            Ok(byte) => head.push(byte),
                            Err(_) => return,
                        }
                    }
                    counted.fetch_add(1, Ordering::SeqCst);
                    behaviour(String::from_utf8(head).unwrap(), stream).await;
                });
            }
        });
        Self { address, asked }
    }

    fn request_count(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    fn get(&self, path: &str) -> HttpRequest {
        HttpRequest {
            method: HttpMethod::Get,
            url: format!("http://{}{path}", self.address),
            headers: BTreeMap::new(),
            body: None,
            auth: None,
        }
    }
}

fn references(servers: &[&HostileServer]) -> References {
    let hosts = servers
        .iter()
        .map(|server| server.address.to_string().parse().unwrap());
    let unreachable = tower::service_fn(|_: http::Request<kube::client::Body>| async {
        Err::<http::Response<kube::client::Body>, tower::BoxError>("no API server".into())
    });
    let client = kube::Client::new(unreachable, "default");
    let options = ReferenceOptions {
        hosts: hosts.collect(),
        ..ReferenceOptions::default()
    };
    let cluster = Cluster::new(client, Duration::from_secs(1));
    References::new(cluster, Arc::new(SystemClock), &options)
}

async fn read(references: &References, request: &HttpRequest, time: Duration) -> FetchedAnswer {
    let reading = ReferenceReading {
        until: Instant::now() + time,
        is_dry_run: false,
    };
    let mut answers = Answers::default();
    let reference = DataReference::Http(request.clone());
    references
        .read(vec![reference.clone()], reading, &mut answers)
        .await;
    answers.get(&reference).unwrap().clone()
}

/// Returns the error about a server that gives no usable answer.
async fn problem(behaviour: Behaviour, time: Duration) -> String {
    let server = HostileServer::start(behaviour).await;
    match read(&references(&[&server]), &server.get("/"), time).await {
        FetchedAnswer::Failed(problem) => problem,
        other => panic!("{other:?}"),
    }
}

async fn write(mut stream: TcpStream, words: impl AsRef<[u8]>) {
    // The client may have closed the connection.
    let _ = stream.write_all(words.as_ref()).await;
}

fn answer(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

/// Writes `first`, and then `then` again and again.
async fn write_forever(mut stream: TcpStream, first: &str, then: &[u8], pause: Duration) {
    let _ = stream.write_all(first.as_bytes()).await;
    while stream.write_all(then).await.is_ok() {
        tokio::time::sleep(pause).await;
    }
}

const BRIEFLY: Duration = Duration::from_millis(300);
const LONG: Duration = Duration::from_secs(20);

#[tokio::test]
async fn an_endless_answer_times_out() {
    let silent: Behaviour = |_, stream| {
        Box::pin(async move {
            tokio::time::sleep(LONG).await;
            drop(stream);
        })
    };
    let dripping: Behaviour = |_, stream| {
        Box::pin(write_forever(
            stream,
            "HTTP/1.1 200 OK\r\n\r\n\"",
            b"a",
            Duration::from_millis(10),
        ))
    };
    let continuing: Behaviour = |_, stream| {
        Box::pin(write_forever(
            stream,
            "",
            b"HTTP/1.1 100 Continue\r\n\r\n",
            Duration::from_millis(1),
        ))
    };
    for behaviour in [silent, dripping, continuing] {
        assert_eq!(problem(behaviour, BRIEFLY).await, "no answer in time");
    }
}

#[tokio::test]
async fn a_too_large_answer_is_rejected() {
    let endless: Behaviour = |_, stream| {
        Box::pin(write_forever(
            stream,
            "HTTP/1.1 200 OK\r\n\r\n\"",
            &[b'a'; 4096],
            Duration::ZERO,
        ))
    };
    let error = problem(endless, LONG).await;
    assert_eq!(error, "the answer is larger than 1048576 bytes");
    let head: Behaviour = |_, stream| {
        Box::pin(write_forever(
            stream,
            "HTTP/1.1 200 OK\r\na: ",
            &[b'a'; 4096],
            Duration::ZERO,
        ))
    };
    assert_eq!(
        problem(head, LONG).await,
        "the connection ended without an answer"
    );
    let headers: Behaviour = |_, stream| {
        Box::pin(write_forever(
            stream,
            "HTTP/1.1 200 OK\r\n",
            b"a: b\r\n",
            Duration::ZERO,
        ))
    };
    // Either the limit of the head or the time limit ends an endless head.
    let error = problem(headers, LONG).await;
    let ends = ["the connection ended without an answer", "no answer in time"];
    assert!(ends.contains(&&*error), "{error}");
}

#[tokio::test]
async fn errors_do_not_contain_text_of_the_server() {
    let cases: [(Behaviour, &str); 6] = [
        (
            |_, stream| Box::pin(write(stream, answer("secret"))),
            "the answer is not JSON",
        ),
        (
            |_, stream| Box::pin(write(stream, answer(&"[".repeat(100_000)))),
            "the answer is not JSON",
        ),
        (
            |_, stream| {
                Box::pin(write(
                    stream,
                    "HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n",
                ))
            },
            "HTTP 302 Found: redirects are not followed; use the target URL",
        ),
        (
            |_, stream| {
                Box::pin(write(
                    stream,
                    "HTTP/1.1 500 secret\r\nContent-Length: 6\r\n\r\nsecret",
                ))
            },
            "HTTP 500 Internal Server Error",
        ),
        (
            |_, stream| {
                Box::pin(write(
                    stream,
                    "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 0\r\n\r\n",
                ))
            },
            "the answer is compressed",
        ),
        (
            |_, stream| Box::pin(write(stream, "secret")),
            "the connection ended without an answer",
        ),
    ];
    for (behaviour, expected) in cases {
        assert_eq!(problem(behaviour, LONG).await, expected);
    }
}

#[tokio::test]
async fn a_large_number_is_a_valid_answer() {
    let server = HostileServer::start(|_, stream| {
        Box::pin(async move { write(stream, answer(&format!("\"{}\"", "a".repeat(1_000_000)))).await })
    })
    .await;
    let found = read(&references(&[&server]), &server.get("/"), LONG).await;
    assert_eq!(found, FetchedAnswer::Found(json!("a".repeat(1_000_000))));
}

#[tokio::test]
async fn concurrent_equal_requests_share_one_call() {
    let server = HostileServer::start(|_, stream| {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(50)).await;
            write(stream, answer("{\"a\": 1}")).await;
        })
    })
    .await;
    let references = references(&[&server]);
    let (request, other) = (server.get("/"), server.get("/?b"));
    for found in join_all((0..50).map(|_| read(&references, &request, LONG))).await {
        assert_eq!(found, FetchedAnswer::Found(json!({"a": 1})));
    }
    assert_eq!(server.request_count(), 1);
    read(&references, &request, LONG).await;
    assert_eq!(server.request_count(), 1, "the answer is cached");
    read(&references, &other, LONG).await;
    assert_eq!(server.request_count(), 2);
}

#[tokio::test]
async fn a_request_with_little_time_does_not_shorten_a_shared_call() {
    let server = HostileServer::start(|_, stream| {
        Box::pin(async move {
            tokio::time::sleep(BRIEFLY * 2).await;
            write(stream, answer("1")).await;
        })
    })
    .await;
    let references = references(&[&server]);
    let request = server.get("/");
    let (hasty, patient) = tokio::join!(
        read(&references, &request, BRIEFLY),
        read(&references, &request, LONG)
    );
    assert_eq!(hasty, FetchedAnswer::Failed("no answer in time".to_owned()));
    assert_eq!(patient, FetchedAnswer::Found(json!(1)));
}

#[tokio::test]
async fn a_silent_server_does_not_block_other_servers() {
    let silent = HostileServer::start(|_, stream| {
        Box::pin(async move {
            tokio::time::sleep(LONG).await;
            drop(stream);
        })
    })
    .await;
    let good =
        HostileServer::start(|_, stream| Box::pin(async move { write(stream, answer("1")).await })).await;
    let references = references(&[&silent, &good]);
    let waiting = (0..200).map(|turn| {
        let request = silent.get(&format!("/{turn}"));
        let references = &references;
        async move { read(references, &request, BRIEFLY * 3).await }
    });
    let answered = async {
        tokio::time::sleep(BRIEFLY).await;
        let found = read(&references, &good.get("/"), BRIEFLY).await;
        assert_eq!(found, FetchedAnswer::Found(json!(1)));
        // The first request ends before any times out, which frees a permit for the next.
        assert!(silent.request_count() <= 8, "{}", silent.request_count());
    };
    let (waited, ()) = tokio::join!(join_all(waiting), answered);
    assert!(
        waited
            .iter()
            .all(|answer| matches!(answer, FetchedAnswer::Failed(_)))
    );
}

#[tokio::test]
async fn a_rejected_token_is_fetched_again() {
    static TOKENS: AtomicUsize = AtomicUsize::new(0);
    let server = HostileServer::start(|head, stream| {
        Box::pin(async move {
            let head = head.to_lowercase();
            if head.starts_with("post /token") {
                assert!(head.contains("authorization: basic dtpw"), "{head}");
                let token = TOKENS.fetch_add(1, Ordering::SeqCst) + 1;
                write(
                    stream,
                    answer(&format!(
                        "{{\"token\": \"t{token}\", \"expireAt\": 99999999999999}}"
                    )),
                )
                .await;
            } else if head.contains("authorization: bearer t2") {
                write(stream, answer("\"in\"")).await;
            } else {
                write(stream, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n").await;
            }
        })
    })
    .await;
    let references = references(&[&server]);
    let with_auth = |path: &str| HttpRequest {
        auth: Some(HttpAuth {
            username: "u".into(),
            password: "p".into(),
            auth_url: server.get("/token").url,
            ..HttpAuth::default()
        }),
        ..server.get(path)
    };
    let found = read(&references, &with_auth("/"), LONG).await;
    assert_eq!(found, FetchedAnswer::Found(json!("in")));
    assert_eq!(TOKENS.load(Ordering::SeqCst), 2);
    read(&references, &with_auth("/other"), LONG).await;
    assert_eq!(TOKENS.load(Ordering::SeqCst), 2, "the token is still valid");
}

#[tokio::test]
async fn other_servers_are_not_called_and_a_dry_run_sends_no_post() {
    let server =
        HostileServer::start(|_, stream| Box::pin(async move { write(stream, answer("1")).await })).await;
    let denied = read(&references(&[]), &server.get("/"), LONG).await;
    assert!(
        matches!(&denied, FetchedAnswer::Failed(problem) if problem.contains("--policy-http-host")),
        "{denied:?}"
    );
    let references = references(&[&server]);
    assert!(references.hosts() != &AllowedHosts::default());
    let post = DataReference::Http(HttpRequest {
        method: HttpMethod::Post,
        ..server.get("/")
    });
    let reading = ReferenceReading {
        until: Instant::now() + LONG,
        is_dry_run: true,
    };
    let mut answers = Answers::default();
    references.read(vec![post.clone()], reading, &mut answers).await;
    assert!(matches!(answers.get(&post), Some(FetchedAnswer::Failed(_))));
    let mut forged = server.get("/");
    forged.headers.insert("Host".into(), "other".into());
    let forged = read(&references, &forged, LONG).await;
    assert!(
        matches!(&forged, FetchedAnswer::Failed(problem) if problem.contains("header")),
        "{forged:?}"
    );
    assert_eq!(server.request_count(), 0);
}
