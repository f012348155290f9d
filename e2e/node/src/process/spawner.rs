//! The thread that starts every process.
//!
//! Linux sends the signal of `PR_SET_PDEATHSIG` when the *thread* that started a process ends, so processes must not be
//! started by threads of a pool, which come and go. This thread ends with the node.

use std::{io, sync::mpsc, thread};

use tokio::{
    process::{Child, Command},
    runtime::Handle,
    sync::oneshot,
};

/// Starts processes from a thread of its own.
#[derive(Debug)]
pub(super) struct Spawner {
    requests: mpsc::Sender<Request>,
}

struct Request {
    command: Command,
    reply: oneshot::Sender<io::Result<Child>>,
}

impl Spawner {
    /// Starts the thread. To be called within a tokio runtime.
    pub(super) fn start() -> io::Result<Self> {
        let (requests, received) = mpsc::channel::<Request>();
        let runtime = Handle::current();
        thread::Builder::new()
            .name("windlass-node-spawner".to_owned())
            .spawn(move || {
                let _runtime = runtime.enter();
                for Request { mut command, reply } in received {
                    // Nobody waits any more: the child is dropped, and killed with it.
                    drop(reply.send(command.spawn()));
                }
            })?;
        Ok(Self { requests })
    }

    /// Starts a process.
    pub(super) async fn spawn(&self, command: Command) -> io::Result<Child> {
        let (reply, answer) = oneshot::channel();
        let ended = || io::Error::other("the thread that starts processes has ended");
        self.requests
            .send(Request { command, reply })
            .map_err(|_| ended())?;
        answer.await.map_err(|_| ended())?
    }
}
