//! References to data, and the fetched answers.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
};

use serde_json::Value;

use crate::api::{HttpAuth, HttpMethod};

/// A reference of a rule to other data.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DataReference {
    /// The object with this kind and name.
    Object {
        /// apiVersion of the objects, such as `apps/v1`.
        api_version: String,
        /// Kind of the objects.
        kind: String,
        /// The namespace; empty for a cluster-scoped object.
        namespace: String,
        /// `metadata.name`.
        name: String,
        /// Whether the object must be in that namespace: an OverridePolicy has no access to other namespaces.
        is_confined: bool,
    },
    /// All objects of a kind with matching labels. The answer is a list.
    Objects {
        /// apiVersion of the objects, such as `apps/v1`.
        api_version: String,
        /// Kind of the objects.
        kind: String,
        /// The namespace; empty for all.
        namespace: String,
        /// A LabelSelector.
        label_selector: Value,
        /// Whether the objects must be in that namespace.
        is_confined: bool,
    },
    /// The JSON body of a server's response. A status other than 2xx is a failure.
    Http(HttpRequest),
}

/// The objects of a [`DataReference`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReferencedObjects<'a> {
    /// apiVersion of the objects, such as `apps/v1`.
    pub api_version: &'a str,
    /// Kind of the objects.
    pub kind: &'a str,
    /// The namespace; empty for the whole cluster.
    pub namespace: &'a str,
    /// Whether the objects must be in that namespace.
    pub is_confined: bool,
    /// The selected objects.
    pub which: ObjectSelection<'a>,
}

/// A selection of objects of a kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ObjectSelection<'a> {
    /// The object with this name.
    Named(&'a str),
    /// All objects whose labels match a LabelSelector.
    Labelled(&'a Value),
}

/// A request to a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HttpRequest {
    /// GET or POST.
    pub method: HttpMethod,
    /// The full URL, with parameters.
    pub url: String,
    /// Headers, except for authentication.
    pub headers: BTreeMap<String, String>,
    /// The body, JSON.
    pub body: Option<Value>,
    /// The authentication. A Secret in it has its namespace set.
    pub auth: Option<HttpAuth>,
}

/// The result of fetching a reference.
#[derive(Clone, Debug, PartialEq)]
pub enum FetchedAnswer {
    /// The object, the list, or the body of the response.
    Found(Value),
    /// The object does not exist.
    NotFound,
    /// The fetch failed, with this error.
    Failed(String),
}

/// The answers that were fetched so far, by their references.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answers(HashMap<DataReference, FetchedAnswer>);

impl DataReference {
    /// Returns the referenced objects.
    ///
    /// # Errors
    ///
    /// The request, if it refers to a server.
    pub fn objects(&self) -> Result<ReferencedObjects<'_>, &HttpRequest> {
        let (api_version, kind, namespace, is_confined, which) = match self {
            Self::Object {
                api_version,
                kind,
                namespace,
                name,
                is_confined,
            } => (
                api_version,
                kind,
                namespace,
                is_confined,
                ObjectSelection::Named(name),
            ),
            Self::Objects {
                api_version,
                kind,
                namespace,
                label_selector,
                is_confined,
            } => {
                let which = ObjectSelection::Labelled(label_selector);
                (api_version, kind, namespace, is_confined, which)
            }
            Self::Http(request) => return Err(request),
        };
        Ok(ReferencedObjects {
            api_version,
            kind,
            namespace,
            is_confined: *is_confined,
            which,
        })
    }
}

/// Formats the reference for messages, without parameters and headers, which may be secret.
impl fmt::Display for DataReference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object {
                kind,
                namespace,
                name,
                ..
            } if namespace.is_empty() => write!(formatter, "{kind} {name}"),
            Self::Object {
                kind,
                namespace,
                name,
                ..
            } => write!(formatter, "{kind} {namespace}/{name}"),
            Self::Objects {
                kind, label_selector, ..
            } => write!(formatter, "{kind} with labels {label_selector}"),
            Self::Http(request) => {
                let url = request.url.split(['?', '#']).next().unwrap_or_default();
                let method = match request.method {
                    HttpMethod::Get => "GET",
                    HttpMethod::Post => "POST",
                };
                write!(formatter, "{method} {url}")
            }
        }
    }
}

impl Answers {
    /// Adds the answer for a reference.
    pub fn insert(&mut self, reference: DataReference, answer: FetchedAnswer) {
        self.0.insert(reference, answer);
    }

    /// Returns the answer, if it was fetched.
    pub fn get(&self, reference: &DataReference) -> Option<&FetchedAnswer> {
        self.0.get(reference)
    }
}

impl FromIterator<(DataReference, FetchedAnswer)> for Answers {
    fn from_iter<T: IntoIterator<Item = (DataReference, FetchedAnswer)>>(answers: T) -> Self {
        Self(answers.into_iter().collect())
    }
}
