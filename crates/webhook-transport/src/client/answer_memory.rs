//! A shared limit on the memory of answers.

use std::{future::pending, sync::Arc};

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Memory that the answers of a transport share, from the first byte read until the last clone of an answer
/// is dropped.
///
/// # Guarantees
///
/// - An answer of at most [`SMALL`] bytes never waits.
/// - All larger answers together take at most the shared memory plus one answer of the largest size, and half of that for a copy
///   while an answer grows.
/// - Answers cannot deadlock waiting for memory: one at a time may grow to the largest size outside the shared memory.
#[derive(Clone)]
pub(super) struct AnswerMemory {
    largest: usize,
    /// One permit for each KiB.
    shared: Arc<Semaphore>,
    /// One permit, for an answer that grows to the largest size outside the shared memory.
    spare: Arc<Semaphore>,
}

/// An answer that is being read.
pub(super) struct GrowingAnswer {
    memory: AnswerMemory,
    bytes: Vec<u8>,
    allowance: Allowance,
}

/// The memory that one answer may take.
#[derive(Default)]
struct Allowance {
    bytes: usize,
    shared: Option<OwnedSemaphorePermit>,
    spare: Option<OwnedSemaphorePermit>,
}

/// A complete answer; its memory is released when it is dropped.
struct HeldAnswer {
    bytes: Vec<u8>,
    _allowance: Allowance,
}

/// The answer exceeds the size limit.
pub(super) struct TooLargeError;

/// Bytes that every answer may have without waiting. Typical answers of hooks and interpreters are far
/// smaller.
pub(super) const SMALL: usize = 64 << 10;

const KIB: usize = 1 << 10;

impl AnswerMemory {
    /// Creates memory for answers of at most `largest` bytes each, which share `shared` bytes.
    pub(super) fn new(largest: usize, shared: usize) -> Self {
        Self {
            largest,
            shared: Arc::new(Semaphore::new((shared / KIB).min(Semaphore::MAX_PERMITS))),
            spare: Arc::new(Semaphore::new(1)),
        }
    }

    /// Returns an empty answer to read into.
    pub(super) fn answer(&self) -> GrowingAnswer {
        GrowingAnswer {
            memory: self.clone(),
            bytes: Vec::new(),
            allowance: Allowance {
                bytes: self.largest.min(SMALL),
                ..Allowance::default()
            },
        }
    }

    /// Waits for permission to double the allowance, up to the largest size.
    async fn grow(&self, allowance: &mut Allowance) {
        let next = (allowance.bytes * 2).min(self.largest);
        let more = (next - allowance.bytes).div_ceil(KIB);
        let shared = async {
            match u32::try_from(more) {
                Ok(more) => self.shared.clone().acquire_many_owned(more).await,
                Err(_) => pending().await,
            }
        };
        tokio::select! {
            biased;
            Ok(permit) = shared => {
                allowance.bytes = next;
                match &mut allowance.shared {
                    Some(held) => held.merge(permit),
                    held => *held = Some(permit),
                }
            }
            Ok(permit) = self.spare.clone().acquire_owned() => {
                allowance.bytes = self.largest;
                // Returns its share of the shared memory to waiting answers.
                allowance.shared = None;
                allowance.spare = Some(permit);
            }
            // Neither semaphore is ever closed.
            else => {}
        }
    }
}

impl GrowingAnswer {
    /// Appends bytes, after waiting for memory if necessary.
    pub(super) async fn extend(&mut self, read: &[u8]) -> Result<(), TooLargeError> {
        let length = self.bytes.len() + read.len();
        if length > self.memory.largest {
            return Err(TooLargeError);
        }
        while length > self.allowance.bytes {
            self.memory.grow(&mut self.allowance).await;
        }
        if length > self.bytes.capacity() {
            let room = (length * 2).min(self.allowance.bytes);
            self.bytes.reserve_exact(room - self.bytes.len());
        }
        self.bytes.extend_from_slice(read);
        Ok(())
    }

