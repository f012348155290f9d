//! Where in the objects of a kind a CA bundle may be.

use std::borrow::Cow;

use thiserror::Error;

/// A field that holds a CA bundle, in the object itself or in each item of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaBundlePlace {
    /// The list whose items hold one CA bundle each, as a JSON pointer; `None` where the object holds one.
    pub list: Option<Cow<'static, str>>,
    /// From the object, or the item of the list, to what holds the field, as a JSON pointer.
    pub holder: Cow<'static, str>,
    /// The name of the field.
    pub field: Cow<'static, str>,
    /// How the field holds it.
    pub encoding: Encoding,
    /// What is beside the field.
    pub surroundings: Surroundings,
}

/// How a field holds a CA bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// As a field of bytes does in JSON: PEM in base64.
    Base64,
    /// As text does: PEM.
    Pem,
}

/// What is beside a CA bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surroundings {
    /// The server that it is for, as `service` or `url`: without one there can be no CA bundle.
    Server,
    /// Perhaps the server, perhaps nothing that is known.
    Anything,
    /// Nothing that is known; what holds the field is made where it is absent.
    Nothing,
}

/// A path names no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum InvalidPath {
    /// A segment is empty, or has characters that no field of the API has.
    #[error(
        "must be names of fields after a / each, for example /spec/caBundle or /webhooks/*/clientConfig/caBundle"
    )]
    Form,
    /// More than one list, or one whose items are CA bundles themselves.
    #[error("may have one *, for the items of a list, neither at its beginning nor at its end")]
    Lists,
    /// The field is of Kubernetes itself, or not written with the object.
    #[error("must not be in apiVersion, kind, metadata or status")]
    Reserved,
}

/// What only Kubernetes itself, or the status subresource, writes.
const RESERVED: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];

// === impl CaBundlePlace ===

impl CaBundlePlace {
    /// `caBundle` beside the server that it is for.
    pub(super) fn client_config(list: Option<&'static str>, holder: &'static str) -> Self {
        Self {
            list: list.map(Cow::Borrowed),
            holder: Cow::Borrowed(holder),
            field: Cow::Borrowed("caBundle"),
            encoding: Encoding::Base64,
            surroundings: Surroundings::Server,
        }
    }

    /// The place at `path`, for example `/webhooks/*/clientConfig/caBundle`.
    ///
    /// # Errors
    ///
    /// When there can be no CA bundle.
    pub fn at(path: &str, encoding: Encoding) -> Result<Self, InvalidPath> {
        let names: Vec<_> = path
            .strip_prefix('/')
            .ok_or(InvalidPath::Form)?
            .split('/')
            .collect();
        if !names.iter().all(|name| *name == "*" || is_field(name)) {
            return Err(InvalidPath::Form);
        }
        if names.first().is_some_and(|name| RESERVED.contains(name)) {
            return Err(InvalidPath::Reserved);
        }
        let (list, names) = match names.iter().position(|name| *name == "*") {
            None => (None, &names[..]),
            Some(item) => (Some(pointer(&names[..item])), &names[item + 1..]),
        };
        match names.split_last() {
            Some((field, holder)) if !names.contains(&"*") && list.as_deref() != Some("") => Ok(Self {
                list: list.map(Cow::Owned),
                holder: Cow::Owned(pointer(holder)),
                field: Cow::Owned((*field).to_owned()),
                encoding,
                surroundings: Surroundings::Anything,
            }),
            _ => Err(InvalidPath::Lists),
        }
    }
}

/// Whether a name may be one of a field: none of these needs to be escaped in a JSON pointer.
fn is_field(name: &str) -> bool {
    let is_of_name = |char: char| char.is_ascii_alphanumeric() || "-_.".contains(char);
    !name.is_empty() && name.chars().all(is_of_name)
}

fn pointer(names: &[&str]) -> String {
    names.iter().flat_map(|name| ["/", name]).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_path_leads_to_a_field_of_the_object_or_of_the_items_of_a_list() {
        for (path, list, holder, field) in [
            ("/caBundle", None, "", "caBundle"),
            ("/spec/tls/ca.crt", None, "/spec/tls", "ca.crt"),
            (
                "/webhooks/*/clientConfig/caBundle",
                Some("/webhooks"),
                "/clientConfig",
                "caBundle",
            ),
            ("/spec/hooks/*/caBundle", Some("/spec/hooks"), "", "caBundle"),
        ] {
            let place = CaBundlePlace::at(path, Encoding::Pem).unwrap();
            assert_eq!(
                (place.list.as_deref(), &*place.holder, &*place.field),
                (list, holder, field),
                "{path}"
            );
        }
    }

    #[test]
    fn a_path_that_leads_nowhere_is_refused() {
        for (path, expected) in [
            ("", InvalidPath::Form),
            ("/", InvalidPath::Form),
            ("spec/caBundle", InvalidPath::Form),
            ("/spec//caBundle", InvalidPath::Form),
            ("/spec/a~1b", InvalidPath::Form),
            ("/*/caBundle", InvalidPath::Lists),
            ("/spec/hooks/*", InvalidPath::Lists),
            ("/spec/*/hooks/*/caBundle", InvalidPath::Lists),
            ("/metadata/annotations/a", InvalidPath::Reserved),
            ("/status/caBundle", InvalidPath::Reserved),
            ("/kind", InvalidPath::Reserved),
        ] {
            assert_eq!(CaBundlePlace::at(path, Encoding::Base64), Err(expected), "{path}");
        }
    }

    proptest! {
        #[test]
        fn no_path_is_too_wild(path in "[/*a~ .-]{0,12}") {
            if let Ok(place) = CaBundlePlace::at(&path, Encoding::Pem) {
                let item = place.list.as_deref().map(|list| format!("{list}/*"));
                prop_assert_eq!(format!("{}{}/{}", item.unwrap_or_default(), place.holder, place.field), path);
            }
        }
    }
}
