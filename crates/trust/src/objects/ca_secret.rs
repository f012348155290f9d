//! The Secret with the CAs of one ServingCertificate: their state as JSON, and the PEM of each.

use serde_json::{Value, json};
use windlass_object::{InCluster, ObjectKey, names, object};
use zeroize::Zeroizing;

use super::{
    certificate_store::{CertificateStore, UnknownCertificate, summary},
    secret::{CertificateRequirements, encoded, label_value, shortened},
    stored_state::{self, StoredCertificates, StoredState},
};
use crate::{
    pki::{self, CertificateAuthority, PrivateKey, pem},
    rotation::{Ca, CaState, CertificateId},
};

/// The contents of the Secret.
#[derive(Debug)]
pub struct CaSecret {
    /// `metadata.resourceVersion`, which must be unchanged on a write.
    pub version: String,
    /// State of the CAs. CAs whose certificate is lost or damaged are left out.
    pub authorities: CaState,
}

/// Key of [`CaState`] as JSON, with a format version.
const STATE: &str = "state.json";

/// Key of the certificates that are still trusted but no longer sign.
const RETIRING: &str = "retiring.crt";

/// Key of the cross certificate: the current CA's key, signed by the previous CA.
const CROSS: &str = "cross.crt";

/// Length limit of a Secret name, in characters.
const MAX_NAME_LENGTH: usize = 253;

/// The keys of the current or of the next CA in the Secret.
struct Place {
    certificate: &'static str,
    key: &'static str,
}

const CURRENT: Place = Place {
    certificate: "current.crt",
    key: "current.key",
};

const NEXT: Place = Place {
    certificate: "next.crt",
    key: "next.key",
};

impl CaSecret {
    /// Returns the key of the Secret, which is in the operator's namespace.
    pub fn key(own_namespace: &str, certificate: &ObjectKey) -> ObjectKey {
        let namespace = certificate.namespace.as_deref().unwrap_or_default();
        // A namespace name has no dot, so two ServingCertificates never share a Secret.
        let name = format!("{namespace}.{}", certificate.name);
        ObjectKey {
            cluster: InCluster::Local,
            api_version: "v1".to_owned(),
            kind: "Secret".to_owned(),
            namespace: Some(own_namespace.to_owned()),
            name: shortened(&name, MAX_NAME_LENGTH),
        }
    }

    /// Returns namespace and name of the ServingCertificate that a CA Secret belongs to; `None` for any other
    /// object.
    pub fn owner(secret: &Value) -> Option<(&str, &str)> {
        let namespace = object::label(secret, names::SERVING_CERTIFICATE_NAMESPACE)?;
        let name = object::annotation(secret, names::SERVING_CERTIFICATE)?;
        Some((namespace, name))
    }

    /// Reports whether `secret` was created for this ServingCertificate.
    pub fn was_created_for(secret: &Value, certificate: &ObjectKey) -> bool {
        Self::owner(secret).is_some_and(|(namespace, name)| {
            certificate.namespace.as_deref() == Some(namespace) && certificate.name == name
        })
    }

    /// Returns why the Secret must not be replaced, or `None` if it may be read and replaced.
    pub fn objection(secret: &Value) -> Option<String> {
        let state = object::data(secret, STATE);
        let StoredState::Newer(version) = StoredState::read(state.as_deref()) else {
            return None;
        };
        Some(format!(
            "a newer version of Windlass wrote its {STATE} (version {version}): upgrade Windlass"
        ))
    }

    /// Reads the Secret. Damaged entries count as lost, so a rotation replaces them. CAs that the state does
    /// not mention are restored from their certificates and keys.
    pub fn read(
        secret: &Value,
        requirements: &CertificateRequirements<'_>,
        certificates: &mut CertificateStore,
    ) -> Self {
        let stored = StoredCertificates {
            current: read_pem(secret, CURRENT.certificate),
            next: read_pem(secret, NEXT.certificate),
            retiring: read_pem(secret, RETIRING),
            cross: read_pem(secret, CROSS),
        };
        for certificate in stored.iter() {
            certificates.insert(certificate);
        }
        let mut authorities = match StoredState::read(object::data(secret, STATE).as_deref()) {
            StoredState::Read(authorities) => *authorities,
            StoredState::Newer(_) | StoredState::Unreadable => stored.state(),
        };
        for (authority, place) in [(&mut authorities.current, CURRENT), (&mut authorities.next, NEXT)] {
            *authority = authority.and_then(|stored| {
                let certificate = matching_certificate(&stored.certificate, certificates)?;
                let signer = signer(secret, &place, certificate);
                let is_of_kind = signer
                    .as_ref()
                    .is_none_or(|signer| signer.key().algorithm() == requirements.algorithm);
                let observed = Ca {
                    has_key: signer.is_some(),
                    matches_spec: certificate.permits(requirements.names) && is_of_kind,
                    ..stored
                };
                Some(observed)
            });
        }
        authorities.retiring.retain(|stored| {
            matching_certificate(stored, certificates)
                .is_some_and(|root| root.is_authority() && root.is_signed_by(root))
        });
        authorities.cross = authorities
            .cross
            .filter(|stored| matching_certificate(stored, certificates).is_some());
        Self {
            version: object::text(secret, "/metadata/resourceVersion")
                .unwrap_or_default()
                .to_owned(),
            authorities,
        }
    }

