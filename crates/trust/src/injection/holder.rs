//! One place in a target where a CA bundle is, or should be.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;
use windlass_object::object;

use super::place::{CaBundlePlace, Encoding, Surroundings};
use crate::{pki::pem, trust_bundle::TrustBundle};

/// An object inside a target that holds a CA bundle and may name the server that the bundle verifies.
#[derive(Clone, Debug, PartialEq)]
pub struct Holder<'a> {
    /// JSON pointer to the object, for example `/webhooks/0/clientConfig`.
    pub pointer: String,
    /// `name` of the list item that contains the object, if it is in a list.
    pub entry: Option<&'a str>,
    /// The server that clients call.
    pub server: CalledServer,
    /// The place of the target's kind that this object is an instance of.
    pub(super) place: &'a CaBundlePlace,
    /// The object itself, if it exists.
    object: Option<&'a Value>,
    /// Paths and values that must be unchanged when the CA bundle is written.
    pub(super) guards: Vec<(String, &'a Value)>,
}

/// The server that a CA bundle verifies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CalledServer {
    /// The server that clients dial by this host name.
    Host(String),
    /// A server whose name is malformed.
    Unreadable,
    /// The target names no server.
    Unknown,
}

/// The value of a CA bundle field.
#[derive(Clone, Debug, PartialEq)]
pub enum CaBundle {
    /// The field is absent, null or empty.
    Missing,
    /// The value is not base64, or not a string.
    Garbage,
    /// The value, parsed as clients parse it.
    Read(pem::PemContents),
}

impl<'a> Holder<'a> {
    /// Returns every instance of `place` in `target`. `guards` are further values that must be unchanged on a
    /// write.
    pub(super) fn all_at(
        target: &'a Value,
        place: &'a CaBundlePlace,
        guards: &[(String, &'a Value)],
    ) -> Vec<Self> {
        let Some(list) = &place.list else {
            return Self::at(target, place.holder.to_string(), place, guards.to_vec())
                .into_iter()
                .collect();
        };
        let items = object::items(target, list).iter().enumerate();
        items
            .filter_map(|(index, item)| {
                let item_pointer = format!("{list}/{index}");
                let name = item.get("name");
                let mut guards = guards.to_vec();
                match (name, place.surroundings) {
                    // The name guards the index: it shows that the index still means the same entry.
                    (Some(name), _) => guards.push((format!("{item_pointer}/name"), name)),
                    (None, Surroundings::Server) => return None,
                    (None, _) => {}
                }
                let mut holder = Self::at(target, item_pointer + &place.holder, place, guards)?;
                holder.entry = name.and_then(Value::as_str);
                Some(holder)
            })
            .collect()
    }

    /// Returns the holder at `pointer` in `target`, or `None` if it cannot have a CA bundle.
    fn at(
        target: &'a Value,
        pointer: String,
        place: &'a CaBundlePlace,
        mut guards: Vec<(String, &'a Value)>,
    ) -> Option<Self> {
        let object = target.pointer(&pointer).filter(|object| !object.is_null());
        let server = object.and_then(called_server).unwrap_or(CalledServer::Unknown);
        match (object, place.surroundings) {
            (Some(object), Surroundings::Server) => {
                if server == CalledServer::Unknown {
                    return None;
                }
                // The guard covers the CA bundle too, even an absent one.
                guards.push((pointer.clone(), object));
            }
            // The object may be trimmed, so the resourceVersion is the guard.
            (Some(_), _) | (None, Surroundings::Nothing) => {
                let version = "/metadata/resourceVersion";
                guards.extend(target.pointer(version).map(|value| (version.to_owned(), value)));
            }
            (None, _) => return None,
        }
        if object.is_some_and(|object| !object.is_object()) {
            return None;
        }
        // The API server rejects a CA bundle together with insecureSkipTLSVerify.
        let skips_verification =
            |object: &Value| object.get("insecureSkipTLSVerify") == Some(&Value::Bool(true));
        if object.is_some_and(skips_verification) {
            return None;
        }
        Some(Self {
            pointer,
            entry: None,
            server,
            place,
            object,
            guards,
        })
    }

    /// Returns the CA bundle with which clients verify the server.
    pub fn ca_bundle(&self) -> CaBundle {
        CaBundle::read(self.value(), self.place.encoding)
    }

    /// Reports whether the field has a value.
    pub(super) fn has_ca_bundle(&self) -> bool {
        self.value().is_some()
    }

    /// Returns the raw value, if it is a string.
    pub fn text(&self) -> Option<&'a str> {
        self.value().and_then(Value::as_str)
    }

    /// Returns the raw value. Callers usually compare it, because parsing is slow.
    fn value(&self) -> Option<&'a Value> {
        self.object?.get(&*self.place.field)
    }

    /// Reports whether the object that holds the field must be created with it.
    pub(super) fn is_absent(&self) -> bool {
        self.object.is_none()
    }

    /// Returns the JSON pointer to the field.
    pub fn field(&self) -> String {
        format!("{}/{}", self.pointer, self.place.field)
    }

    /// Reports whether clients read the same CA bundle from both.
    pub(super) fn has_same_bundle_as(&self, other: &Self) -> bool {
        // Parsing is slow, so the raw values are compared first.
        self.value() == other.value() || self.ca_bundle() == other.ca_bundle()
    }

    /// Reports whether clients read exactly this trust bundle, in any encoding.
    pub fn carries(&self, trust: &TrustBundle) -> bool {
        let CaBundle::Read(reading) = self.ca_bundle() else {
            return false;
        };
        reading.is_usable()
            && TrustBundle::new(reading.certificates.iter().cloned()).is_ok_and(|carried| carried == *trust)
    }
}

impl CaBundle {
    fn read(value: Option<&Value>, encoding: Encoding) -> Self {
        match value {
            None | Some(Value::Null) => Self::Missing,
            Some(Value::String(text)) if text.is_empty() => Self::Missing,
            Some(Value::String(text)) => match encoding {
                Encoding::Base64 => STANDARD
                    .decode(text)
                    .map_or(Self::Garbage, |pem| Self::Read(pem::read(&pem))),
                Encoding::Pem => Self::Read(pem::read(text.as_bytes())),
            },
            Some(_) => Self::Garbage,
        }
    }

    /// Encodes a trust bundle for a base64 field.
    pub fn encode(trust: &TrustBundle) -> String {
        STANDARD.encode(trust.to_pem())
    }
}

/// Returns the server that a client configuration names, or `None` if it names none.
fn called_server(client_config: &Value) -> Option<CalledServer> {
    let names_a_server = ["service", "url"]
        .iter()
        .any(|field| client_config.get(field).is_some_and(|server| !server.is_null()));
    names_a_server.then(|| host(client_config).map_or(CalledServer::Unreadable, CalledServer::Host))
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
