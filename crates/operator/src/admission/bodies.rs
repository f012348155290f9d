//! Reads request bodies: few at a time, each within a time limit, and one at a time per client, so that slow
//! clients delay only themselves.

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

/// Reads request bodies within a limit on their total size.
pub(crate) struct Bodies {
    permits: Semaphore,
    /// Permits by client and size, while in use.
    clients: Mutex<HashMap<(IpAddr, BodySize), Weak<Semaphore>>>,
    /// Memory for short bodies that are kept whole, in units of [`ROOM_UNIT`].
    short_room: Arc<Semaphore>,
    /// Memory for long bodies.
    long_room: Arc<Semaphore>,
}

/// Short bodies never wait for long ones, a few of which use up their memory while they are processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum BodySize {
    Short,
    Long,
}

/// A whole body, with its share of the memory limit, which is released with it.
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

/// The longest accepted body: old and new object, each of which may have 3 MiB in a request.
pub(crate) const LONGEST_BODY: usize = 7 << 20;

/// The longest short body, in bytes.
pub(crate) const SHORT_BODY: usize = 64 << 10;

/// The memory limit of short bodies, in bytes. Parsed, they need up to forty times as much.
const SHORT_ROOM: usize = 1 << 20;

/// The memory limit of long bodies: one of the longest fits.
const LONG_ROOM: usize = LONGEST_BODY;

/// The unit of memory permits, in bytes.
const ROOM_UNIT: usize = 1 << 10;

/// How many bodies are read at a time.
const BODIES: usize = 4;

/// How long a body waits for its permits: clients do not wait longer for the answer.
const PERMIT_TIMEOUT: Duration = Duration::from_secs(3);

/// How long reading a body may take.
const BODY_TIMEOUT: Duration = Duration::from_secs(2);

impl Default for Bodies {
    fn default() -> Self {
        Self {
            permits: Semaphore::new(BODIES),
            clients: Mutex::default(),
            short_room: Arc::new(Semaphore::new(SHORT_ROOM / ROOM_UNIT)),
            long_room: Arc::new(Semaphore::new(LONG_ROOM / ROOM_UNIT)),
        }
    }
}

impl Bodies {
    /// Reads a body that is kept whole until it is answered.
    ///
    /// # Errors
    ///
    /// When there are no permits or no memory for it in time, or it is too long or too slow.
    pub(crate) async fn read_whole(
        &self,
        client: IpAddr,
        request: Request,
    ) -> Result<WholeBody, ReadBodyError> {
        let length = request.headers().get(CONTENT_LENGTH);
        let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
        // A longer body is rejected while it is read.
        let length: usize = length.unwrap_or(LONGEST_BODY).min(LONGEST_BODY);
        let units = u32::try_from(length.div_ceil(ROOM_UNIT).max(1)).unwrap_or(u32::MAX);
        let (size, room) = if length <= SHORT_BODY {
            (BodySize::Short, &self.short_room)
        } else {
            (BodySize::Long, &self.long_room)
        };
        let own = self.client_permit(client, size);
        let permit = async {
            let own = own.acquire().await.ok()?;
            let room = room.clone().acquire_many_owned(units).await.ok()?;
            // Acquired last, since a request that waits for memory must not delay others.
            Some((own, room, self.permits.acquire().await.ok()?))
        };
        let Ok(Some((_own, room, _permit))) = timeout(PERMIT_TIMEOUT, permit).await else {
            return Err(ReadBodyError::Busy);
        };
        let bytes = timeout(BODY_TIMEOUT, Bytes::from_request(request, &())).await;
        let bytes = bytes.map_err(|_| ReadBodyError::Slow)??;
        Ok(WholeBody { bytes, room })
    }

    /// Reads a body and returns what `parse` makes of it; the body is not kept.
    ///
    /// # Errors
    ///
    /// When there is no permit in time, the body is too long or too slow, or `parse` fails.
    pub(super) async fn read<T>(
        &self,
        client: IpAddr,
        request: Request,
        parse: impl FnOnce(&[u8]) -> Result<T, InvalidReview>,
    ) -> Result<T, ReadBodyError> {
        // All sizes share the short permits: these bodies need no memory permit, so none waits for long.
        let own = self.client_permit(client, BodySize::Short);
        let permit = async { Some((own.acquire().await.ok()?, self.permits.acquire().await.ok()?)) };
        let permit: Option<(SemaphorePermit<'_>, SemaphorePermit<'_>)> =
            timeout(PERMIT_TIMEOUT, permit).await.unwrap_or_default();
        if permit.is_none() {
            return Err(ReadBodyError::Busy);
        }
        let body = timeout(BODY_TIMEOUT, Bytes::from_request(request, &())).await;
        let body = body.map_err(|_| ReadBodyError::Slow)??;
        Ok(parse(&body)?)
    }

    fn client_permit(&self, client: IpAddr, size: BodySize) -> Arc<Semaphore> {
        let mut clients = self.clients.lock();
        clients.retain(|_, permits| permits.strong_count() > 0);
        if let Some(permits) = clients.get(&(client, size)).and_then(Weak::upgrade) {
            return permits;
        }
        let permits = Arc::new(Semaphore::new(1));
        clients.insert((client, size), Arc::downgrade(&permits));
        permits
    }
}

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

    /// A part of the memory for long bodies, and less than the default limit of a body.
    const LARGE: usize = 1 << 20;

    fn request(length: usize) -> Request {
        Request::post("/")
            .header(CONTENT_LENGTH, length)
            .body(Body::from(vec![b' '; length]))
            .unwrap()
    }

    #[tokio::test]
    async fn a_short_body_does_not_wait_for_long_ones() {
        let bodies = Bodies::default();
        let client = IpAddr::from([127, 0, 0, 1]);
        let mut worked_on = Vec::new();
        for _ in 0..LONG_ROOM / LARGE {
            worked_on.push(bodies.read_whole(client, request(LARGE)).await.unwrap());
        }
        let mut waiting = Box::pin(bodies.read_whole(client, request(SHORT_BODY + 1)));
        assert!(futures::poll!(&mut waiting).is_pending(), "there is memory");
        let short = bodies.read_whole(client, request(SHORT_BODY));
        tokio::select! {
            biased;
            _ = &mut waiting => panic!("the long body was read first"),
            short = short => assert_eq!(short.unwrap().bytes.len(), SHORT_BODY),
        }
        drop(worked_on);
        assert_eq!(waiting.await.unwrap().bytes.len(), SHORT_BODY + 1);
    }

    #[tokio::test]
    async fn the_memory_of_kept_bodies_is_limited() {
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
