//! Shutdown of a server during calls.

use std::time::Duration;

use test_authority::TestAuthority;

use crate::extension::{Extension, SLOW, call};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn active_calls_are_finished() {
    let authority = TestAuthority::new("first");
    let mut server = Extension::start(&authority, None).await;
    let client = server.client(&authority.pem(), None).await;
    let calls: Vec<_> = (0..30)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { call(&client, "slow").await })
        })
        .collect();
    tokio::time::sleep(SLOW / 2).await;
    server.start_shutdown();
    for call in calls {
        assert_eq!(call.await.unwrap(), Ok("at last".into()));
    }
    let ended = tokio::time::timeout(Duration::from_secs(20), server.task).await;
    ended.expect("it ends").unwrap();
    assert!(call(&client, "says").await.is_err());
}
