//! One place in a target where a CA bundle is, or should be.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;
use windlass_object::object;

use crate::{pki::pem, trust_bundle::TrustBundle};

/// An object inside of a target that holds `caBundle`, and says which server it is for.
#[derive(Clone, Debug, PartialEq)]
pub struct Holder<'a> {
    /// Where it is, for example `/webhooks/0/clientConfig`.
    pub pointer: String,
    /// The name of the item of the list that it is in, where there is a list.
    pub entry: Option<&'a str>,
    /// The name under which the server is dialled; `None` where that is not said.
    pub host: Option<String>,
    /// The value of `caBundle`, which most often is only compared: reading it takes long.
    value: Option<&'a Value>,
    /// Paths and their values that must not have changed when it is written.
    pub(super) guards: Vec<(String, &'a Value)>,
}

/// The value of `caBundle`.
#[derive(Clone, Debug, PartialEq)]
pub enum CaBundle {
    /// The field is absent, null or empty.
    Missing,
    /// It is not base64, or not even text.
    Garbage,
    /// What clients find in it.
    Read(pem::PemContents),
}

// === impl Holder ===

impl<'a> Holder<'a> {
    /// The place at `pointer` of `target`; `None` where there can be no CA bundle. All of it becomes a guard: also an
    /// absent CA bundle must still be absent.
    pub(super) fn at(
        target: &'a Value,
        pointer: String,
        mut guards: Vec<(String, &'a Value)>,
    ) -> Option<Self> {
        let value = target.pointer(&pointer)?;
        // The API server refuses a CA bundle beside it.
        let skips_verification = value.get("insecureSkipTLSVerify") == Some(&Value::Bool(true));
        let names_a_server = ["service", "url"]
            .iter()
            .any(|field| value.get(field).is_some_and(|server| !server.is_null()));
        if skips_verification || !names_a_server {
            return None;
        }
        guards.push((pointer.clone(), value));
        Some(Self {
            pointer,
            entry: None,
            host: host(value),
            value: value.get("caBundle"),
            guards,
        })
    }

    /// What clients are given there to verify the server with.
    pub fn ca_bundle(&self) -> CaBundle {
        CaBundle::read(self.value)
    }

    /// Whether there is anything.
    pub(super) fn has_ca_bundle(&self) -> bool {
        self.value.is_some()
    }

    /// The same as it is written, where that is text.
    pub fn text(&self) -> Option<&'a str> {
        self.value.and_then(Value::as_str)
    }

    /// Whether clients find the same in both.
    pub(super) fn carries_the_same_as(&self, other: &Self) -> bool {
        // Reading takes long.
        self.value == other.value || self.ca_bundle() == other.ca_bundle()
    }

    /// Whether clients find exactly this trust bundle in it, in whatever bytes.
    pub fn carries(&self, trust: &TrustBundle) -> bool {
        let CaBundle::Read(reading) = self.ca_bundle() else {
            return false;
        };
        reading.is_usable()
            && TrustBundle::new(reading.certificates.iter().cloned()).is_ok_and(|carried| carried == *trust)
    }
}

// === impl CaBundle ===

impl CaBundle {
    fn read(value: Option<&Value>) -> Self {
        match value {
            None | Some(Value::Null) => Self::Missing,
            Some(Value::String(text)) if text.is_empty() => Self::Missing,
            Some(Value::String(text)) => STANDARD
                .decode(text)
                .map_or(Self::Garbage, |pem| Self::Read(pem::read(&pem))),
            Some(_) => Self::Garbage,
        }
    }

    /// The value for a trust bundle.
    pub fn encode(trust: &TrustBundle) -> String {
        STANDARD.encode(trust.to_pem())
    }
}

fn host(client_config: &Value) -> Option<String> {
    if let Some(url) = object::text(client_config, "/url") {
        let url: http::Uri = url.parse().ok()?;
        return url.host().map(str::to_owned);
    }
    let name = object::text(client_config, "/service/name")?;
    let namespace = object::text(client_config, "/service/namespace")?;
    Some(format!("{name}.{namespace}.svc"))
}