    /// Returns all bytes. Their memory is released when the last clone is dropped.
    pub(super) fn into_bytes(self) -> Bytes {
        let Self { bytes, allowance, .. } = self;
        if allowance.shared.is_none() && allowance.spare.is_none() {
            return bytes.into();
        }
        Bytes::from_owner(HeldAnswer {
            bytes,
            _allowance: allowance,
        })
    }
}

impl AsRef<[u8]> for HeldAnswer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::FutureExt;
    use tokio::time::timeout;

    use super::*;

    const LARGEST: usize = 8 * SMALL;

    async fn read(answer: &mut GrowingAnswer, count: usize) -> Result<(), TooLargeError> {
        for part in vec![b'x'; count].chunks(SMALL / 4) {
            answer.extend(part).await?;
        }
        Ok(())
    }

    fn reads_without_waiting(answer: &mut GrowingAnswer, count: usize) -> bool {
        read(answer, count).now_or_never().is_some()
    }

    #[tokio::test]
    async fn small_answers_never_wait() {
        let memory = AnswerMemory::new(LARGEST, 0);
        let mut large = memory.answer();
        assert!(reads_without_waiting(&mut large, LARGEST));
        for _ in 0..100 {
            let mut answer = memory.answer();
            assert!(reads_without_waiting(&mut answer, SMALL));
            assert_eq!(answer.into_bytes().len(), SMALL);
        }
        assert!(!reads_without_waiting(&mut memory.answer(), SMALL + 1));
    }

    #[tokio::test]
    async fn large_answers_share_memory_until_they_are_dropped() {
        let memory = AnswerMemory::new(LARGEST, LARGEST);
        let mut first = memory.answer();
        assert!(reads_without_waiting(&mut first, LARGEST));
        // The spare permit allows a second one.
        let mut second = memory.answer();
        assert!(reads_without_waiting(&mut second, LARGEST));
        // The third gets the shared memory that the first released: twice `SMALL`.
        let mut third = memory.answer();
        assert!(reads_without_waiting(&mut third, 2 * SMALL));
        assert!(!reads_without_waiting(&mut third, SMALL));

        let (first, second) = (first.into_bytes(), second.into_bytes());
        let clone = first.slice(1..2);
        drop(first);
        assert!(!reads_without_waiting(&mut third, SMALL));
        drop(clone);
        assert!(reads_without_waiting(&mut third, SMALL));
        assert_eq!(second.len(), LARGEST);
    }

    #[tokio::test]
    async fn an_answer_above_the_limit_is_rejected() {
        let memory = AnswerMemory::new(LARGEST, LARGEST);
        let mut answer = memory.answer();
        assert!(read(&mut answer, LARGEST).await.is_ok());
        assert!(answer.extend(b"x").await.is_err());
        // The largest size may be below `SMALL`.
        let mut answer = AnswerMemory::new(2, 0).answer();
        assert!(answer.extend(b"xx").await.is_ok());
        assert!(answer.extend(b"x").await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn concurrent_large_answers_do_not_deadlock() {
        let memory = AnswerMemory::new(LARGEST, LARGEST / 2);
        let answers = (0..20).map(|_| async {
            let mut answer = memory.answer();
            for _ in 0..LARGEST / SMALL {
                read(&mut answer, SMALL).await.ok();
                tokio::task::yield_now().await;
            }
            answer.into_bytes().len()
        });
        let read = timeout(Duration::from_secs(1), futures::future::join_all(answers)).await;
        assert_eq!(read.unwrap(), vec![LARGEST; 20]);
    }

    #[tokio::test]
    async fn a_dropped_answer_releases_its_memory() {
        let memory = AnswerMemory::new(LARGEST, LARGEST);
        for _ in 0..10 {
            let mut one = memory.answer();
            let mut other = memory.answer();
            let mut third = memory.answer();
            assert!(reads_without_waiting(&mut one, LARGEST) && reads_without_waiting(&mut other, LARGEST));
            // The third answer is dropped while it waits.
            assert!(!reads_without_waiting(&mut third, LARGEST));
        }
        assert_eq!(memory.shared.available_permits(), LARGEST / KIB);
        assert_eq!(memory.spare.available_permits(), 1);
    }
}
