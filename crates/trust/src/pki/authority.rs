//! A CA that may sign for one Service, and what it signs.

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

/// The longest common name, in characters (RFC 5280, ub-common-name). Longer ones are refused by strict clients.
const LONGEST_COMMON_NAME: usize = 64;

/// A root may be followed by one CA: the next root, cross-signed by it.
const ROOT_PATH_LENGTH: u8 = 1;

/// A cross certificate is followed by leaves only.
const CROSS_PATH_LENGTH: u8 = 0;

/// A CA certificate and its key.
#[derive(Debug)]
pub struct CertificateAuthority {
    certificate: Certificate,
    key: PrivateKey,
}

/// What makes one certificate differ from the one issued before it.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// Random bytes, read as a positive number.
    pub serial: [u8; 16],
    /// When it is issued.
    pub now: Timestamp,
    /// When it is valid; less where its issuer ends before.
    pub validity: Validity,
}

/// Why a certificate was not issued.
#[derive(Debug, Error)]
pub enum IssueError {
    /// The issuer's constraints make clients refuse the certificate.
    #[error("the CA {authority} is not permitted to sign for {name}")]
    NotPermitted {
        /// The common name of the CA.
        authority: String,
        /// The first name that it must not sign for.
        name: String,
    },
    /// It would have ended already.
    #[error("notAfter {not_after} is not after the time of issuance, {now}")]
    Ended {
        /// When it is issued.
        now: Timestamp,
        /// When it or its issuer ends.
        not_after: Timestamp,
    },
    /// What should be cross-signed is not a CA.
    #[error("{0} is not a CA")]
    NotAnAuthority(String),
    /// A CA that Windlass did not make has a name that it cannot write again byte by byte, as clients compare it.
    #[error("{0} is not a CA created by Windlass")]
    ForeignName(String),
    /// X.509 cannot express a time.
    #[error("time cannot be represented in X.509")]
    Time,
    /// The certificate cannot be encoded or signed.
    #[error("cannot sign a certificate")]
    Sign(#[from] rcgen::Error),
    /// What was signed cannot be read.
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

// === impl CertificateAuthority ===

impl CertificateAuthority {
    /// Makes a root that may sign for `names` and nothing else. `generation` counts the CAs of a ServingCertificate
    /// and goes into the common name, for whoever reads `candidate authority certificate …` in a log.
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

    /// Puts a CA certificate and its key together.
    ///
    /// # Errors
    ///
    /// When it is not a CA, or the key is another's.
    pub fn new(certificate: Certificate, key: PrivateKey) -> Result<Self, ReadAuthorityError> {
        if !certificate.is_authority() {
            return Err(ReadAuthorityError::NotAnAuthority(certificate.to_string()));
        }
        if !key.belongs_to(&certificate) {
            return Err(ReadAuthorityError::Mismatch);
        }
        Ok(Self { certificate, key })
    }

    /// The generation that the name of such a root says.
    pub fn generation(root: &Certificate) -> Option<u32> {
        let (_, end) = root.common_name()?.rsplit_once(" CA ")?;
        end.split(' ').next()?.parse().ok()
    }

    /// The CA's certificate.
    pub fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// The CA's key.
    pub fn key(&self) -> &PrivateKey {
        &self.key
    }

    /// Issues a serving certificate for `names` and the public half of `key`. It ends when the CA ends, if not before.
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
        // Clients check the constraints against every name of a leaf, not only against the one they dial.
        if let Some(name) = names.iter().find(|name| !self.certificate.permits_name(name)) {
            return Err(IssueError::NotPermitted {
                authority: self.certificate.to_string(),
                name: name.to_owned(),
            });
        }
        let validity = terms.validity_under(&[&self.certificate])?;
        let mut parameters = parameters(validity, terms.serial)?;
        // Without a common name where it would be too long; clients look at the alternative names only.
        parameters.distinguished_name = if names.primary().len() <= LONGEST_COMMON_NAME {
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

    /// Signs the key and the name of another CA, so that whoever trusts this CA trusts what the other one signs. Ends
    /// when the first of both does, if not before.
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
        if !cross.is_namesake_of(other) {
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

// === impl Terms ===

impl Terms {
    /// The validity of what cannot outlive `others`.
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
    // With it clients find the right one of several CAs with one name, and we see whose leaf is served.
    parameters.use_authority_key_identifier_extension = true;
    Ok(parameters)
}

/// A CA has no extended key usage: it would limit what it signs. It has no alternative names: its own constraints
/// would apply to them.
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

/// Only these DNS names, and no IP address: kinds of names that are not mentioned would all be permitted.
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

/// Which Service's CA, which one in the row, and which key: for people who read an error of a client.
fn root_name(service: &str, generation: u32, key: &PrivateKey) -> String {
    let hash = hexadecimal(&Sha256::digest(key.public_key())[..4]);
    let end = format!(" CA {generation} {hash}");
    let room = LONGEST_COMMON_NAME.saturating_sub(end.len());
    let service: String = service.chars().take(room).collect();
    service + &end
}

fn common_name(name: &str) -> DistinguishedName {
    let mut distinguished_name = DistinguishedName::new();
    distinguished_name.push(DnType::CommonName, name);
    distinguished_name
}
