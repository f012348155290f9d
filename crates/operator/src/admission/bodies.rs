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

/// Reads bodies.
pub(crate) struct Bodies {
    turns: Semaphore,
    /// Those of each client that has some, for each size.
    clients: Mutex<HashMap<(IpAddr, BodySize), Weak<Semaphore>>>,
    /// For short ones that are kept whole, in units of [`ROOM_UNIT`].
    short_room: Arc<Semaphore>,
    /// For long ones.
    long_room: Arc<Semaphore>,
}

/// What bodies wait for one another: short ones never for long ones, of which a few fill the room while they are worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum BodySize {
    Short,
    Long,
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

/// The most bytes of a short body.
pub(crate) const SHORT_BODY: usize = 64 << 10;

/// How many bytes of short bodies are kept whole at a time: as trees they take up to forty times as much.
const SHORT_ROOM: usize = 1 << 20;

/// How many of long ones: one of the longest fits.
const LONG_ROOM: usize = LONGEST_BODY;

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
            short_room: Arc::new(Semaphore::new(SHORT_ROOM / ROOM_UNIT)),
            long_room: Arc::new(Semaphore::new(LONG_ROOM / ROOM_UNIT)),
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
        client: IpAddr,
        request: Request,
    ) -> Result<WholeBody, ReadBodyError> {
        let length = request.headers().get(CONTENT_LENGTH);
        let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
        // More than the longest is refused as it is read.
        let length: usize = length.unwrap_or(LONGEST_BODY).min(LONGEST_BODY);
        let units = u32::try_from(length.div_ceil(ROOM_UNIT).max(1)).unwrap_or(u32::MAX);
        let (size, room) = if length <= SHORT_BODY {
            (BodySize::Short, &self.short_room)
        } else {
            (BodySize::Long, &self.long_room)
        };
        let own = self.of(client, size);
        let turn = async {
            let own = own.acquire().await.ok()?;
            let room = room.clone().acquire_many_owned(units).await.ok()?;
            // The last: whoever waits for room is in the way of nobody else.
            Some((own, room, self.turns.acquire().await.ok()?))
        };
        let Ok(Some((_own, room, _turn))) = timeout(TURN, turn).await else {
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
        client: IpAddr,
        request: Request,
        parse: impl FnOnce(&[u8]) -> Result<T, InvalidReview>,
    ) -> Result<T, ReadBodyError> {
        // Whatever their sizes are: they need no room, and none waits for long.
        let own = self.of(client, BodySize::Short);
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

    fn of(&self, client: IpAddr, size: BodySize) -> Arc<Semaphore> {
        let mut clients = self.clients.lock();
        clients.retain(|_, turns| turns.strong_count() > 0);
        if let Some(turns) = clients.get(&(client, size)).and_then(Weak::upgrade) {
            return turns;
        }
        let turns = Arc::new(Semaphore::new(1));
        clients.insert((client, size), Arc::downgrade(&turns));
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

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    /// A part of the room for long ones, and less than a body may have by default.
    const LARGE: usize = 1 << 20;

    fn request(length: usize) -> Request {
        Request::post("/")
            .header(CONTENT_LENGTH, length)
            .body(Body::from(vec![b' '; length]))
            .unwrap()
    }

    #[tokio::test]
    async fn a_short_body_waits_for_no_long_one_that_finds_no_room() {
        let bodies = Bodies::default();
        let client = IpAddr::from([127, 0, 0, 1]);
        let mut worked_on = Vec::new();
        for _ in 0..LONG_ROOM / LARGE {
            worked_on.push(bodies.read_whole(client, request(LARGE)).await.unwrap());
        }
        let mut waiting = Box::pin(bodies.read_whole(client, request(SHORT_BODY + 1)));
        assert!(futures::poll!(&mut waiting).is_pending(), "there is room");
        let short = bodies.read_whole(client, request(SHORT_BODY));
        tokio::select! {
            biased;
            _ = &mut waiting => panic!("the long one went first"),
            short = short => assert_eq!(short.unwrap().bytes.len(), SHORT_BODY),
        }
        drop(worked_on);
        assert_eq!(waiting.await.unwrap().bytes.len(), SHORT_BODY + 1);
    }

    #[tokio::test]
    async fn no_more_is_kept_than_there_is_room_for() {
        let bodies = Bodies::default();
        let client = IpAddr::from([127, 0, 0, 1]);
        let mut kept = Vec::new();
        for _ in 0..SHORT_ROOM / SHORT_BODY {
            kept.push(bodies.read_whole(client, request(SHORT_BODY)).await.unwrap());
        }
        tokio::time::pause();
        let refused = bodies.read_whole(client, request(1)).await;
        assert!(matches!(refused, Err(ReadBodyError::Busy)));
        kept.pop();
        assert!(bodies.read_whole(client, request(1)).await.is_ok());
    }
}
