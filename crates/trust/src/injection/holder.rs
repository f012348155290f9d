//! One place in a target where a CA bundle is, or should be.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;
use windlass_object::object;

use super::place::{CaBundlePlace, Encoding, Surroundings};
use crate::{pki::pem, trust_bundle::TrustBundle};

/// An object inside of a target that holds a CA bundle, and may say which server it is for.
#[derive(Clone, Debug, PartialEq)]
pub struct Holder<'a> {
    /// Where it is, for example `/webhooks/0/clientConfig`.
    pub pointer: String,
    /// The name of the item of the list that it is in, where there is a list.
    pub entry: Option<&'a str>,
    /// Which server it is for.
    pub server: CalledServer,
    /// Which of the places of its kind it is.
    pub(super) place: &'a CaBundlePlace,
    /// What holds the field, if it is there.
    object: Option<&'a Value>,
    /// Paths and their values that must not have changed when it is written.
    pub(super) guards: Vec<(String, &'a Value)>,
}

/// Which server a CA bundle is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CalledServer {
    /// The one that is dialled under this name.
    Host(String),
    /// One that is not named as it should be.
    Unreadable,
    /// Nobody says.
    Unsaid,
}

/// The value of a field with a CA bundle.
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
    /// Each of `target` at a place of its kind; `guards` are what else must not have changed when it is written.
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
                    // The index says which entry only as long as the name is there.
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

    /// The one at `pointer` of `target`; `None` where there can be no CA bundle.
    fn at(
        target: &'a Value,
        pointer: String,
        place: &'a CaBundlePlace,
        mut guards: Vec<(String, &'a Value)>,
    ) -> Option<Self> {
        let object = target.pointer(&pointer).filter(|object| !object.is_null());
        let server = object.and_then(called_server).unwrap_or(CalledServer::Unsaid);
        match (object, place.surroundings) {
            (Some(object), Surroundings::Server) => {
                if server == CalledServer::Unsaid {
                    return None;
                }
                // Also an absent CA bundle must still be absent.
                guards.push((pointer.clone(), object));
            }
            // Only a part of it may be at hand.
            (Some(_), _) | (None, Surroundings::Nothing) => {
                let version = "/metadata/resourceVersion";
                guards.extend(target.pointer(version).map(|value| (version.to_owned(), value)));
            }
            (None, _) => return None,
        }
        if object.is_some_and(|object| !object.is_object()) {
            return None;
        }
        // The API server refuses a CA bundle beside it.
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

    /// What clients are given there to verify the server with.
    pub fn ca_bundle(&self) -> CaBundle {
        CaBundle::read(self.value(), self.place.encoding)
    }

    /// Whether there is anything.
    pub(super) fn has_ca_bundle(&self) -> bool {
        self.value().is_some()
    }

    /// The same as it is written, where that is text.
    pub fn text(&self) -> Option<&'a str> {
        self.value().and_then(Value::as_str)
    }

    /// The value of the field, which most often is only compared: reading it takes long.
    fn value(&self) -> Option<&'a Value> {
        self.object?.get(&*self.place.field)
    }

    /// Whether what holds the field has to be made with it.
    pub(super) fn is_absent(&self) -> bool {
        self.object.is_none()
    }

    /// Where the field is, as a JSON pointer.
    pub fn field(&self) -> String {
        format!("{}/{}", self.pointer, self.place.field)
    }

    /// Whether clients find the same in both.
    pub(super) fn carries_the_same_as(&self, other: &Self) -> bool {
        // Reading takes long.
        self.value() == other.value() || self.ca_bundle() == other.ca_bundle()
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

    /// The value for a trust bundle, in a field of bytes.
    pub fn encode(trust: &TrustBundle) -> String {
        STANDARD.encode(trust.to_pem())
    }
}

/// The server that a client configuration names; `None` where it names none.
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
