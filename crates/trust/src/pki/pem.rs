//! Strict PEM of certificates (RFC 7468). Everything that is not a certificate is reported with its line, and nothing
//! of its content, which might be a key.

use base64::{Engine, engine::general_purpose::STANDARD};
use thiserror::Error;

use super::{Certificate, InspectError};

/// What a text in PEM holds: certificates, and all that is wrong with the rest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PemContents {
    /// The certificates that can be read, in order.
    pub certificates: Vec<Certificate>,
    /// What else is there, in order.
    pub problems: Vec<UnexpectedBlock>,
}

/// Something in PEM that is not a certificate.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {fault}")]
pub struct UnexpectedBlock {
    /// Where it begins, counted from 1.
    pub line: usize,
    /// Why clients cannot use it, or should not be given it.
    pub fault: BlockFault,
}

/// What can be in PEM that is not a certificate.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BlockFault {
    /// Text outside of blocks.
    #[error("text outside of a PEM block")]
    Text,
    /// A private key, in any of its encodings.
    #[error("a private key, which does not belong here; replace the key if it may have been exposed")]
    PrivateKey,
    /// A block of another kind.
    #[error("a PEM block other than CERTIFICATE")]
    OtherBlock,
    /// A block with headers, which clients skip.
    #[error("a PEM block with headers, which clients ignore")]
    Headers,
    /// A block without its end.
    #[error("a truncated PEM block: the END line is missing")]
    CutOff,
    /// A block of something else than base64.
    #[error("a PEM block that is not base64")]
    NotBase64,
    /// A block of something else than a certificate.
    #[error("a PEM block with invalid content: {0}")]
    NotACertificate(InspectError),
}

/// All that is wrong with PEM that should only hold certificates.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}", .0.iter().map(UnexpectedBlock::to_string).collect::<Vec<_>>().join("; "))]
pub struct MalformedPem(
    /// The problems, at least one.
    pub Vec<UnexpectedBlock>,
);

/// A block that has begun.
struct Block {
    line: usize,
    label: String,
    body: Vec<u8>,
    has_headers: bool,
}

// === impl PemContents ===

impl PemContents {
    /// Whether there is nothing beside the certificates but what clients such as Go's skip.
    pub fn is_usable(&self) -> bool {
        self.problems.iter().all(|problem| {
            matches!(
                problem.fault,
                BlockFault::Text | BlockFault::OtherBlock | BlockFault::Headers
            )
        })
    }
}

// === impl Block ===

impl Block {
    fn finish(self, reading: &mut PemContents) {
        let line = self.line;
        match self.certificate() {
            Ok(certificate) => reading.certificates.push(certificate),
            Err(fault) => reading.problems.push(UnexpectedBlock { line, fault }),
        }
    }

    fn certificate(self) -> Result<Certificate, BlockFault> {
        if self.is_private_key() {
            return Err(BlockFault::PrivateKey);
        }
        if self.label != "CERTIFICATE" {
            return Err(BlockFault::OtherBlock);
        }
        if self.has_headers {
            return Err(BlockFault::Headers);
        }
        let der = STANDARD.decode(&self.body).map_err(|_| BlockFault::NotBase64)?;
        Certificate::from_der(der).map_err(BlockFault::NotACertificate)
    }

    fn cut_off(self, reading: &mut PemContents) {
        let fault = if self.is_private_key() {
            BlockFault::PrivateKey
        } else {
            BlockFault::CutOff
        };
        reading.problems.push(UnexpectedBlock {
            line: self.line,
            fault,
        });
    }

    fn is_private_key(&self) -> bool {
        self.label.contains("PRIVATE KEY")
    }
}

/// Reads whatever is there. Never fails: garbage is a problem with a line.
pub fn read(bytes: &[u8]) -> PemContents {
    let mut reading = PemContents::default();
    let mut block: Option<Block> = None;
    let mut in_text = false;
    for (index, line) in bytes.split(|&byte| byte == b'\n').enumerate() {
        let line = line.trim_ascii_end();
        if let Some(label) = delimiter(line, "-----BEGIN ") {
            if let Some(block) = block.take() {
                block.cut_off(&mut reading);
            }
            block = Some(Block {
                line: index + 1,
                label,
                body: Vec::new(),
                has_headers: false,
            });
            in_text = false;
        } else if let Some(label) = delimiter(line, "-----END ")
            && let Some(begun) = block.take()
        {
            if begun.label == label {
                begun.finish(&mut reading);
            } else {
                begun.cut_off(&mut reading);
            }
        } else if let Some(block) = &mut block {
            block.has_headers |= line.contains(&b':');
            block.body.extend_from_slice(line);
        } else if !line.is_empty() && !in_text {
            // One problem for a whole paragraph.
            in_text = true;
            reading.problems.push(UnexpectedBlock {
                line: index + 1,
                fault: BlockFault::Text,
            });
        }
    }
    if let Some(block) = block {
        block.cut_off(&mut reading);
    }
    reading
}

/// Reads PEM that holds certificates and nothing else.
///
/// # Errors
///
/// When there is anything else; all of it is named.
pub fn parse(bytes: &[u8]) -> Result<Vec<Certificate>, MalformedPem> {
    let PemContents {
        certificates,
        problems,
    } = read(bytes);
    if problems.is_empty() {
        Ok(certificates)
    } else {
        Err(MalformedPem(problems))
    }
}

/// One block, 64 characters a line, with a newline at its end.
pub(super) fn encode(label: &str, content: &[u8]) -> String {
    let mut pem = format!("-----BEGIN {label}-----\n");
    for (index, character) in STANDARD.encode(content).chars().enumerate() {
        if index > 0 && index % 64 == 0 {
            pem.push('\n');
        }
        pem.push(character);
    }
    pem.push_str(&format!("\n-----END {label}-----\n"));
    pem
}

/// The label of a line that begins or ends a block.
fn delimiter(line: &[u8], prefix: &str) -> Option<String> {
    let label = line.strip_prefix(prefix.as_bytes())?.strip_suffix(b"-----")?;
    Some(String::from_utf8_lossy(label).into_owned())
}
