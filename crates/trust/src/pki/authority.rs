//! A CA that may sign for one Service, and the certificates that it signs.

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, CidrSubnet, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    GeneralSubtree, IsCa, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose, NameConstraints, PublicKeyData,
    SanType, SerialNumber, SubjectPublicKeyInfo,
};
use sha2::{Digest, Sha256};
use thiserror::Error;
use windlass_object::text::hexadecimal;

use super::{
    Certificate, DnsNames, InspectError, PrivateKey, Validity, dns_names::without_wildcard,
    validity::date_time,
};

/// Length limit of a common name, in characters (RFC 5280, ub-common-name). Strict clients reject longer
/// ones.
const MAX_COMMON_NAME_LENGTH: usize = 64;

/// Path length of a root: one more CA may follow, the next root that it cross-signs.
const ROOT_PATH_LENGTH: u8 = 1;

/// Path length of a cross certificate: only leaves may follow.
const CROSS_PATH_LENGTH: u8 = 0;

/// A CA certificate and its key.
#[derive(Debug)]
pub struct CertificateAuthority {
    certificate: Certificate,
    key: PrivateKey,
}

/// Properties of a certificate that differ from one issuance to the next.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// Random bytes, read as a positive number.
    pub serial: [u8; 16],
    /// The time of issuance.
    pub now: Timestamp,
    /// The validity, which the issuer's notAfter may shorten.
    pub validity: Validity,
}

/// Why a certificate was not issued.
#[derive(Debug, Error)]
pub enum IssueError {
    /// Clients would reject the certificate because of the issuer's name constraints.
    #[error("the CA {authority} is not permitted to sign for {name}")]
    NotPermitted {
        /// The common name of the CA.
        authority: String,
        /// The first name that the CA may not sign for.
        name: String,
    },
    /// The certificate would have expired already.
    #[error("notAfter {not_after} is not after the time of issuance, {now}")]
    Ended {
        /// The time of issuance.
        now: Timestamp,
        /// When the certificate or its issuer expires.
        not_after: Timestamp,
    },
    /// The certificate to cross-sign is not a CA.
    #[error("{0} is not a CA")]
    NotAnAuthority(String),
    /// The CA was not created by Windlass, and its name cannot be reproduced byte by byte, which is how
    /// clients compare names.
    #[error("{0} is not a CA created by Windlass")]
    ForeignName(String),
    /// X.509 cannot express a time.
    #[error("time cannot be represented in X.509")]
    Time,
    /// The certificate cannot be encoded or signed.
    #[error("cannot sign a certificate")]
    Sign(#[from] rcgen::Error),
    /// The signed certificate cannot be parsed.
    #[error("cannot parse the signed certificate")]
    Inspect(#[from] InspectError),
}

/// Why a stored CA cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReadAuthorityError {
    /// The certificate may not sign.
    #[error("{0} is not a CA")]
    NotAnAuthority(String),
    /// The key belongs to another certificate.
    #[error("the private key does not match the CA certificate")]
    Mismatch,
}

impl CertificateAuthority {
    /// Creates a root that may sign only for `names`. `generation` counts the CAs of a ServingCertificate and
    /// is part of the common name, which clients log as `candidate authority certificate …`.
    ///
    /// # Errors
    ///
    /// See [`IssueError`].
    pub fn self_signed(
        names: &DnsNames,
        generation: u32,
        key: PrivateKey,
        terms: &Terms,
    ) -> Result<Self, IssueError> {
        let subtrees: Vec<_> = names.iter().map(without_wildcard).collect();
        let mut parameters = authority_parameters(
            &subtrees,
            ROOT_PATH_LENGTH,
            terms.validity_under(&[])?,
            terms.serial,
        )?;
        parameters.distinguished_name = common_name(&root_name(names.primary(), generation, &key));
        let certificate = Certificate::from_der(parameters.self_signed(key.pair())?.der().to_vec())?;
        Ok(Self { certificate, key })
    }

    /// Combines a CA certificate and its key.
    ///
    /// # Errors
    ///
    /// If the certificate is not a CA, or if the key belongs to another one.
    pub fn new(certificate: Certificate, key: PrivateKey) -> Result<Self, ReadAuthorityError> {
        if !certificate.is_authority() {
            return Err(ReadAuthorityError::NotAnAuthority(certificate.to_string()));
        }
        if !key.belongs_to(&certificate) {
            return Err(ReadAuthorityError::Mismatch);
        }
        Ok(Self { certificate, key })
    }

    /// Returns the generation in the name of a root that Windlass created.
    pub fn generation(root: &Certificate) -> Option<u32> {
        let (_, end) = root.common_name()?.rsplit_once(" CA ")?;
        end.split(' ').next()?.parse().ok()
    }

    /// Returns the CA's certificate.
    pub fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// Returns the CA's key.
    pub fn key(&self) -> &PrivateKey {
        &self.key
    }

    /// Issues a serving certificate for `names` and the public part of `key`. It expires with the CA at the
    /// latest.
    ///
    /// # Errors
    ///
    /// See [`IssueError`].
    pub fn issue(
        &self,
        names: &DnsNames,
        key: &PrivateKey,
        terms: &Terms,
    ) -> Result<Certificate, IssueError> {
        // Clients check the constraints against every name of a leaf, not only the one they dial.
        if let Some(name) = names.iter().find(|name| !self.certificate.permits_name(name)) {
            return Err(IssueError::NotPermitted {
                authority: self.certificate.to_string(),
                name: name.to_owned(),
            });
        }
        let validity = terms.validity_under(&[&self.certificate])?;
        let mut parameters = parameters(validity, terms.serial)?;
        // A long name is left out: clients read only the alternative names.
        parameters.distinguished_name = if names.primary().len() <= MAX_COMMON_NAME_LENGTH {
            common_name(names.primary())
        } else {
            DistinguishedName::new()
        };
        parameters.subject_alt_names = names
            .iter()
            .map(|name| Ok(SanType::DnsName(name.try_into()?)))
            .collect::<Result<_, rcgen::Error>>()?;
        parameters.is_ca = IsCa::ExplicitNoCa;
        parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(&parameters, key.pair())
    }

