//! Real in-memory TLS handshakes of every chain that is served during a rotation with every trust bundle that
//! a client may have then.

use std::{sync::Arc, time::Duration};

use rustls::{
    ClientConfig, ClientConnection, Connection, RootCertStore, ServerConfig, ServerConnection,
    SupportedProtocolVersion,
    crypto::ring,
    pki_types::{PrivateKeyDer, UnixTime, pem::PemObject},
    time_provider::TimeProvider,
    version::{TLS12, TLS13},
};

use super::*;
use crate::pki::{
    CertificateAuthority, Credentials, PrivateKey,
    sample::{NOW, YEAR, key, names, rsa_key_pair, terms},
};

/// All handshakes happen at the test time.
#[derive(Debug)]
struct Clock;

/// A rotation from CA A to CA B.
struct Rotation {
    old_leaf: Credentials,
    new_leaf: Credentials,
    /// The new leaf without the cross certificate to A.
    new_leaf_alone: Credentials,
    /// {A, B}
    old: TrustBundle,
    /// {B, C}
    new: TrustBundle,
    /// {Z, A}: the bundle of a very old manifest that was applied again.
    older: TrustBundle,
}

impl TimeProvider for Clock {
    fn current_time(&self) -> Option<UnixTime> {
        let seconds = u64::try_from(NOW.as_second()).unwrap();
        Some(UnixTime::since_unix_epoch(Duration::from_secs(seconds)))
    }
}

impl Rotation {
    /// Uses keys 0 to 3 for the CAs and key 4 for the leaves.
    fn with_keys(key: fn(usize) -> PrivateKey) -> Self {
        let root = |generation: u32| {
            let key = key(generation as usize);
            CertificateAuthority::self_signed(&names(), generation, key, &terms(YEAR)).unwrap()
        };
        let [z, a, b, c] = [0, 1, 2, 3].map(root);
        let bundle = |one: &CertificateAuthority, other: &CertificateAuthority| {
            TrustBundle::new([one.certificate().clone(), other.certificate().clone()]).unwrap()
        };
        let serve = |root: &CertificateAuthority, intermediates| {
            let key = key(4);
            let leaf = root.issue(&names(), &key, &terms(YEAR)).unwrap();
            Credentials::new(leaf, intermediates, key).unwrap()
        };
        let cross = a.cross_sign(b.certificate(), &terms(YEAR)).unwrap();
        Self {
            old_leaf: serve(&a, Vec::new()),
            new_leaf: serve(&b, vec![cross]),
            new_leaf_alone: serve(&b, Vec::new()),
            old: bundle(&a, &b),
            new: bundle(&b, &c),
            older: bundle(&z, &a),
        }
    }

    fn check(&self) {
        for (server, client, credentials, trust, accepted) in [
            ("old leaf", "old bundle", &self.old_leaf, &self.old, true),
            ("old leaf", "older bundle", &self.old_leaf, &self.older, true),
            // Clients with the new bundle reject the old leaf. So targets get the bundle only after every
            // endpoint was seen with the new leaf.
            ("old leaf", "new bundle", &self.old_leaf, &self.new, false),
            ("new leaf", "old bundle", &self.new_leaf, &self.old, true),
            ("new leaf", "older bundle", &self.new_leaf, &self.older, true),
            ("new leaf", "new bundle", &self.new_leaf, &self.new, true),
            // Clients with the old bundle accept the new leaf through the cross certificate.
            (
                "new leaf alone",
                "old bundle",
                &self.new_leaf_alone,
                &self.old,
                true,
            ),
            (
                "new leaf alone",
                "older bundle",
                &self.new_leaf_alone,
                &self.older,
                false,
            ),
            (
                "new leaf alone",
                "new bundle",
                &self.new_leaf_alone,
                &self.new,
                true,
            ),
        ] {
            for version in [&TLS12, &TLS13] {
                let result = handshake(credentials, trust, version);
                assert_eq!(result.is_ok(), accepted, "{server} under {client}: {result:?}");
            }
            let mut chain = vec![credentials.leaf().clone()];
            chain.extend_from_slice(credentials.intermediates());
            let judged = trust.verify(&chain, names().primary(), NOW);
            assert_eq!(
                judged.is_ok(),
                accepted,
                "{server} under {client}, judged: {judged:?}"
            );
        }
    }
}

#[test]
fn every_client_accepts_every_leaf_it_may_see() {
    Rotation::with_keys(|_| key()).check();
}

#[test]
fn every_client_accepts_every_rsa_leaf_it_may_see() {
    Rotation::with_keys(|index| rsa_key_pair(index).into()).check();
}

#[test]
fn leaves_with_rsa_keys_are_accepted_under_elliptic_roots() {
    let root = CertificateAuthority::self_signed(&names(), 1, key(), &terms(YEAR)).unwrap();
    let key = PrivateKey::from(rsa_key_pair(4));
    let leaf = root.issue(&names(), &key, &terms(YEAR)).unwrap();
    let credentials = Credentials::new(leaf, Vec::new(), key).unwrap();
    let trust = TrustBundle::new([root.certificate().clone()]).unwrap();
    for version in [&TLS12, &TLS13] {
        handshake(&credentials, &trust, version).unwrap();
    }
}

/// Runs one client and one server until both succeed or one rejects.
fn handshake(
    credentials: &Credentials,
    trust: &TrustBundle,
    version: &'static SupportedProtocolVersion,
) -> Result<(), rustls::Error> {
    let mut roots = RootCertStore::empty();
    for certificate in trust.certificates() {
        roots.add(certificate.der().clone())?;
    }
    let provider = Arc::new(ring::default_provider());
    let client = ClientConfig::builder_with_details(provider.clone(), Arc::new(Clock))
        .with_protocol_versions(&[version])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let chain = std::iter::once(credentials.leaf())
        .chain(credentials.intermediates())
        .map(|certificate| certificate.der().clone())
        .collect();
    let key = PrivateKeyDer::from_pem_slice(credentials.key().to_pem().as_bytes()).unwrap();
    let server = ServerConfig::builder_with_details(provider, Arc::new(Clock))
        .with_protocol_versions(&[version])?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;

    let name = names().primary().to_owned().try_into().unwrap();
    let mut client = Connection::Client(ClientConnection::new(Arc::new(client), name)?);
    let mut server = Connection::Server(ServerConnection::new(Arc::new(server))?);
    while client.is_handshaking() || server.is_handshaking() {
        transfer(&mut client, &mut server)?;
        transfer(&mut server, &mut client)?;
    }
    Ok(())
}

/// Passes pending data from one side to the other.
fn transfer(from: &mut Connection, to: &mut Connection) -> Result<(), rustls::Error> {
    let mut bytes = Vec::new();
    while from.wants_write() {
        from.write_tls(&mut bytes).unwrap();
    }
    let mut unread = bytes.as_slice();
    while !unread.is_empty() {
        to.read_tls(&mut unread).unwrap();
        to.process_new_packets()?;
    }
    Ok(())
}
