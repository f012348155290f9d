//! Replacing certificates and CAs during questions.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use interpreter::{Answer, Operation, webhook::server::InterpreterServer};
use test_authority::TestAuthority;
use tokio::task::JoinSet;

use crate::served::{PERIOD, Served, ask, health, issue, replace, webhook};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_succeed_during_a_rotation() {
    let [first, second] = ["first", "second"].map(TestAuthority::new);
    let answers = InterpreterServer::new()
        .handle("/", &[Operation::InterpretHealth], async |_, _| {
            Ok::<_, String>(Answer::Health(true))
        })
        .unwrap();
    let server = Served::start(&first, answers).await;
    let webhooks = server.webhooks();
    let trust = |bundle: &str| replace(&webhooks, &[webhook("a.example.com", bundle, "/")]);
    trust(&first.pem());
    let (calls, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let mut callers = JoinSet::new();
    for _ in 0..4 {
        let (interpreter, calls, stop) = (ask(webhooks.clone()), calls.clone(), stop.clone());
        callers.spawn(async move {
            while !stop.load(Ordering::SeqCst) {
                assert_eq!(health(&interpreter).await, Ok(true));
                calls.fetch_add(1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
    }
    let many_more = async || {
        tokio::time::sleep(PERIOD * 5).await;
        let enough = calls.load(Ordering::SeqCst) + 20;
        while calls.load(Ordering::SeqCst) < enough {
            tokio::time::sleep(PERIOD).await;
        }
    };
    for (old, new) in [(&first, &second), (&second, &first)] {
        trust(&format!("{}{}", old.pem(), new.pem()));
        many_more().await;
        issue(new, server.folder.path());
        while health(&server.interpreter(&new.pem(), "/")).await.is_err() {
            tokio::time::sleep(PERIOD).await;
        }
        many_more().await;
        trust(&new.pem());
        many_more().await;
        assert!(health(&server.interpreter(&old.pem(), "/")).await.is_err());
    }
    stop.store(true, Ordering::SeqCst);
    while let Some(ended) = callers.join_next().await {
        ended.unwrap();
    }
}
