//! The search.

use aho_corasick::AhoCorasick;
use anyhow::Context;
use base64::{Engine, engine::general_purpose::STANDARD};

use super::{
    der,
    patterns::{SecretPatterns, squeeze},
    pem::{body, lines},
};

/// How many characters of text on either side of a find are told apart from others; the find itself is never shown.
const NAMED: usize = 60;

/// What to look for.
#[derive(Debug)]
pub struct SecretScan {
    /// Finds all patterns at once.
    automaton: AhoCorasick,
    /// Of each pattern, in what way it is written.
    ways: Vec<&'static str>,
}

// === impl SecretScan ===

impl SecretScan {
    /// A search for these keys, each a block of PEM (PKCS#8, SEC1 or PKCS#1).
    ///
    /// # Errors
    ///
    /// When one of them cannot be read.
    pub fn of<'a>(keys: impl IntoIterator<Item = &'a str>) -> anyhow::Result<Self> {
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
        let automaton = AhoCorasick::new(&patterns.pieces).context("there are too many keys to look for")?;
        Ok(Self {
            automaton,
            ways: patterns.ways,
        })
    }

    /// Where in `text` parts of keys are, and in what way they are written; never what was found.
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
            // One key is many hits in a row.
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
