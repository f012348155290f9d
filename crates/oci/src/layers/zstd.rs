//! Consecutive zstd frames (RFC 8878 §3.1).

use std::io::{self, BufRead, Read};

use ruzstd::decoding::{
    BlockDecodingStrategy, FrameDecoder,
    errors::{FrameDecoderError, FrameHeaderError, ReadFrameHeaderError},
};

/// The content of all frames. Skippable frames, in which zstd:chunked stores its table of contents, have
/// none.
pub(super) struct ZstdFrames<R> {
    rest: R,
    decoder: FrameDecoder,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the first frame, which is required.
    Start,
    Inside,
    Between,
}

/// The maximum window of zstd: RFC 8878 §3.1.1.1.2 recommends that decoders support it.
const WINDOW: u64 = 8 << 20;

impl<R: BufRead> ZstdFrames<R> {
    pub(super) fn new(content: R) -> Self {
        let mut decoder = FrameDecoder::new();
        // The decoder allocates the window that the frame header declares.
        decoder.set_max_window_size(WINDOW);
        Self {
            rest: content,
            decoder,
            state: State::Start,
        }
    }

    /// Begins the next frame, or skips it.
    fn begin(&mut self) -> io::Result<()> {
        match self.decoder.reset(&mut self.rest) {
            Ok(()) => self.state = State::Inside,
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length, ..
            })) => {
                let length = u64::from(length);
                if io::copy(&mut (&mut self.rest).take(length), &mut io::sink())? < length {
                    let problem = "a skippable frame is cut off";
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, problem));
                }
                self.state = State::Between;
            }
            Err(
                FrameDecoderError::WindowSizeTooBig { .. }
                | FrameDecoderError::FrameHeaderError(FrameHeaderError::WindowTooBig { .. }),
            ) => {
                return Err(io::Error::other("is not zstd with a window of 8 MiB at most"));
            }
            Err(error) => return Err(io::Error::other(error)),
        }
        Ok(())
    }

    /// Ends a frame after its content.
    fn end(&mut self) -> io::Result<()> {
        let written = self.decoder.get_checksum_from_data();
        if written.is_some() && written != self.decoder.get_calculated_checksum() {
            let problem = "the checksum of a frame is not that of its content";
            return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
        }
        self.state = State::Between;
        Ok(())
    }
}

impl<R: BufRead> Read for ZstdFrames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            match self.state {
                State::Between if self.rest.fill_buf()?.is_empty() => return Ok(0),
                State::Start | State::Between => self.begin()?,
                State::Inside if self.decoder.can_collect() > 0 => return self.decoder.read(buffer),
                State::Inside if self.decoder.is_finished() => self.end()?,
                State::Inside => {
                    self.decoder
                        .decode_blocks(&mut self.rest, BlockDecodingStrategy::UptoBlocks(1))
                        .map_err(io::Error::other)?;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection, prelude::*};
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    const SKIPPED: &[u8] = b"\x50\x2a\x4d\x18\x03\x00\x00\x00xyz";

    fn frame(content: &[u8]) -> Vec<u8> {
        compress_to_vec(content, CompressionLevel::Fastest)
    }

    fn read(packed: &[u8]) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        ZstdFrames::new(packed).read_to_end(&mut content)?;
        Ok(content)
    }

    #[test]
    fn all_frames_are_read_and_skippable_ones_are_skipped() {
        let (one, two, empty) = (frame(b"one"), frame(b"two"), frame(b""));
        for (frames, expected) in [
            (vec![one.as_slice()], "one"),
            (vec![&one, &two], "onetwo"),
            (vec![&empty, &one, &empty, &two, &empty], "onetwo"),
            (vec![SKIPPED, &one, SKIPPED, SKIPPED, &two], "onetwo"),
            (vec![&one, SKIPPED], "one"),
            (vec![SKIPPED], ""),
            (vec![&empty], ""),
        ] {
            let packed = frames.concat();
            assert_eq!(read(&packed).unwrap(), expected.as_bytes(), "{packed:02x?}");
        }
    }

    #[test]
    fn truncated_frames_and_trailing_bytes_are_refused() {
        let packed = [frame(b"one"), SKIPPED.to_vec(), frame(b"two")].concat();
        let bounds = [frame(b"one").len(), frame(b"one").len() + SKIPPED.len()];
        for end in 0..packed.len() {
            // A stream may end after any frame.
            assert_eq!(read(&packed[..end]).is_ok(), bounds.contains(&end), "{end}");
        }
        read(&[&packed[..], b"more"].concat()).unwrap_err();
        read(&[&packed[..], &[0; 512]].concat()).unwrap_err();
        let mut damaged = frame(b"one");
        *damaged.last_mut().unwrap() ^= 1;
        assert!(read(&damaged).unwrap_err().to_string().contains("checksum"));
    }

    proptest! {
        #[test]
        fn concatenated_frames_are_unpacked(
            parts in collection::vec(collection::vec(any::<u8>(), 0..3000), 1..6),
        ) {
            let packed: Vec<u8> = parts.iter().flat_map(|part| frame(part)).collect();
            prop_assert_eq!(read(&packed).unwrap(), parts.concat());
        }
    }
}
