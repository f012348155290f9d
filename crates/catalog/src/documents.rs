//! Splits a stream of JSON or YAML documents without parsing them.

use std::io::{self, Read};

use memchr::{memchr, memchr2};

/// The documents of a stream; only one is in memory at a time.
///
/// Like `opm`: JSON if the first character is a brace, else YAML, whose documents end at lines with `---` or
/// `...`.
pub(crate) struct Documents<R> {
    stream: R,
    limit: usize,
    format: Option<BlobFormat>,
    /// The bytes of the current and following documents.
    buffer: Vec<u8>,
    /// The start of the next document in the buffer.
    start: usize,
    /// The end of the scanned part of the buffer.
    looked: usize,
    /// Whether the stream has ended.
    ended: bool,
    /// The number of lines before the start.
    lines: usize,
    /// Whether splitting ended, for example after an error.
    failed: bool,
}

/// The format of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlobFormat {
    Json,
    Yaml,
}

/// The source text of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlobText<'a> {
    pub(crate) format: BlobFormat,
    /// The line of the stream at which it starts, from 1.
    pub(crate) line: usize,
    pub(crate) bytes: &'a [u8],
}

/// Why a stream cannot be split further.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DocumentsError {
    #[error("cannot be read: {0}")]
    Read(#[from] io::Error),
    #[error("the blob has more than {} MiB; what follows it was not read", .limit >> 20)]
    TooLarge { line: usize, limit: usize },
    #[error("the blob has more than {VALUES} values; what follows it was not read")]
    TooManyValues { line: usize },
    #[error("expected a JSON object; what follows was not read")]
    NotAnObject { line: usize },
    #[error("the JSON object does not end")]
    Unfinished { line: usize },
}

/// The maximum number of values in a blob: temporary values need far more memory than their bytes.
pub(crate) const VALUES: usize = 500_000;

/// The number of bytes per read.
const CHUNK: usize = 64 << 10;

/// The state of the scan for the closing brace.
#[derive(Default)]
struct JsonState {
    depth: usize,
    in_string: bool,
    /// A lower bound of the number of values.
    values: usize,
}

impl<R: Read> Documents<R> {
    pub(crate) fn new(stream: R, limit: usize) -> Self {
        Self {
            stream,
            limit,
            format: None,
            buffer: Vec::new(),
            start: 0,
            looked: 0,
            ended: false,
            lines: 0,
            failed: false,
        }
    }

