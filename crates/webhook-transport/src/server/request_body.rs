//! Request bodies with a size limit.

use std::{error::Error, pin::pin};

use bytes::Buf;
use http_body_util::BodyExt;
use hyper::body::Body;
use thiserror::Error;

/// Why a body cannot be read.
#[derive(Debug, Error)]
pub enum ReadRequestError {
    /// The body exceeds the size limit.
    #[error("larger than {} MiB", .0 >> 20)]
    TooLong(
        /// The limit in bytes.
        usize,
    ),
    /// The body ended early.
    #[error("{0}")]
    Broken(
        /// Why the rest of the body cannot be received.
        Box<dyn Error + Send + Sync>,
    ),
}

/// Bytes beyond the limit that are received and discarded: a client that is still sending when its connection
/// is closed does not read the response.
const LONGEST_REST: usize = 20 << 20;

/// Reads a body of at most `longest` bytes.
///
/// # Errors
///
/// When the body is longer or ends early.
pub async fn read_body<B>(body: B, longest: usize) -> Result<Vec<u8>, ReadRequestError>
where
    B: Body<Error: Into<Box<dyn Error + Send + Sync>>>,
{
    let mut body = pin!(body);
    let mut read = Vec::new();
    let mut length = 0_usize;
    while let Some(frame) = body.as_mut().frame().await {
        let frame = frame.map_err(|error| ReadRequestError::Broken(error.into()))?;
        let Ok(mut data) = frame.into_data() else {
            continue;
        };
        length = length.saturating_add(data.remaining());
        if length > longest {
            read = Vec::new();
        }
        if length > longest.saturating_add(LONGEST_REST) {
            break;
        }
        while data.has_remaining() {
            let chunk = data.chunk();
            if length <= longest {
                read.extend_from_slice(chunk);
            }
            data.advance(chunk.len());
        }
    }
    if length > longest {
        return Err(ReadRequestError::TooLong(longest));
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use futures::stream;
    use http_body_util::StreamBody;
    use hyper::body::Frame;

    use super::*;

    const LONGEST: usize = 20 << 20;

    /// Reads a body of `bytes` bytes in chunks; returns the length read, if any, and the number of unread
    /// chunks.
    async fn read_chunks(bytes: usize, chunk: usize) -> (Option<usize>, usize) {
        let mut left = bytes;
        let chunks = std::iter::from_fn(|| {
            let next = left.min(chunk);
            left -= next;
            (next > 0).then(|| Ok::<_, std::io::Error>(Frame::data(Bytes::from(vec![b' '; next]))))
        });
        let read = read_body(StreamBody::new(stream::iter(chunks)), LONGEST).await;
        (read.ok().map(|read| read.len()), left)
    }

    #[tokio::test]
    async fn a_body_may_be_as_long_as_the_limit() {
        const MIB: usize = 1 << 20;
        for (bytes, read, left) in [
            (0, Some(0), 0),
            (20 * MIB, Some(20 * MIB), 0),
            (20 * MIB + 1, None, 0),
            (40 * MIB, None, 0),
            (50 * MIB, None, 9 * MIB),
        ] {
            assert_eq!(read_chunks(bytes, MIB).await, (read, left), "{bytes}");
        }
    }

    #[tokio::test]
    async fn a_truncated_body_is_an_error() {
        let chunks = [
            Ok(Frame::data(Bytes::from("{}"))),
            Err(std::io::Error::other("gone")),
        ];
        let error = read_body(StreamBody::new(stream::iter(chunks)), LONGEST)
            .await
            .unwrap_err();
        assert_eq!(error.to_string(), "gone");
        let error = ReadRequestError::TooLong(LONGEST).to_string();
        assert_eq!(error, "larger than 20 MiB");
    }
}
