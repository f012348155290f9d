//! What has to be fetched for an object, and what was.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
};

use serde_json::Value;

use crate::api::{HttpAuth, HttpMethod};

/// Something that a rule needs from elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DataReference {
    /// One object.
    Object {
        /// Its apiVersion.
        api_version: String,
        /// Its kind.
        kind: String,
        /// Its namespace, if its kind has one; empty where only the whole cluster can be meant.
        namespace: String,
        /// Its name.
        name: String,
        /// Whether it must be in that namespace: an OverridePolicy sees nothing outside of its own.
        is_confined: bool,
    },
    /// All objects of a kind with some labels. The answer is a list.
    Objects {
        /// Their apiVersion.
        api_version: String,
        /// Their kind.
        kind: String,
        /// Their namespace; empty for all.
        namespace: String,
        /// What their labels fit, a LabelSelector.
        label_selector: Value,
        /// Whether they must be in that namespace.
        is_confined: bool,
    },
    /// The answer of a server: the JSON in its body. An answer of another status than 2xx is a failure.
    Http(HttpRequest),
}

/// Objects that are meant by a [`DataReference`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReferencedObjects<'a> {
    /// Their apiVersion.
    pub api_version: &'a str,
    /// Their kind.
    pub kind: &'a str,
    /// Their namespace; empty where the whole cluster is meant.
    pub namespace: &'a str,
    /// Whether they must be in that namespace.
    pub is_confined: bool,
    /// Which of those.
    pub which: WhichObjects<'a>,
}

/// Which of the objects of a kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WhichObjects<'a> {
    /// The one of that name.
    Named(&'a str),
    /// All whose labels fit a LabelSelector.
    Labelled(&'a Value),
}

/// A request to a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HttpRequest {
    /// How it is asked.
    pub method: HttpMethod,
    /// The whole URL, with its parameters.
    pub url: String,
    /// Headers, beside those for who asks.
    pub headers: BTreeMap<String, String>,
    /// The body, JSON.
    pub body: Option<Value>,
    /// Who asks. A Secret in it has its namespace.
    pub auth: Option<HttpAuth>,
}

/// What came of fetching something.
#[derive(Clone, Debug, PartialEq)]
pub enum FetchedAnswer {
    /// It is this.
    Found(Value),
    /// There is no such object.
    NotFound,
    /// It could not be fetched, and why.
    Failed(String),
}

/// What was fetched.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answers(HashMap<DataReference, FetchedAnswer>);

// === impl DataReference ===

impl DataReference {
    /// The objects that are meant.
    ///
    /// # Errors
    ///
    /// When a server is to be asked: how.
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
                WhichObjects::Named(name),
            ),
            Self::Objects {
                api_version,
                kind,
                namespace,
                label_selector,
                is_confined,
            } => {
                let which = WhichObjects::Labelled(label_selector);
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

/// As it is named where it fails. Parameters and headers may be secret.
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

// === impl Answers ===

impl Answers {
    /// Adds what came of fetching something.
    pub fn insert(&mut self, reference: DataReference, answer: FetchedAnswer) {
        self.0.insert(reference, answer);
    }

    /// What came of it, if it was fetched.
    pub fn get(&self, reference: &DataReference) -> Option<&FetchedAnswer> {
        self.0.get(reference)
    }
}

impl FromIterator<(DataReference, FetchedAnswer)> for Answers {
    fn from_iter<T: IntoIterator<Item = (DataReference, FetchedAnswer)>>(answers: T) -> Self {
        Self(answers.into_iter().collect())
    }
}