    /// Returns the CAs whose keys are in the Secret. Keep them in memory only while signing.
    pub fn signers(secret: &Value) -> Vec<CertificateAuthority> {
        let of = |place: Place| {
            let certificates = read_pem(secret, place.certificate);
            signer(secret, &place, certificates.first()?)
        };
        [CURRENT, NEXT].into_iter().filter_map(of).collect()
    }

    /// Returns the Secret `key` with `authorities`, at the resourceVersion that it replaces. It leaves out
    /// the keys of CAs that no longer sign.
    ///
    /// # Errors
    ///
    /// If a certificate in `authorities` was not loaded.
    pub fn write(
        key: &ObjectKey,
        certificate: &ObjectKey,
        replacing: Option<&str>,
        authorities: &CaState,
        signers: &[CertificateAuthority],
        certificates: &CertificateStore,
    ) -> Result<Value, WriteAuthoritiesError> {
        let mut secret = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": key.name,
                "namespace": key.namespace,
                "labels": {
                    names::SERVING_CERTIFICATE: label_value(&certificate.name),
                    names::SERVING_CERTIFICATE_NAMESPACE: certificate.namespace,
                },
                "annotations": { names::SERVING_CERTIFICATE: certificate.name },
            },
            "type": "Opaque",
        });
        if let Some(version) = replacing {
            secret["metadata"]["resourceVersion"] = version.into();
        }
        let data = &mut secret["data"];
        data[STATE] = encoded(stored_state::write(authorities)?);
        for (authority, place) in [(&authorities.current, CURRENT), (&authorities.next, NEXT)] {
            let Some(authority) = authority else { continue };
            let certificate = certificates.find(&authority.certificate)?;
            data[place.certificate] = encoded(certificate.to_pem());
            if let Some(signer) = signers.iter().find(|signer| signer.certificate() == certificate) {
                data[place.key] = encoded(signer.key().to_pem());
            }
        }
        for (key, several) in [
            (RETIRING, authorities.retiring.as_slice()),
            (CROSS, authorities.cross.as_slice()),
        ] {
            let pem = several
                .iter()
                .map(|certificate| Ok(certificates.find(certificate)?.to_pem()))
                .collect::<Result<String, UnknownCertificate>>()?;
            if !pem.is_empty() {
                data[key] = encoded(pem);
            }
        }
        Ok(secret)
    }
}

/// Why the CAs cannot be stored.
#[derive(Debug, thiserror::Error)]
pub enum WriteAuthoritiesError {
    /// A certificate is missing.
    #[error(transparent)]
    Unknown(#[from] UnknownCertificate),
    /// The state cannot be encoded as JSON.
    #[error("cannot encode the state of the CAs")]
    Encode(#[from] serde_json::Error),
}

fn read_pem(secret: &Value, key: &str) -> Vec<pki::Certificate> {
    object::data(secret, key)
        .map(|pem| pem::read(&pem).certificates)
        .unwrap_or_default()
}

/// Returns the loaded certificate, if it matches the state.
fn matching_certificate<'a>(
    stored: &CertificateId,
    certificates: &'a CertificateStore,
) -> Option<&'a pki::Certificate> {
    let certificate = certificates.find(stored).ok()?;
    (summary(certificate) == *stored).then_some(certificate)
}