    /// Returns the next document, which may be empty; `None` at the end, and after an error.
    pub(crate) fn next(&mut self) -> Result<Option<BlobText<'_>>, DocumentsError> {
        if self.failed {
            return Ok(None);
        }
        let found = match self.find() {
            Ok(found) => found,
            Err(error) => {
                self.failed = true;
                return Err(error);
            }
        };
        let Some((format, end)) = found else {
            return Ok(None);
        };
        let (start, line) = (self.start, self.lines + 1);
        self.lines += lines(&self.buffer[start..end]);
        (self.start, self.looked) = (end, end);
        Ok(Some(BlobText {
            format,
            line,
            bytes: &self.buffer[start..end],
        }))
    }

    fn find(&mut self) -> Result<Option<(BlobFormat, usize)>, DocumentsError> {
        if !self.skip_space()? {
            return Ok(None);
        }
        let format = *self.format.get_or_insert(match self.buffer[self.start] {
            b'{' => BlobFormat::Json,
            _ => BlobFormat::Yaml,
        });
        let end = match format {
            BlobFormat::Json => self.end_of_json()?,
            BlobFormat::Yaml => self.end_of_yaml()?,
        };
        Ok(Some((format, end)))
    }

    /// Skips to the next document; returns false at the end. In YAML, where indentation matters, only whole
    /// lines are skipped.
    fn skip_space(&mut self) -> Result<bool, DocumentsError> {
        const MARK: &[u8] = "\u{feff}".as_bytes();
        if self.format.is_none() {
            while self.buffer.len() < MARK.len() && self.read_more()? {}
            if self.buffer.starts_with(MARK) {
                self.start = MARK.len();
            }
        }
        let mut at = self.start;
        loop {
            match self.buffer.get(at) {
                Some(b'\n') => {
                    at += 1;
                    self.lines += 1;
                    self.start = at;
                }
                Some(b' ' | b'\t' | b'\r') => at += 1,
                Some(byte) => {
                    let is_json = *byte == b'{' && self.format.is_none();
                    if is_json || self.format == Some(BlobFormat::Json) {
                        self.start = at;
                    }
                    self.looked = self.start;
                    return Ok(true);
                }
                None => {
                    let before = self.start;
                    self.looked = at;
                    let more = self.read_more()?;
                    // Earlier documents are no longer in the buffer.
                    at -= before - self.start;
                    if !more {
                        return Ok(false);
                    }
                }
            }
        }
    }

    fn end_of_json(&mut self) -> Result<usize, DocumentsError> {
        let line = self.lines + 1;
        if self.buffer[self.start] != b'{' {
            return Err(DocumentsError::NotAnObject { line });
        }
        let mut state = JsonState::default();
        self.looked = self.start;
        loop {
            let unseen = &self.buffer[self.looked..];
            let (looked, is_end) = state.scan(unseen);
            self.looked += looked;
            if state.values > VALUES {
                return Err(DocumentsError::TooManyValues { line });
            }
            if is_end {
                return Ok(self.looked);
            }
            if !self.read_more()? {
                return Err(DocumentsError::Unfinished { line });
            }
        }
    }

    fn end_of_yaml(&mut self) -> Result<usize, DocumentsError> {
        // The first line of the document may be a marker itself.
        let mut is_first = true;
        self.looked = self.start;
        // Stops at an incomplete line.
        let mut searched = 0;
        loop {
            let line = &self.buffer[self.looked..];
            let newline = memchr(b'\n', &line[searched..]).map(|newline| newline + searched);
            searched = line.len();
            let end = match newline {
                Some(newline) => newline + 1,
                None if self.read_more()? => continue,
                None => searched,
            };
            searched = 0;
            let line = &self.buffer[self.looked..self.looked + end];
            if !is_first && is_marker(line, b"---") {
                return Ok(self.looked);
            }
            let is_last = is_marker(line, b"...") || newline.is_none();
            self.looked += end;
            is_first = false;
            if is_last {
                return Ok(self.looked);
            }
        }
    }

    /// Reads more bytes; returns false at the end.
    fn read_more(&mut self) -> Result<bool, DocumentsError> {
        if self.ended {
            return Ok(false);
        }
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.looked -= self.start;
            self.start = 0;
        }
        let filled = self.buffer.len();
        if filled > self.limit {
            return Err(DocumentsError::TooLarge {
                line: self.lines + 1,
                limit: self.limit,
            });
        }
        self.buffer.resize(filled + CHUNK, 0);
        let read = loop {
            match self.stream.read(&mut self.buffer[filled..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        self.buffer
            .truncate(filled + read.as_ref().copied().unwrap_or_default());
        self.ended = read? == 0;
        Ok(!self.ended)
    }
}

impl JsonState {
    /// Returns the number of scanned bytes, and whether the object ends there. The last byte may be left for
    /// the next scan.
    fn scan(&mut self, bytes: &[u8]) -> (usize, bool) {
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            if self.in_string {
                let Some(next) = memchr2(b'"', b'\\', &bytes[at..]) else {
                    return (bytes.len(), false);
                };
                at += next;
                if bytes[at] == b'"' {
                    self.in_string = false;
                    at += 1;
                } else if at + 2 <= bytes.len() {
                    at += 2;
                } else {
                    // The escaped character is not in the buffer yet.
                    return (at, false);
                }
                continue;
            }
            at += 1;
            match byte {
                b'"' => self.in_string = true,
                b'{' => {
                    self.depth += 1;
                    self.values += 1;
                }
                b'[' | b',' => self.values += 1,
                b'}' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return (at, true);
                    }
                }
                _ => {}
            }
        }
        (at, false)
    }
}

impl DocumentsError {
    /// The line of the stream, if the error has one.
    pub(crate) fn line(&self) -> Option<usize> {
        match self {
            Self::Read(_) => None,
            Self::TooLarge { line, .. }
            | Self::TooManyValues { line }
            | Self::NotAnObject { line }
            | Self::Unfinished { line } => Some(*line),
        }
    }
}

