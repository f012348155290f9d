//! Every way to write a secret down.

use base64::{
    Engine,
    engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD},
};

/// How many bytes are looked for at a time. Whatever holds two such blocks without one byte is sure to hold one whole.
pub(super) const BLOCK: usize = 9;

/// Pieces of secrets as they would be written, each with the way in which.
#[derive(Default)]
pub(super) struct SecretPatterns {
    pub(super) pieces: Vec<Vec<u8>>,
    pub(super) ways: Vec<&'static str>,
}

// === impl Patterns ===

impl SecretPatterns {
    /// Every way to write these bytes.
    pub(super) fn add(&mut self, secret: &[u8]) {
        self.add_blocks("raw bytes", secret, BLOCK);
        self.add_encoded(secret);
        let numbers: Vec<String> = secret.iter().map(u8::to_string).collect();
        self.add_pieces("numbers", numbers.windows(BLOCK), |block| {
            block.join(",").into_bytes()
        });
        self.add_pieces("escaped text", secret.windows(BLOCK), |block| {
            squeeze(block.escape_ascii().to_string().as_bytes())
        });
    }

    /// The ways to write these bytes in letters.
    pub(super) fn add_encoded(&mut self, secret: &[u8]) {
        for skipped in 0..3 {
            let (rest, letters) = (&secret[skipped..], BLOCK / 3 * 4);
            self.add_blocks("base64", STANDARD_NO_PAD.encode(rest).as_bytes(), letters);
            self.add_blocks("base64url", URL_SAFE_NO_PAD.encode(rest).as_bytes(), letters);
        }
        let hexadecimal: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        self.add_blocks("hexadecimal", hexadecimal.as_bytes(), 2 * BLOCK);
        self.add_blocks("hexadecimal", hexadecimal.to_uppercase().as_bytes(), 2 * BLOCK);
    }

    fn add_blocks(&mut self, way: &'static str, text: &[u8], size: usize) {
        self.add_pieces(way, text.chunks_exact(size), <[u8]>::to_vec);
    }

    fn add_pieces<T>(
        &mut self,
        way: &'static str,
        pieces: impl Iterator<Item = T>,
        write: impl Fn(T) -> Vec<u8>,
    ) {
        for piece in pieces {
            self.pieces.push(write(piece));
            self.ways.push(way);
        }
    }
}

/// Text without what may break a line of it, or stand between two numbers: spaces, line breaks, their escapes,
/// backslashes.
pub(super) fn squeeze(text: &[u8]) -> Vec<u8> {
    let mut squeezed = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'\\' => {
                // `\n` is escaped again by each format that it passes through.
                let backslashes = rest.iter().take_while(|byte| **byte == b'\\').count();
                rest = &rest[backslashes..];
                if let [b'n' | b'r', after @ ..] = rest {
                    rest = after;
                }
            }
            _ if byte.is_ascii_whitespace() => {}
            _ => squeezed.push(byte),
        }
    }
    squeezed
}
