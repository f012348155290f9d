//! Bodies of requests: few are read at a time, each within a time limit, and of each client one after the other, so that
//! clients that are slow wait for themselves.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Weak},
    time::Duration,
};

use axum::{
    body::Bytes,
    extract::{FromRequest, Request, rejection::BytesRejection},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use parking_lot::Mutex;
use thiserror::Error;
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::timeout,
};

use crate::{connections::ClientAddress, guard::InvalidReview};

/// Reads bodies.
pub(super) struct Bodies {
    turns: Semaphore,
    /// Those of each client that has some.
    clients: Mutex<HashMap<IpAddr, Weak<Semaphore>>>,
}

/// Why a body was not read.
#[derive(Debug, Error)]
pub(super) enum ReadBodyError {
    #[error("too many requests; try again later")]
    Busy,
    #[error("timed out reading the body")]
    Slow,
    #[error(transparent)]
    Broken(#[from] BytesRejection),
    #[error(transparent)]
    Invalid(#[from] InvalidReview),
}

/// The longest body that is read: both states of an object, each of which may take 3 MiB in a request.
pub(super) const LONGEST_BODY: usize = 7 << 20;

/// How many bodies are held at a time.
const BODIES: usize = 4;

/// How long a body may wait for its turn: who sends it waits no longer for the answer.
const TURN: Duration = Duration::from_secs(3);

/// How long a body may take.
const BODY: Duration = Duration::from_secs(2);

// === impl Bodies ===

impl Bodies {
    pub(super) fn new() -> Self {
        Self {
            turns: Semaphore::new(BODIES),
            clients: Mutex::default(),
        }
    }

    /// What `parse` makes of the body of a request, of which no more is kept.
    ///
    /// # Errors
    ///
    /// When there is no turn for it, it is too long or takes too long, or `parse` finds fault with it.
    pub(super) async fn read<T>(
        &self,
        client: ClientAddress,
        request: Request,
        parse: impl FnOnce(&[u8]) -> Result<T, InvalidReview>,
    ) -> Result<T, ReadBodyError> {
        let own = self.of(client);
        let turn = async { Some((own.acquire().await.ok()?, self.turns.acquire().await.ok()?)) };
        let turn: Option<(SemaphorePermit<'_>, SemaphorePermit<'_>)> =
            timeout(TURN, turn).await.unwrap_or_default();
        if turn.is_none() {
            return Err(ReadBodyError::Busy);
        }
        let body = timeout(BODY, Bytes::from_request(request, &())).await;
        let body = body.map_err(|_| ReadBodyError::Slow)??;
        Ok(parse(&body)?)
    }

    fn of(&self, ClientAddress(client): ClientAddress) -> Arc<Semaphore> {
        let mut clients = self.clients.lock();
        clients.retain(|_, turns| turns.strong_count() > 0);
        if let Some(turns) = clients.get(&client).and_then(Weak::upgrade) {
            return turns;
        }
        let turns = Arc::new(Semaphore::new(1));
        clients.insert(client, Arc::downgrade(&turns));
        turns
    }
}

// === impl ReadBodyError ===

impl IntoResponse for ReadBodyError {
    fn into_response(self) -> Response {
        let status = match self {
            Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
            Self::Slow => StatusCode::REQUEST_TIMEOUT,
            Self::Invalid(_) => StatusCode::BAD_REQUEST,
            Self::Broken(rejection) => return rejection.into_response(),
        };
        (status, self.to_string()).into_response()
    }
}