/// Reports whether a line starts with a YAML marker (YAML 1.2.2 §9.1.2), which may precede content.
fn is_marker(line: &[u8], marker: &[u8]) -> bool {
    line.strip_prefix(marker)
        .is_some_and(|rest| rest.first().is_none_or(u8::is_ascii_whitespace))
}

fn lines(bytes: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', bytes).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Yields one byte at a time.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0.read(&mut buffer[..1])
        }
    }

    fn split(stream: impl Read, limit: usize) -> (Vec<(usize, String)>, Option<String>) {
        let mut documents = Documents::new(stream, limit);
        let mut found = Vec::new();
        loop {
            match documents.next() {
                Ok(Some(document)) => {
                    let text = String::from_utf8_lossy(document.bytes).into_owned();
                    found.push((document.line, text));
                }
                Ok(None) => return (found, None),
                Err(error) => return (found, Some(error.to_string())),
            }
        }
    }

    #[test]
    fn streams_are_split_into_documents() {
        for (text, expected) in [
            ("", &[][..]),
            (" \n\n ", &[]),
            (
                "{}{\"a\": \"}\\\"{\"}\n\n {} ",
                &[(1, "{}"), (1, "{\"a\": \"}\\\"{\"}"), (3, "{}")],
            ),
            ("\u{feff}{}", &[(1, "{}")]),
            ("a: 1\n---\nb: 2", &[(1, "a: 1\n"), (2, "---\nb: 2")]),
            (
                "---\na: 1\n--- {b: 2}\n---x: 3\n",
                &[(1, "---\na: 1\n"), (3, "--- {b: 2}\n---x: 3\n")],
            ),
            (
                "a: 1\r\n---\r\nb: 2\r\n",
                &[(1, "a: 1\r\n"), (2, "---\r\nb: 2\r\n")],
            ),
            ("a: 1\n...\n\nb: 2\n", &[(1, "a: 1\n...\n"), (4, "b: 2\n")]),
            ("  a: 1\n  b: 2\n", &[(1, "  a: 1\n  b: 2\n")]),
        ] {
            let expected: Vec<_> = expected
                .iter()
                .map(|(line, text)| (*line, (*text).to_owned()))
                .collect();
            assert_eq!(
                split(text.as_bytes(), 1 << 20),
                (expected.clone(), None),
                "{text:?}"
            );
            assert_eq!(
                split(Slow(text.as_bytes()), 1 << 20),
                (expected, None),
                "{text:?}"
            );
        }
    }

    #[test]
    fn incomplete_documents_are_refused() {
        for (text, message) in [
            ("{\"a\": {}", "the JSON object does not end"),
            ("{} 5", "expected a JSON object; what follows was not read"),
            ("{\"a\": \"\\", "the JSON object does not end"),
        ] {
            assert_eq!(
                split(text.as_bytes(), 1 << 20).1.as_deref(),
                Some(message),
                "{text:?}"
            );
        }
        let many = format!("{{\"a\": [{}0]}}", "0,".repeat(VALUES));
        let said = "the blob has more than 500000 values; what follows it was not read";
        assert_eq!(split(many.as_bytes(), 4 << 20).1.as_deref(), Some(said));
        let endless = "a".repeat(3 << 20);
        let (found, error) = split(endless.as_bytes(), 1 << 20);
        assert_eq!(found, []);
        assert!(error.unwrap().starts_with("the blob has more than 1 MiB"));
    }

    proptest! {
        #[test]
        fn splitting_does_not_depend_on_chunks(text in "[{}\"\\\\a \n.-]{0,40}") {
            prop_assert_eq!(split(text.as_bytes(), 1 << 20), split(Slow(text.as_bytes()), 1 << 20));
        }

        #[test]
        fn split_objects_are_complete(objects in prop::collection::vec("\\PC{0,20}", 0..5), space in "[ \n]{0,3}") {
            let objects: Vec<String> = objects.iter().map(|text| serde_json::json!({"a": text, "{": [{}]}).to_string()).collect();
            let (found, error) = split(Slow(objects.join(&space).as_bytes()), 1 << 20);
            prop_assert_eq!(error, None);
            prop_assert_eq!(found.into_iter().map(|(_, text)| text).collect::<Vec<_>>(), objects);
        }
    }
}
