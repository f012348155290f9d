//! Bodies of upload requests, sent in parts so that progress can be observed.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

/// Bytes that are sent in parts, to observe progress.
pub(super) struct UploadBody {
    rest: Bytes,
    taken: Arc<AtomicU64>,
}

const PART: usize = 64 << 10;

impl UploadBody {
    /// Counts in `taken` the parts that were sent.
    pub(super) fn new(content: Bytes, taken: Arc<AtomicU64>) -> Self {
        Self { rest: content, taken }
    }
}

impl Body for UploadBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        let length = self.rest.len().min(PART);
        let part = self.rest.split_to(length);
        self.taken.fetch_add(1, Ordering::Relaxed);
        Poll::Ready(Some(Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}
