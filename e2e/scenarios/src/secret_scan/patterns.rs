//! The encodings of a secret.

use base64::{
    Engine,
    engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD},
};

/// The length of a pattern in bytes. Any text with two such blocks, less one byte, contains a whole block.
pub(super) const BLOCK: usize = 9;

/// Encoded pieces of secrets, each with the name of its encoding.
#[derive(Default)]
pub(super) struct SecretPatterns {
    pub(super) pieces: Vec<Vec<u8>>,
    pub(super) ways: Vec<&'static str>,
}

impl SecretPatterns {
    /// Adds all encodings of these bytes.
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

    /// Adds the text encodings of these bytes.
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

/// Removes spaces, line breaks, their escapes and backslashes, which may split a line or separate numbers.
pub(super) fn squeeze(text: &[u8]) -> Vec<u8> {
    let mut squeezed = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'\\' => {
                // Each format escapes `\n` again.
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
