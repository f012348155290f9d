//! The search for secrets.

use aho_corasick::AhoCorasick;
use anyhow::Context;
use base64::{Engine, engine::general_purpose::STANDARD};

use super::{
    der,
    patterns::{SecretPatterns, squeeze},
    pem::{body, lines},
};

/// How many characters before a find are shown; the find itself is never shown.
const NAMED: usize = 60;

/// The secrets to search for.
#[derive(Debug)]
pub struct SecretScan {
    /// Matches all patterns in one pass.
    automaton: AhoCorasick,
    /// The encoding of each pattern.
    ways: Vec<&'static str>,
}

impl SecretScan {
    /// Prepares a search for these keys, each a PEM block (PKCS#8, SEC1 or PKCS#1).
    ///
    /// # Errors
    ///
    /// Fails if a key cannot be read.
    pub fn new<'a>(keys: impl IntoIterator<Item = &'a str>) -> anyhow::Result<Self> {
        let mut patterns = SecretPatterns::default();
        for pem in keys {
            let body = body(pem);
            let letters: String = body.split_whitespace().collect();
            let der = STANDARD.decode(&letters).context("a private key is not base64")?;
            let secrets = der::secrets(&der);
            anyhow::ensure!(!secrets.is_empty(), "a private key of an unknown form");
            for secret in secrets {
                patterns.add(&der[secret.clone()]);
                patterns.add_encoded(lines(body, &secret).as_bytes());
            }
        }
        let automaton = AhoCorasick::new(&patterns.pieces).context("too many keys to search for")?;
        Ok(Self {
            automaton,
            ways: patterns.ways,
        })
    }

    /// The positions and encodings of parts of keys in `text`, without the parts.
    pub fn find(&self, text: &[u8]) -> Vec<String> {
        let squeezed = squeeze(text);
        let as_it_is = self.find_in(text, "");
        let across_breaks = self.find_in(&squeezed, " across spaces, line breaks or escapes");
        as_it_is.into_iter().chain(across_breaks).collect()
    }

    fn find_in(&self, text: &[u8], how: &str) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        let mut end = 0;
        for hit in self.automaton.find_iter(text) {
            // One key causes many consecutive hits.
            if hit.start() > end + NAMED || found.is_empty() {
                let before =
                    String::from_utf8_lossy(&text[end.max(hit.start().saturating_sub(NAMED))..hit.start()]);
                let way = self.ways[hit.pattern().as_usize()];
                found.push(format!(
                    "holds {} bytes as {way}{how}, at byte {}, near {before:?}",
                    hit.len(),
                    hit.start()
                ));
            }
            end = hit.end();
        }
        found
    }
}
