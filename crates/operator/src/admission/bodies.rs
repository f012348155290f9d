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
    http::{StatusCode, header::CONTENT_LENGTH},
    response::{IntoResponse, Response},
};
use parking_lot::Mutex;
use thiserror::Error;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit},
    time::timeout,
};

use super::review::InvalidReview;
use crate::connections::ClientAddress;

/// Reads bodies.
pub(crate) struct Bodies {
    turns: Semaphore,
    /// Those of each client that has some.
    clients: Mutex<HashMap<IpAddr, Weak<Semaphore>>>,
    /// For what is kept whole, in units of [`ROOM_UNIT`].
    room: Arc<Semaphore>,
}

/// A body that is kept whole, and the room that it takes for as long as anything of it is kept.
pub(crate) struct WholeBody {
    pub(crate) bytes: Bytes,
    pub(crate) room: OwnedSemaphorePermit,
}

/// Why a body was not read.
#[derive(Debug, Error)]
pub(crate) enum ReadBodyError {
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
pub(crate) const LONGEST_BODY: usize = 7 << 20;

/// How many bytes of bodies are kept whole at a time: as trees they take up to forty times as much.
const ROOM: usize = 8 << 20;

/// In what units room is given.
const ROOM_UNIT: usize = 1 << 10;

/// How many bodies are read at a time.
const BODIES: usize = 4;

/// How long a body may wait for its turn: who sends it waits no longer for the answer.
const TURN: Duration = Duration::from_secs(3);

/// How long a body may take.
const BODY: Duration = Duration::from_secs(2);

// === impl Bodies ===

impl Default for Bodies {
    fn default() -> Self {
        Self {
            turns: Semaphore::new(BODIES),
            clients: Mutex::default(),
            room: Arc::new(Semaphore::new(ROOM / ROOM_UNIT)),
        }
    }
}

impl Bodies {
    /// The body of a request, to be kept whole until it is answered.
    ///
    /// # Errors
    ///
    /// When there is no turn or no room for it, or it is too long or takes too long.
    pub(crate) async fn read_whole(
        &self,
        client: ClientAddress,
        request: Request,
    ) -> Result<WholeBody, ReadBodyError> {
        let length = request.headers().get(CONTENT_LENGTH);
        let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
        // More than the longest is refused as it is read.
        let length: usize = length.unwrap_or(LONGEST_BODY).min(LONGEST_BODY);
        let units = u32::try_from(length.div_ceil(ROOM_UNIT).max(1)).unwrap_or(u32::MAX);
        let own = self.of(client);
        let turn = async {
            let room = self.room.clone().acquire_many_owned(units);
            Some((
                own.acquire().await.ok()?,
                self.turns.acquire().await.ok()?,
                room.await.ok()?,
            ))
        };
        let Ok(Some((_own, _turn, room))) = timeout(TURN, turn).await else {
            return Err(ReadBodyError::Busy);
        };
        let bytes = timeout(BODY, Bytes::from_request(request, &())).await;
        let bytes = bytes.map_err(|_| ReadBodyError::Slow)??;
        Ok(WholeBody { bytes, room })
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

impl ReadBodyError {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
            Self::Slow => StatusCode::REQUEST_TIMEOUT,
            Self::Invalid(_) => StatusCode::BAD_REQUEST,
            Self::Broken(rejection) => rejection.status(),
        }
    }
}

impl IntoResponse for ReadBodyError {
    fn into_response(self) -> Response {
        (self.status(), self.to_string()).into_response()
    }
}