    /// Signs the key and name of another CA, so that clients that trust this CA trust certificates of the
    /// other one. It expires with the earlier of the two at the latest.
    ///
    /// # Errors
    ///
    /// See [`IssueError`].
    pub fn cross_sign(&self, other: &Certificate, terms: &Terms) -> Result<Certificate, IssueError> {
        let name = other
            .common_name()
            .filter(|_| other.is_authority())
            .ok_or_else(|| IssueError::NotAnAuthority(other.to_string()))?;
        let validity = terms.validity_under(&[&self.certificate, other])?;
        let subtrees: Vec<_> = other
            .permitted_dns_names()
            .unwrap_or_default()
            .iter()
            .map(String::as_str)
            .collect();
        let mut parameters = authority_parameters(&subtrees, CROSS_PATH_LENGTH, validity, terms.serial)?;
        parameters.distinguished_name = common_name(name);
        if let Some(identifier) = other.subject_key_identifier() {
            parameters.key_identifier_method = KeyIdMethod::PreSpecified(identifier.to_vec());
        }
        let public_key = SubjectPublicKeyInfo::from_der(other.public_key())?;
        let cross = self.sign(&parameters, &public_key)?;
        if !cross.has_same_subject(other) {
            return Err(IssueError::ForeignName(other.to_string()));
        }
        Ok(cross)
    }

    fn sign(
        &self,
        parameters: &CertificateParams,
        public_key: &impl PublicKeyData,
    ) -> Result<Certificate, IssueError> {
        let signed = parameters.signed_by(public_key, &self.issuer())?;
        let signed = Certificate::from_der(signed.der().to_vec())?;
        if !signed.is_signed_by(&self.certificate) {
            return Err(IssueError::ForeignName(self.certificate.to_string()));
        }
        Ok(signed)
    }

    fn issuer(&self) -> Issuer<'static, &KeyPair> {
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name = common_name(self.certificate.common_name().unwrap_or_default());
        if let Some(identifier) = self.certificate.subject_key_identifier() {
            parameters.key_identifier_method = KeyIdMethod::PreSpecified(identifier.to_vec());
        }
        Issuer::new(parameters, self.key.pair())
    }
}

impl Terms {
    /// Returns the validity of a certificate that must not outlive `others`.
    fn validity_under(&self, others: &[&Certificate]) -> Result<Validity, IssueError> {
        let validity = others.iter().fold(self.validity, |validity, other| {
            validity.capped(other.not_after())
        });
        if validity.not_after <= self.now.max(validity.not_before) {
            return Err(IssueError::Ended {
                now: self.now,
                not_after: validity.not_after,
            });
        }
        Ok(validity)
    }
}

fn parameters(validity: Validity, serial: [u8; 16]) -> Result<CertificateParams, IssueError> {
    let mut parameters = CertificateParams::default();
    parameters.not_before = date_time(validity.not_before).ok_or(IssueError::Time)?;
    parameters.not_after = date_time(validity.not_after).ok_or(IssueError::Time)?;
    parameters.serial_number = Some(SerialNumber::from(serial.to_vec()));
    // Key identifiers let clients pick one of several CAs with the same name, and show whose leaf is served.
    parameters.use_authority_key_identifier_extension = true;
    Ok(parameters)
}

/// A CA has no extended key usage, which would restrict what it signs, and no alternative names, to which its
/// own constraints would apply.
fn authority_parameters(
    subtrees: &[&str],
    path_length: u8,
    validity: Validity,
    serial: [u8; 16],
) -> Result<CertificateParams, IssueError> {
    let mut parameters = parameters(validity, serial)?;
    parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(path_length));
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    parameters.name_constraints = Some(constraints(subtrees));
    Ok(parameters)
}

/// Permits only these DNS names and no IP addresses. Name types that are not mentioned would be unrestricted.
fn constraints(subtrees: &[&str]) -> NameConstraints {
    NameConstraints {
        permitted_subtrees: subtrees
            .iter()
            .map(|&name| GeneralSubtree::DnsName(name.to_owned()))
            .collect(),
        excluded_subtrees: vec![
            GeneralSubtree::IpAddress(CidrSubnet::from_v4_prefix([0; 4], 0)),
            GeneralSubtree::IpAddress(CidrSubnet::from_v6_prefix([0; 16], 0)),
        ],
    }
}

/// Contains the Service, the generation and a hash of the key, for users who read a client's error.
fn root_name(service: &str, generation: u32, key: &PrivateKey) -> String {
    let hash = hexadecimal(&Sha256::digest(key.public_key())[..4]);
    let end = format!(" CA {generation} {hash}");
    let room = MAX_COMMON_NAME_LENGTH.saturating_sub(end.len());
    let service: String = service.chars().take(room).collect();
    service + &end
}

fn common_name(name: &str) -> DistinguishedName {
    let mut distinguished_name = DistinguishedName::new();
    distinguished_name.push(DnType::CommonName, name);
    distinguished_name
}