fn signer(secret: &Value, place: &Place, certificate: &pki::Certificate) -> Option<CertificateAuthority> {
    let pem = Zeroizing::new(object::data(secret, place.key)?);
    let key = PrivateKey::from_pem(&pem).ok()?;
    CertificateAuthority::new(certificate.clone(), key).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        objects::Mint,
        pki::{DnsNames, KeyAlgorithm, sample},
        rotation::{CaChange, CaTemplate, Timing},
    };

    fn certificate() -> ObjectKey {
        ObjectKey {
            cluster: InCluster::Local,
            api_version: names::API_VERSION.to_owned(),
            kind: "ServingCertificate".to_owned(),
            namespace: Some("system".to_owned()),
            name: "hook".to_owned(),
        }
    }

    fn requirements<'a>(certificate: &'a ObjectKey, names: &'a DnsNames) -> CertificateRequirements<'a> {
        CertificateRequirements {
            certificate,
            uid: "1",
            secret_name: "hook-cert",
            names,
            algorithm: KeyAlgorithm::Ecdsa(256),
        }
    }

    /// A Secret with a current and a next CA, and the state in it.
    fn secret() -> (Value, CaState) {
        let mut certificates = CertificateStore::default();
        let names = sample::names();
        let mut mint = Mint {
            names: &names,
            now: sample::NOW,
            serial: || sample::terms(sample::DAY).serial,
            keys: vec![sample::key(), sample::key()],
            signers: Vec::new(),
            certificates: &mut certificates,
        };
        let template = |generation| CaTemplate {
            generation,
            validity: Timing::default().authority_validity(sample::NOW),
        };
        let found = CaChange::Create {
            current: Some((template(1), sample::NOW)),
            next: template(2),
            retiring: Vec::new(),
            request: None,
        };
        let authorities = CaState::default().with_change(&found, &mut mint).unwrap();
        let signers = mint.signers;
        let key = CaSecret::key("windlass-system", &certificate());
        let secret = CaSecret::write(&key, &certificate(), None, &authorities, &signers, &certificates);
        (secret.unwrap(), authorities)
    }

    fn read(secret: &Value) -> CaSecret {
        CaSecret::read(
            secret,
            &requirements(&certificate(), &sample::names()),
            &mut CertificateStore::default(),
        )
    }

    #[test]
    fn long_names_stay_unique_and_fit() {
        let key = |end: &str| {
            let name = format!("{}{end}", "a".repeat(240));
            CaSecret::key(
                "w",
                &ObjectKey {
                    cluster: InCluster::Local,
                    name,
                    ..certificate()
                },
            )
        };
        let (one, other) = (key("x"), key("y"));
        assert_ne!(one, other);
        assert!(one.name.len() <= MAX_NAME_LENGTH, "{one}");
        assert_eq!(CaSecret::key("w", &certificate()).name, "system.hook");
    }

    #[test]
    fn a_ca_secret_round_trips() {
        let (secret, authorities) = secret();
        assert!(CaSecret::was_created_for(&secret, &certificate()));
        let back = read(&secret);
        assert_eq!(back.authorities, authorities);
        assert_eq!(CaSecret::signers(&secret).len(), 2);
    }

    #[test]
    fn certificates_and_keys_are_read_without_the_state() {
        for broken in [encoded("{"), encoded(""), Value::Null] {
            let (mut secret, before) = secret();
            secret["data"]["state.json"] = broken;
            assert_eq!(CaSecret::objection(&secret), None);
            let back = read(&secret);
            let known = |state: &CaState| {
                let authorities = [state.current, state.next].into_iter().flatten();
                authorities
                    .map(|authority| (authority.generation, authority.certificate, authority.has_key))
                    .collect::<Vec<_>>()
            };
            assert_eq!(known(&back.authorities), known(&before));
            assert_eq!(back.authorities.generation, before.generation);
            assert_eq!(CaSecret::signers(&secret).len(), 2);
        }
    }

    #[test]
    fn state_of_a_newer_version_is_not_overwritten() {
        let (mut secret, _) = secret();
        assert_eq!(CaSecret::objection(&secret), None);
        secret["data"]["state.json"] = encoded(r#"{"version": 2}"#);
        let objection = CaSecret::objection(&secret).unwrap();
        assert!(
            objection.ends_with("(version 2): upgrade Windlass"),
            "{objection}"
        );
    }

    #[test]
    fn damaged_entries_are_treated_as_missing() {
        let lose = |key: &str, value: Value| {
            let (mut secret, _) = secret();
            secret["data"][key] = value;
            let back = read(&secret).authorities;
            let has_key = |authority: Option<Ca>| authority.map(|authority| authority.has_key);
            (has_key(back.current), has_key(back.next))
        };
        assert_eq!(lose("current.key", encoded("garbage")), (Some(false), Some(true)));
        assert_eq!(lose("next.crt", Value::Null), (Some(true), None));
        let (other, _) = secret();
        assert_eq!(
            lose("next.key", other["data"]["next.key"].clone()),
            (Some(true), Some(false))
        );
    }
}
