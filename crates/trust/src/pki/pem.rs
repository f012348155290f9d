//! Strict PEM of certificates (RFC 7468). Anything else is reported by line and without its content, which
//! might be a key.

use base64::{Engine, engine::general_purpose::STANDARD};
use thiserror::Error;

use super::{Certificate, InspectError};

/// The contents of a PEM text: certificates, and problems with the rest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PemContents {
    /// The certificates that can be parsed, in order.
    pub certificates: Vec<Certificate>,
    /// Everything else, in order.
    pub problems: Vec<UnexpectedBlock>,
}

/// Something in PEM that is not a certificate.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {fault}")]
pub struct UnexpectedBlock {
    /// The line where it starts, counted from 1.
    pub line: usize,
    /// Why it is rejected.
    pub fault: BlockFault,
}

/// Why a part of PEM is not a certificate.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BlockFault {
    /// Text outside of blocks.
    #[error("text outside of a PEM block")]
    Text,
    /// A private key in any encoding.
    #[error("a private key, which does not belong here; replace the key if it may have been exposed")]
    PrivateKey,
    /// A block of another type.
    #[error("a PEM block other than CERTIFICATE")]
    OtherBlock,
    /// A block with headers, which clients skip.
    #[error("a PEM block with headers, which clients ignore")]
    Headers,
    /// A block without an END line.
    #[error("a truncated PEM block: the END line is missing")]
    CutOff,
    /// A block that is not base64.
    #[error("a PEM block that is not base64")]
    NotBase64,
    /// A block that is not a certificate.
    #[error("a PEM block with invalid content: {0}")]
    NotACertificate(InspectError),
}

/// The problems of PEM that must contain only certificates.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}", .0.iter().map(UnexpectedBlock::to_string).collect::<Vec<_>>().join("; "))]
pub struct MalformedPem(
    /// At least one problem.
    pub Vec<UnexpectedBlock>,
);

/// A block whose END line was not read yet.
struct Block {
    line: usize,
    label: String,
    body: Vec<u8>,
    has_headers: bool,
}

impl PemContents {
    /// Reports whether everything but the certificates is skipped by clients such as Go's.
    pub fn is_usable(&self) -> bool {
        self.problems.iter().all(|problem| {
            matches!(
                problem.fault,
                BlockFault::Text | BlockFault::OtherBlock | BlockFault::Headers
            )
        })
    }
}

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

    fn finish_truncated(self, reading: &mut PemContents) {
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

/// Parses any bytes. Never fails: garbage is reported as a problem with a line.
pub fn read(bytes: &[u8]) -> PemContents {
    let mut reading = PemContents::default();
    let mut block: Option<Block> = None;
    let mut in_text = false;
    for (index, line) in bytes.split(|&byte| byte == b'\n').enumerate() {
        let line = line.trim_ascii_end();
        if let Some(label) = delimiter(line, "-----BEGIN ") {
            if let Some(block) = block.take() {
                block.finish_truncated(&mut reading);
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
                begun.finish_truncated(&mut reading);
            }
        } else if let Some(block) = &mut block {
            block.has_headers |= line.contains(&b':');
            block.body.extend_from_slice(line);
        } else if !line.is_empty() && !in_text {
            // A paragraph counts as one problem.
            in_text = true;
            reading.problems.push(UnexpectedBlock {
                line: index + 1,
                fault: BlockFault::Text,
            });
        }
    }
    if let Some(block) = block {
        block.finish_truncated(&mut reading);
    }
    reading
}

/// Parses PEM that must contain only certificates.
///
/// # Errors
///
/// If it contains anything else; the error lists all of it.
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

/// Encodes one block with 64 characters per line and a final newline.
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

/// Returns the label of a BEGIN or END line.
fn delimiter(line: &[u8], prefix: &str) -> Option<String> {
    let label = line.strip_prefix(prefix.as_bytes())?.strip_suffix(b"-----")?;
    Some(String::from_utf8_lossy(label).into_owned())
}
