//! Clients that send the guard bodies which are too large.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    task::JoinSet,
    time::timeout,
};

use super::{
    calls::SharedCalls,
    guard::{GuardPort, HOST},
};

/// Clients.
pub(super) const CLIENTS: u32 = 100;

/// Bytes of a body.
pub(super) const BODY: usize = 16 << 20;

/// Bytes that are written at a time.
const PART: usize = 64 << 10;

/// How long a client rests after each body.
const REST: Duration = Duration::from_secs(1);

/// How long a client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// How an AdmissionReview begins whose object does not end.
const BEGINNING: &str = r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"UPDATE","oldObject":{"spec":{"names":""#;

/// Has all clients send one body after the other.
pub(super) fn send(guard: &Arc<GuardPort>, calls: &SharedCalls, tasks: &mut JoinSet<()>) {
    for number in 0..CLIENTS {
        let (guard, calls) = (guard.clone(), calls.clone());
        tasks.spawn(async move {
            loop {
                let sent = Instant::now();
                // Some say how much it will be.
                let outcome = timeout(PATIENCE, send_one(&guard, number, number % 2 == 0)).await;
                match outcome {
                    Ok(Ok(answer)) => calls.lock().answered(&answer, sent.elapsed()),
                    // It need not take the rest of what it has refused, nor any of it.
                    Ok(Err(error)) => calls.lock().answered(&format!("{error:#}"), sent.elapsed()),
                    Err(_) => calls.lock().failed("no answer"),
                }
                tokio::time::sleep(REST).await;
            }
        });
    }
}

/// Sends one body, and reads the status of the answer, which may come before the end.
async fn send_one(guard: &GuardPort, number: u32, is_declared: bool) -> anyhow::Result<String> {
    let stream = guard.secure(guard.connect(number).await?).await?;
    let (mut reader, mut writer) = tokio::io::split(stream);
    let length = match is_declared {
        true => format!("content-length: {BODY}"),
        false => "transfer-encoding: chunked".to_owned(),
    };
    let path = &guard.path;
    let head =
        format!("POST {path} HTTP/1.1\r\nhost: {HOST}\r\ncontent-type: application/json\r\n{length}\r\n\r\n");
    let writing = async {
        let _ = write_body(&mut writer, &head, is_declared).await;
        // One that is refused before the end may still be answered.
        std::future::pending::<()>().await;
    };
    tokio::select! {
        answer = status(&mut reader) => answer,
        () = writing => Ok("sent".to_owned()),
    }
}

async fn status(reader: &mut (impl AsyncRead + Unpin)) -> anyhow::Result<String> {
    let mut line = [0; 12];
    reader.read_exact(&mut line).await?;
    Ok(String::from_utf8_lossy(&line).into_owned())
}

async fn write_body(
    writer: &mut (impl AsyncWrite + Unpin),
    head: &str,
    is_declared: bool,
) -> std::io::Result<()> {
    writer.write_all(head.as_bytes()).await?;
    let filler = vec![b'a'; PART];
    let mut left = BODY;
    while left > 0 {
        let part = match left == BODY {
            true => BEGINNING.as_bytes(),
            false => &filler[..PART.min(left)],
        };
        if !is_declared {
            writer
                .write_all(format!("{:x}\r\n", part.len()).as_bytes())
                .await?;
        }
        writer.write_all(part).await?;
        if !is_declared {
            writer.write_all(b"\r\n").await?;
        }
        left -= part.len();
    }
    if !is_declared {
        writer.write_all(b"0\r\n\r\n").await?;
    }
    writer.flush().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_body_is_as_long_as_it_is_said_to_be() {
        let mut written = Vec::new();
        write_body(&mut written, "", true).await.unwrap();
        assert_eq!(written.len(), BODY);
        assert!(written.starts_with(BEGINNING.as_bytes()));
        let mut chunked = Vec::new();
        write_body(&mut chunked, "", false).await.unwrap();
        assert!(chunked.len() > BODY && chunked.ends_with(b"a\r\n0\r\n\r\n"));
    }
}
