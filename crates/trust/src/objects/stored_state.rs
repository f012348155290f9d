//! `state.json` of the CA Secret, and how the state is restored from the certificates if the file is
//! unreadable.

use serde::Serialize;
use serde_json::Value;

use super::certificate_store::summary;
use crate::{
    pki::{Certificate, CertificateAuthority},
    rotation::{Ca, CaState, CertificateId},
};

/// The contents of `state.json`.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum StoredState {
    /// A readable state.
    Read(Box<CaState>),
    /// A format that only a newer Windlass can read.
    Newer(Value),
    /// Missing or invalid.
    Unreadable,
}

/// The readable certificates in the same Secret.
#[derive(Debug)]
pub(super) struct StoredCertificates {
    pub(super) current: Vec<Certificate>,
    pub(super) next: Vec<Certificate>,
    pub(super) retiring: Vec<Certificate>,
    pub(super) cross: Vec<Certificate>,
}

/// The format version that is written. It increases when an older Windlass would misread the new format.
const VERSION: u64 = 1;

#[derive(Serialize)]
struct Versioned<'a> {
    version: u64,
    #[serde(flatten)]
    authorities: &'a CaState,
}

impl StoredState {
    /// Parses `state.json`. Without a version it is in the oldest format.
    pub(super) fn read(json: Option<&[u8]>) -> Self {
        let Some(Ok(stored)) = json.map(serde_json::from_slice::<Value>) else {
            return Self::Unreadable;
        };
        if let Some(version) = stored.get("version")
            && version.as_u64().is_none_or(|version| version > VERSION)
        {
            return Self::Newer(version.clone());
        }
        match serde_json::from_value::<Box<CaState>>(stored) {
            Ok(authorities) if !authorities.is_empty() => Self::Read(authorities),
            _ => Self::Unreadable,
        }
    }
}

/// Encodes `state.json` for these CAs.
pub(super) fn write(authorities: &CaState) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec(&Versioned {
        version: VERSION,
        authorities,
    })
}

impl StoredCertificates {
    pub(super) fn iter(&self) -> impl Iterator<Item = &Certificate> {
        let Self {
            current,
            next,
            retiring,
            cross,
        } = self;
        [current, next, retiring, cross].into_iter().flatten()
    }

    /// Restores the state from the certificates. Compromised keys and executed requests are lost: targets are
    /// read back again, and a request that is still set is executed again.
    pub(super) fn state(&self) -> CaState {
        let authority = |certificates: &[Certificate]| {
            let root = certificates.first().filter(|root| is_root(root))?;
            Some(Ca {
                generation: CertificateAuthority::generation(root).unwrap_or_default(),
                certificate: summary(root),
                // The current CA was created after its certificate's notBefore.
                signs_since: None,
                has_key: false,
                matches_spec: false,
            })
        };
        let (current, next) = (authority(&self.current), authority(&self.next));
        let of_current = |cross: &CertificateId| {
            current.is_some_and(|current: Ca| current.certificate.key_id == cross.key_id)
        };
        let generation = self.iter().filter_map(CertificateAuthority::generation).max();
        CaState {
            retiring: self
                .retiring
                .iter()
                .filter(|root| is_root(root))
                .map(summary)
                .collect(),
            cross: self.cross.first().map(summary).filter(of_current),
            generation: generation.unwrap_or_default(),
            current,
            next,
            ..CaState::default()
        }
    }
}

fn is_root(certificate: &Certificate) -> bool {
    certificate.is_authority() && certificate.is_signed_by(certificate)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::pki::sample;

    fn authorities() -> CaState {
        let stored = |generation| vec![sample::authority(generation).certificate().clone()];
        StoredCertificates {
            current: stored(3),
            next: stored(4),
            retiring: stored(2),
            cross: Vec::new(),
        }
        .state()
    }

    #[test]
    fn current_and_unversioned_state_is_read() {
        let authorities = authorities();
        let json = write(&authorities).unwrap();
        let mut stored: Value = serde_json::from_slice(&json).unwrap();
        assert_eq!(stored["version"], 1);
        let read = StoredState::read(Some(&json));
        assert_eq!(read, StoredState::Read(Box::new(authorities.clone())));
        stored.as_object_mut().unwrap().remove("version");
        let json = stored.to_string();
        let before = StoredState::read(Some(json.as_bytes()));
        assert_eq!(before, StoredState::Read(Box::new(authorities)));
    }

    #[test]
    fn newer_state_is_distinguished_from_broken_state() {
        let read = |json: &str| StoredState::read(Some(json.as_bytes()));
        let mut newer: Value = serde_json::from_slice(&write(&authorities()).unwrap()).unwrap();
        for version in [json!(2), json!("v2"), json!(null)] {
            newer["version"] = version.clone();
            assert_eq!(read(&newer.to_string()), StoredState::Newer(version));
        }
        for broken in ["", "{", "{}", "[]", "{\"current\": 1}"] {
            assert_eq!(read(broken), StoredState::Unreadable, "{broken}");
        }
        assert_eq!(StoredState::read(None), StoredState::Unreadable);
    }

    #[test]
    fn cas_are_restored_from_certificates() {
        let state = authorities();
        let generations = [state.current, state.next].map(|authority| authority.unwrap().generation);
        assert_eq!((generations, state.generation), ([3, 4], 4));
        assert_eq!(state.retiring.len(), 1);
    }
}
