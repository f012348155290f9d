//! Limits on the duration, size and number of requests.

use std::{
    convert::Infallible,
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::stream;
use http::{Request, StatusCode};
use http_body_util::StreamBody;
use hyper::body::{Bytes, Frame};
use runtime_hooks::{
    Catalog,
    cluster_api::{BeforeClusterCreate, BeforeClusterUpgrade, BeforeClusterUpgradeResponse},
    server::{HandlerOptions, HookServer},
};
use tokio::{sync::Notify, time::Instant};

use crate::fixture::{Answer, DISCOVERY, FIRST, first, post};

const MIB: usize = 1 << 20;

/// A server whose handler `first` never returns, with counters of its started and dropped calls.
fn endless(timeout_seconds: Option<i32>) -> (HookServer, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    struct Dropped(Arc<AtomicUsize>);

    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    let (begun, dropped) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counters = (begun.clone(), dropped.clone());
    let options = HandlerOptions {
        timeout_seconds,
        ..HandlerOptions::default()
    };
    let server = HookServer::new(Catalog::cluster_api());
    let server = server.handle::<BeforeClusterUpgrade, _>("first", options, move |_, _| {
        let (begun, dropped) = counters.clone();
        begun.fetch_add(1, Ordering::SeqCst);
        async move {
            let _dropped = Dropped(dropped);
            pending::<BeforeClusterUpgradeResponse>().await
        }
    });
    (server.unwrap(), begun, dropped)
}

#[tokio::test(start_paused = true)]
async fn a_handler_is_dropped_at_the_callers_timeout() {
    for (own, asked, seconds) in [
        (None, "", 10.0),
        (Some(0), "", 10.0),
        (Some(5), "", 5.0),
        (Some(5), "?timeout=20s", 20.0),
        (None, "?timeout=500ms", 0.5),
        (None, "?timeout=1h", 30.0),
        (Some(3), "?timeout=0s", 3.0),
        (Some(3), "?timeout=-1s", 3.0),
        (Some(3), "?timeout=soon", 3.0),
    ] {
        let (server, begun, dropped) = endless(own);
        let started = Instant::now();
        let answer = post(&server, &format!("{FIRST}{asked}"), "{}").await;
        assert_eq!(answer.status, StatusCode::GATEWAY_TIMEOUT);
        assert_eq!(answer.body, b"timed out");
        assert!(
            (started.elapsed().as_secs_f64() - seconds).abs() < 0.1,
            "{own:?} {asked}"
        );
        let counts = [begun, dropped].map(|count| count.load(Ordering::SeqCst));
        assert_eq!(counts, [1, 1], "{own:?} {asked}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_endless_body_times_out() {
    let (server, begun, _) = endless(None);
    let drip = stream::unfold((), async |()| {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Some((Ok::<_, Infallible>(Frame::data(Bytes::from_static(b" "))), ()))
    });
    let request = Request::post(format!("{FIRST}?timeout=5s")).body(StreamBody::new(drip));
    let started = Instant::now();
    let answer = Answer::read(server.answer(request.unwrap()).await).await;
    assert_eq!(answer.status, StatusCode::GATEWAY_TIMEOUT);
    assert_eq!(started.elapsed().as_secs(), 5);
    assert_eq!(begun.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_request_above_20_mib_is_rejected() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let server = first(move |_, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { BeforeClusterUpgradeResponse::default() }
    });
    for (length, status, message, called) in [
        (20 * MIB, "Success", "", 1),
        (
            20 * MIB + 1,
            "Failure",
            "error reading request: larger than 20 MiB",
            1,
        ),
        (
            100 * MIB,
            "Failure",
            "error reading request: larger than 20 MiB",
            1,
        ),
    ] {
        let mut body = vec![b' '; length];
        body[..2].copy_from_slice(b"{}");
        let outcome = post(&server, FIRST, body).await.outcome();
        assert_eq!(outcome, (status.to_owned(), message.to_owned()), "{length}");
        assert_eq!(calls.load(Ordering::SeqCst), called, "{length}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_concurrency_limit_is_per_handler() {
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let proceed = Arc::new(Notify::new());
    let options = HandlerOptions {
        concurrency: 2,
        ..HandlerOptions::default()
    };
    let shared = (running.clone(), most.clone(), proceed.clone());
    let server = HookServer::new(Catalog::cluster_api())
        .handle::<BeforeClusterUpgrade, _>("first", options, move |_, _| {
            let (running, most, proceed) = shared.clone();
            async move {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                proceed.notified().await;
                running.fetch_sub(1, Ordering::SeqCst);
                BeforeClusterUpgradeResponse::default()
            }
        })
        .unwrap()
        .handle::<BeforeClusterCreate, _>("create", HandlerOptions::default(), async |_, _| {
            Ok::<_, String>(Default::default())
        })
        .unwrap();
    let call = || {
        let server = server.clone();
        tokio::spawn(async move { post(&server, FIRST, "{}").await.status })
    };
    let calls = [call(), call(), call(), call()];
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(running.load(Ordering::SeqCst), 2);
    assert_eq!(post(&server, DISCOVERY, "{}").await.status, 200);
    let create = FIRST.replace("upgrade/first", "create/create");
    assert_eq!(post(&server, &create, "{}").await.status, 200);
    for _ in 0..3 {
        proceed.notify_one();
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let mut statuses = Vec::new();
    for call in calls {
        statuses.push(call.await.unwrap().as_u16());
    }
    assert_eq!(statuses, [200, 200, 200, 504]);
    assert_eq!(most.load(Ordering::SeqCst), 2);
}
