//! The fields of a kind that may hold a CA bundle.

use std::borrow::Cow;

use thiserror::Error;

/// A field that holds a CA bundle, in the object itself or in each item of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaBundlePlace {
    /// JSON pointer to the list whose items hold one CA bundle each; `None` if the object holds one.
    pub list: Option<Cow<'static, str>>,
    /// JSON pointer from the object, or from the list item, to the parent of the field.
    pub holder: Cow<'static, str>,
    /// The name of the field.
    pub field: Cow<'static, str>,
    /// How the field encodes the CA bundle.
    pub encoding: Encoding,
    /// What the parent of the field contains besides it.
    pub surroundings: Surroundings,
}

/// How a field encodes a CA bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Base64 of PEM, for fields of type bytes.
    Base64,
    /// PEM, for text fields.
    Pem,
}

/// What the parent of a CA bundle field contains besides it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surroundings {
    /// The server that the CA bundle verifies, as `service` or `url`. Without one there is no CA bundle.
    Server,
    /// Maybe a server, maybe no known field.
    Anything,
    /// No known field; the parent is created if it is absent.
    Nothing,
}

/// Why a path names no place for a CA bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum InvalidPath {
    /// A segment is empty, or has characters that are not allowed in field names of the API.
    #[error(
        "must be field names, each after a /, for example /spec/caBundle or /webhooks/*/clientConfig/caBundle"
    )]
    Form,
    /// The path has more than one list, or a list whose items are CA bundles.
    #[error("may have one *, for list items, which is neither the first nor the last segment")]
    Lists,
    /// The field belongs to Kubernetes, or is not written with the object.
    #[error("must not be in apiVersion, kind, metadata or status")]
    Reserved,
}

/// Fields that only Kubernetes or the status subresource writes.
const RESERVED: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];

impl CaBundlePlace {
    /// Returns the place of `caBundle` in a client configuration.
    pub(super) fn client_config(list: Option<&'static str>, holder: &'static str) -> Self {
        Self {
            list: list.map(Cow::Borrowed),
            holder: Cow::Borrowed(holder),
            field: Cow::Borrowed("caBundle"),
            encoding: Encoding::Base64,
            surroundings: Surroundings::Server,
        }
    }

    /// Parses the place at `path`, for example `/webhooks/*/clientConfig/caBundle`.
    ///
    /// # Errors
    ///
    /// If the path cannot hold a CA bundle.
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

/// Reports whether `name` may be a field name. Such names need no escaping in a JSON pointer.
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
    fn a_path_names_a_field_of_the_object_or_of_list_items() {
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
    fn an_invalid_path_is_rejected() {
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
        fn parsing_any_path_never_panics(path in "[/*a~ .-]{0,12}") {
            if let Ok(place) = CaBundlePlace::at(&path, Encoding::Pem) {
                let item = place.list.as_deref().map(|list| format!("{list}/*"));
                prop_assert_eq!(format!("{}{}/{}", item.unwrap_or_default(), place.holder, place.field), path);
            }
        }
    }
}
