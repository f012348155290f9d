//! Connections to the guard over which nothing is sent.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncRead, AsyncReadExt},
    task::JoinSet,
};

use super::{calls::SharedCalls, guard::GuardPort};

/// Connections.
pub(super) const CONNECTIONS: u32 = 5000;

/// How long each comes after the one before.
const STEP: Duration = Duration::from_millis(2);

/// How long after its end a connection is opened again.
const REST: Duration = Duration::from_secs(10);

/// Opens all connections, and each again when it was closed. Every other one speaks TLS.
pub(super) fn open(guard: &Arc<GuardPort>, calls: &SharedCalls, tasks: &mut JoinSet<()>) {
    for number in 0..CONNECTIONS {
        let (guard, calls) = (guard.clone(), calls.clone());
        tasks.spawn(async move {
            tokio::time::sleep(STEP * number).await;
            loop {
                let opened = Instant::now();
                match idle(&guard, number).await {
                    Ok(()) => calls.lock().answered("closed", opened.elapsed()),
                    Err(error) => calls.lock().answered(&format!("{error:#}"), opened.elapsed()),
                }
                tokio::time::sleep(REST).await;
            }
        });
    }
}

/// Keeps a connection for as long as the guard does.
async fn idle(guard: &GuardPort, number: u32) -> anyhow::Result<()> {
    let stream = guard.connect(number).await?;
    match number % 2 {
        0 => ended(stream).await,
        _ => ended(guard.secure(stream).await?).await,
    }
}

async fn ended(mut stream: impl AsyncRead + Unpin) -> anyhow::Result<()> {
    while stream.read(&mut [0; 64]).await? > 0 {}
    Ok(())
}
