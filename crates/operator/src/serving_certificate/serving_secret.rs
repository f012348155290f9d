//! The Secret that servers mount.

use serde_json::{Value, json};
use windlass_cluster::keys;
use windlass_object::{ObjectKey, names, object};
use windlass_trust::{
    pki::{Certificate, Credentials, DnsNames, pem},
    rotation::PublishedSecret,
    trust_bundle::TrustBundle,
};

use super::{
    certificates::CertificateStore,
    desired::DesiredCertificate,
    secrets::{TRUST, encoded, label},
};

/// What the Secret holds. Cannot be printed: a key is in it.
pub(super) struct ServingSecret {
    /// Its resourceVersion.
    pub(super) version: String,
    /// What a rotation needs to know of it.
    pub(super) content: PublishedSecret,
    /// The leaf and its key; nothing, if they are damaged.
    pub(super) credentials: Option<Credentials>,
    /// Whether targets may ask for its `ca.crt` by its name.
    pub(super) allows_direct_injection: bool,
    live: Value,
}

/// What is to be in the Secret.
pub(super) struct SecretContents<'a> {
    /// The leaf, what follows it in the handshake, and the leaf's key.
    pub(super) credentials: &'a Credentials,
    /// The trust bundle.
    pub(super) trust: &'a TrustBundle,
    /// The CA that signed the leaf.
    pub(super) authority: Option<&'a Certificate>,
}

/// The type of the Secret.
const TYPE: &str = "kubernetes.io/tls";

/// The leaf, then what follows it.
const CHAIN: &str = "tls.crt";

/// The leaf's key.
const KEY: &str = "tls.key";

/// The CA certificate, where operators that OLM installed look for it.
const OLM_AUTHORITY: &str = "olmCAKey";

// === impl ServingSecret ===

impl ServingSecret {
    /// Why the Secret must not be written; `None` where it may.
    pub(super) fn objection(secret: &Value, desired: &DesiredCertificate) -> Option<String> {
        let name = &desired.spec.secret_name;
        if !is_ours(secret, desired) {
            return Some(format!(
                "the Secret {name} exists and was not made for this ServingCertificate: remove it, or label it {}={} to have it replaced",
                names::SERVING_CERTIFICATE,
                label(&desired.key.name)
            ));
        }
        if secret.get("immutable") == Some(&Value::Bool(true)) {
            return Some(format!(
                "the Secret {name} is immutable: remove it, and it is made anew"
            ));
        }
        match object::text(secret, "/type") {
            Some(TYPE) => None,
            other => Some(format!(
                "the Secret {name} is of type {} where {TYPE} is needed: remove it, and it is made anew",
                other.unwrap_or("Opaque")
            )),
        }
    }

    /// Reads what can be read. What is damaged is as if it were not there.
    pub(super) fn read(
        secret: Value,
        desired: &DesiredCertificate,
        names: &DnsNames,
        certificates: &mut CertificateStore,
    ) -> Self {
        let bytes = |key| object::data(&secret, key).unwrap_or_default();
        let bundle = TrustBundle::from_pem(&bytes(TRUST)).ok();
        let bundle = bundle.map(|bundle| {
            let roots = bundle.certificates().iter();
            roots.map(|root| certificates.learn(root)).collect()
        });
        let authority = pem::read(&bytes(OLM_AUTHORITY)).certificates;
        let credentials = Credentials::from_pem(&bytes(CHAIN), &bytes(KEY)).ok();
        let mut content = PublishedSecret {
            bundle,
            authority: authority
                .first()
                .map(|authority| certificates.learn(authority).fingerprint),
            ..PublishedSecret::default()
        };
        if let Some(credentials) = &credentials {
            let cross = credentials.intermediates().first();
            content.cross = cross.map(|cross| certificates.learn_presented(cross));
            content.leaf = Some(certificates.learn_presented(credentials.leaf()));
            content.as_asked = credentials.leaf().is_for(names)
                && keys::is_of(&desired.spec.private_key, credentials.key().algorithm());
        }
        Self {
            version: object::text(&secret, "/metadata/resourceVersion")
                .unwrap_or_default()
                .to_owned(),
            content,
            credentials,
            allows_direct_injection: object::annotation(&secret, names::ALLOW_DIRECT_INJECTION)
                == Some("true"),
            live: secret,
        }
    }

    /// The Secret that holds `contents`; what others added to the one that is there stays.
    pub(super) fn write(
        live: Option<&Self>,
        desired: &DesiredCertificate,
        contents: &SecretContents<'_>,
    ) -> Value {
        let key = Self::key(desired);
        let mut secret = live.map_or_else(
            || {
                json!({
                    "apiVersion": "v1",
                    "kind": "Secret",
                    "metadata": { "name": key.name, "namespace": key.namespace },
                    "type": TYPE,
                })
            },
            |live| live.live.clone(),
        );
        secret["metadata"]["labels"][names::SERVING_CERTIFICATE] = label(&desired.key.name).into();
        let mut owners = object::items(&secret, "/metadata/ownerReferences").to_vec();
        owners.retain(|owner| object::text(owner, "/kind") != Some(desired.key.kind.as_str()));
        owners.push(json!({
            "apiVersion": names::API_VERSION,
            "kind": desired.key.kind,
            "name": desired.key.name,
            "uid": desired.uid(),
            "controller": true,
        }));
        secret["metadata"]["ownerReferences"] = owners.into();
        let data = &mut secret["data"];
        data[CHAIN] = encoded(contents.credentials.chain_pem());
        data[KEY] = encoded(contents.credentials.key().to_pem());
        data[TRUST] = encoded(contents.trust.to_pem());
        match contents.authority {
            Some(authority) => data[OLM_AUTHORITY] = encoded(authority.to_pem()),
            None => {
                if let Some(data) = data.as_object_mut() {
                    data.remove(OLM_AUTHORITY);
                }
            }
        }
        secret
    }

    /// The name of the Secret.
    pub(super) fn key(desired: &DesiredCertificate) -> ObjectKey {
        windlass_cluster::kinds::SECRET.object(Some(desired.namespace()), &desired.spec.secret_name)
    }
}

/// By its label, or by its owner where somebody has taken the label away.
fn is_ours(secret: &Value, desired: &DesiredCertificate) -> bool {
    let owned = object::items(secret, "/metadata/ownerReferences")
        .iter()
        .any(|owner| object::text(owner, "/uid") == Some(desired.uid()));
    owned || object::label(secret, names::SERVING_CERTIFICATE) == Some(&label(&desired.key.name))
}
