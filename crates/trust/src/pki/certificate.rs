//! A parsed X.509 certificate.

use std::{cmp::Ordering, fmt, hash};

use jiff::Timestamp;
use rustls::pki_types::CertificateDer;
use sha2::{Digest, Sha256};
use thiserror::Error;
use webpki::anchor_from_trusted_cert;
use windlass_object::text::{OneLine, hexadecimal};
use x509_parser::{
    certificate::X509Certificate,
    extensions::{GeneralName, ParsedExtension},
    prelude::FromDer,
};

use super::{DnsNames, Validity, dns_names::is_within, pem};

/// A certificate that was parsed without errors. Two are equal if their bytes are.
#[derive(Clone)]
pub struct Certificate {
    der: CertificateDer<'static>,
    facts: Facts,
}

/// Why bytes are not a certificate.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InspectError {
    /// The bytes are not X.509 in DER.
    #[error("not an X.509 certificate: {0}")]
    Malformed(String),
    /// Bytes follow the certificate.
    #[error("{0} trailing bytes after the certificate")]
    TrailingBytes(usize),
    /// A relevant extension cannot be parsed.
    #[error("cannot parse extension {0}")]
    Extension(String),
}

/// Fields of a certificate that Windlass uses.
#[derive(Clone)]
struct Facts {
    common_name: Option<String>,
    subject: Vec<u8>,
    issuer: Vec<u8>,
    serial: Vec<u8>,
    validity: Validity,
    public_key: Vec<u8>,
    dns_names: Vec<String>,
    permitted_dns_names: Option<Vec<String>>,
    subject_key_identifier: Option<Vec<u8>>,
    authority_key_identifier: Option<Vec<u8>>,
    is_authority: bool,
    path_length: Option<u32>,
}

impl Certificate {
    /// Parses a certificate in DER.
    ///
    /// # Errors
    ///
    /// If the bytes are not exactly one certificate.
    pub fn from_der(der: impl Into<Vec<u8>>) -> Result<Self, InspectError> {
        let der = der.into();
        let (rest, parsed) =
            X509Certificate::from_der(&der).map_err(|error| InspectError::Malformed(error.to_string()))?;
        if !rest.is_empty() {
            return Err(InspectError::TrailingBytes(rest.len()));
        }
        let facts = Facts::from_x509(&parsed)?;
        Ok(Self {
            der: der.into(),
            facts,
        })
    }

    /// Returns the certificate in DER.
    pub fn der(&self) -> &CertificateDer<'static> {
        &self.der
    }

    /// Returns one PEM block with a final newline.
    pub fn to_pem(&self) -> String {
        pem::encode("CERTIFICATE", &self.der)
    }

    /// Returns the SHA-256 of the DER.
    pub fn fingerprint(&self) -> [u8; 32] {
        Sha256::digest(&self.der).into()
    }

    /// Returns the common name of the subject.
    pub fn common_name(&self) -> Option<&str> {
        self.facts.common_name.as_deref()
    }

    /// Returns the encoded serial number, big endian: a positive number with a high first bit starts with 0.
    pub fn serial(&self) -> &[u8] {
        &self.facts.serial
    }

    /// Returns the period in which the certificate is valid.
    pub fn validity(&self) -> Validity {
        self.facts.validity
    }

    /// Returns the last second in which it is valid.
    pub fn not_after(&self) -> Timestamp {
        self.facts.validity.not_after
    }

    /// Returns the DNS names in order.
    pub fn dns_names(&self) -> &[String] {
        &self.facts.dns_names
    }

    /// Reports whether the certificate's DNS names are exactly `names`.
    pub fn is_for(&self, names: &DnsNames) -> bool {
        names.iter().eq(self.facts.dns_names.iter().map(String::as_str))
    }

    /// Reports whether its name constraints permit all of `names`, which is true without constraints.
    pub fn permits(&self, names: &DnsNames) -> bool {
        names.iter().all(|name| self.permits_name(name))
    }

    pub(super) fn permits_name(&self, name: &str) -> bool {
        match &self.facts.permitted_dns_names {
            Some(subtrees) => subtrees.iter().any(|subtree| is_within(name, subtree)),
            None => true,
        }
    }

    /// Returns the DNS subtrees that its name constraints permit; `None` if unrestricted.
    pub fn permitted_dns_names(&self) -> Option<&[String]> {
        self.facts.permitted_dns_names.as_deref()
    }

    /// Returns the identifier of its key.
    pub fn subject_key_identifier(&self) -> Option<&[u8]> {
        self.facts.subject_key_identifier.as_deref()
    }

    /// Returns the identifier of the key that signed it.
    pub fn authority_key_identifier(&self) -> Option<&[u8]> {
        self.facts.authority_key_identifier.as_deref()
    }

    /// Returns its public key in DER (SubjectPublicKeyInfo).
    pub fn public_key(&self) -> &[u8] {
        &self.facts.public_key
    }

    /// Reports whether this is the certificate of a CA.
    pub fn is_authority(&self) -> bool {
        self.facts.is_authority
    }

    /// Returns how many CAs may follow it in a chain; `None` if unlimited.
    pub fn path_length(&self) -> Option<u32> {
        self.facts.path_length
    }

    /// Reports whether both subjects have the same bytes.
    pub(super) fn has_same_subject(&self, other: &Self) -> bool {
        self.facts.subject == other.facts.subject
    }

    /// Reports whether `issuer` signed it and is named as issuer. Names are compared byte by byte, as in Go.
    pub fn is_signed_by(&self, issuer: &Self) -> bool {
        if self.facts.issuer != issuer.facts.subject {
            return false;
        }
        let Ok((_, parsed)) = X509Certificate::from_der(&self.der) else {
            return false;
        };
        let Ok((_, issuer)) = X509Certificate::from_der(&issuer.der) else {
            return false;
        };
        // The signature does not cover the fields around it, and x509-parser accepts variants there that Go
        // rejects: another tag, a different algorithm than the signed one (RFC 5280, 4.1.1.2), a signature of
        // partial bytes.
        anchor_from_trusted_cert(&self.der).is_ok()
            && parsed.verify_signature(Some(issuer.public_key())).is_ok()
    }
}

