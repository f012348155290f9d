//! Digests of content: `algorithm:hex`.

use std::{fmt, str::FromStr};

use sha2::{Digest as _, Sha256, Sha512};

/// The digest of a manifest or a blob (OCI image specification, descriptor.md): SHA-256 or SHA-512, in lower case.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContentDigest(String);

/// Hashes a stream, to compare it with a digest.
pub struct DigestVerifier {
    expected: ContentDigest,
    hash: Hash,
}

enum Hash {
    Sha256(Sha256),
    Sha512(Box<Sha512>),
}

/// The text is not a digest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not a digest: it must be sha256: and 64 digits, or sha512: and 128, of 0-9 and a-f")]
pub struct DigestError;

impl ContentDigest {
    /// The SHA-256 digest of `content`.
    pub fn compute(content: &[u8]) -> Self {
        Self(format!("sha256:{}", hexadecimal(&Sha256::digest(content))))
    }

    /// The digest as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Creates a verifier for content with this digest.
    pub fn verifier(&self) -> DigestVerifier {
        let hash = if self.0.starts_with("sha512:") {
            Hash::Sha512(Box::default())
        } else {
            Hash::Sha256(Sha256::new())
        };
        DigestVerifier {
            expected: self.clone(),
            hash,
        }
    }
}

impl FromStr for ContentDigest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let (algorithm, digits) = text.split_once(':').ok_or(DigestError)?;
        let length = match algorithm {
            "sha256" => 64,
            "sha512" => 128,
            _ => return Err(DigestError),
        };
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if digits.len() == length && digits.bytes().all(is_digit) {
            Ok(Self(text.to_owned()))
        } else {
            Err(DigestError)
        }
    }
}

impl fmt::Display for ContentDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> serde::Deserialize<'de> for ContentDigest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl serde::Serialize for ContentDigest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl DigestVerifier {
    /// Hashes the next part.
    pub fn update(&mut self, part: &[u8]) {
        match &mut self.hash {
            Hash::Sha256(hash) => hash.update(part),
            Hash::Sha512(hash) => hash.update(part),
        }
    }

    /// Compares the hash of all parts with the digest.
    ///
    /// # Errors
    ///
    /// The actual digest, if it differs.
    pub fn finish(self) -> Result<(), ContentDigest> {
        let actual = match self.hash {
            Hash::Sha256(hash) => format!("sha256:{}", hexadecimal(&hash.finalize())),
            Hash::Sha512(hash) => format!("sha512:{}", hexadecimal(&hash.finalize())),
        };
        if actual == self.expected.0 {
            Ok(())
        } else {
            Err(ContentDigest(actual))
        }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    use fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_match_those_of_coreutils() {
        // The empty content; values from sha256sum and sha512sum.
        let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(ContentDigest::compute(b"").as_str(), empty);
        let long = "sha512:cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e";
        assert_eq!(long.parse::<ContentDigest>().unwrap().verifier().finish(), Ok(()));
        let mut verifier = long.parse::<ContentDigest>().unwrap().verifier();
        verifier.update(b"x");
        assert!(verifier.finish().is_err());
    }

    #[test]
    fn invalid_digests_are_refused() {
        for text in [
            "",
            "sha256:",
            "sha256:AB",
            "md5:00",
            &format!("sha256:{}", "A".repeat(64)),
            &"0".repeat(64),
        ] {
            assert_eq!(text.parse::<ContentDigest>(), Err(DigestError), "{text}");
        }
    }
}