impl PartialEq for Certificate {
    fn eq(&self, other: &Self) -> bool {
        self.der == other.der
    }
}

impl Eq for Certificate {}

impl hash::Hash for Certificate {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        self.der.hash(state);
    }
}

/// Orders by notBefore, then by bytes, so that a set of certificates has one canonical form.
impl Ord for Certificate {
    fn cmp(&self, other: &Self) -> Ordering {
        let age = |certificate: &Self| (certificate.validity().not_before, certificate.not_after());
        age(self)
            .cmp(&age(other))
            .then_with(|| self.der.as_ref().cmp(other.der.as_ref()))
    }
}

impl PartialOrd for Certificate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate")
            .field("common_name", &self.facts.common_name)
            .field("serial", &hexadecimal(&self.facts.serial))
            .field("not_before", &self.facts.validity.not_before)
            .field("not_after", &self.facts.validity.not_after)
            .finish_non_exhaustive()
    }
}

/// Writes the common name, followed by the serial number if another certificate could have the same name.
/// Escaped, because it is part of messages and foreign certificates may have any name.
impl fmt::Display for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self
            .common_name()
            .or(self.dns_names().first().map(String::as_str));
        write!(
            f,
            "{} (serial {})",
            OneLine(name.unwrap_or("unnamed certificate")),
            hexadecimal(&self.facts.serial)
        )
    }
}

impl Facts {
    fn from_x509(parsed: &X509Certificate<'_>) -> Result<Self, InspectError> {
        let mut facts = Self {
            common_name: parsed
                .subject()
                .iter_common_name()
                .next()
                .and_then(|name| name.as_str().ok())
                .map(str::to_owned),
            subject: parsed.subject().as_raw().to_vec(),
            issuer: parsed.issuer().as_raw().to_vec(),
            serial: parsed.raw_serial().to_vec(),
            validity: parsed.validity().into(),
            public_key: parsed.public_key().raw.to_vec(),
            dns_names: Vec::new(),
            permitted_dns_names: None,
            subject_key_identifier: None,
            authority_key_identifier: None,
            is_authority: false,
            path_length: None,
        };
        for extension in parsed.extensions() {
            match extension.parsed_extension() {
                ParsedExtension::SubjectAlternativeName(names) => {
                    facts.dns_names = names.general_names.iter().filter_map(dns_name).collect();
                }
                ParsedExtension::NameConstraints(constraints) => {
                    facts.permitted_dns_names = constraints.permitted_subtrees.as_ref().map(|subtrees| {
                        subtrees
                            .iter()
                            .filter_map(|subtree| dns_name(&subtree.base))
                            .collect()
                    });
                }
                ParsedExtension::SubjectKeyIdentifier(identifier) => {
                    facts.subject_key_identifier = Some(identifier.0.to_vec());
                }
                ParsedExtension::AuthorityKeyIdentifier(identifier) => {
                    facts.authority_key_identifier = identifier
                        .key_identifier
                        .as_ref()
                        .map(|identifier| identifier.0.to_vec());
                }
                ParsedExtension::BasicConstraints(constraints) => {
                    facts.is_authority = constraints.ca;
                    facts.path_length = constraints.path_len_constraint;
                }
                ParsedExtension::ParseError { .. } => {
                    return Err(InspectError::Extension(extension.oid.to_id_string()));
                }
                _ => {}
            }
        }
        Ok(facts)
    }
}

fn dns_name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        _ => None,
    }
}
