//! A request and its response, without HTTP.

use std::collections::BTreeMap;

use futures::stream::BoxStream;
use http::Method;
use serde_json::Value;

use super::authentication::User;
use crate::StatusError;

/// A request.
#[derive(Clone, Debug)]
pub struct Call {
    /// The user.
    pub user: User,
    /// The HTTP method.
    pub method: Method,
    /// The path, without the query.
    pub path: String,
    /// The query.
    pub query: BTreeMap<String, String>,
    /// `Content-Type`, without parameters.
    pub content_type: String,
    /// `Accept`.
    pub accept: String,
    /// `User-Agent` up to the first slash.
    pub user_agent: String,
    /// The body.
    pub body: Vec<u8>,
}

/// A response.
pub enum Reply {
    /// A JSON object, with warnings.
    Json {
        /// The HTTP status code.
        code: u16,
        /// The body.
        body: Value,
        /// The texts of the `Warning` headers.
        warnings: Vec<String>,
    },
    /// Plain text.
    Text(String),
    /// Watch events, one JSON object each.
    Watch(BoxStream<'static, Value>),
}

/// The resource, subresource, namespace and name in a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResourcePath {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) namespace: String,
    pub(crate) resource: String,
    pub(crate) name: String,
    pub(crate) subresource: String,
}

impl Call {
    /// Returns a query parameter; empty when it is absent.
    pub fn query(&self, name: &str) -> &str {
        self.query.get(name).map(String::as_str).unwrap_or_default()
    }

    /// Reports whether a boolean query parameter is set.
    pub fn flag(&self, name: &str) -> bool {
        matches!(self.query(name), "true" | "1")
    }

    /// Reports whether the request is a dry run.
    ///
    /// # Errors
    ///
    /// When `dryRun` has a value other than `All`.
    pub fn is_dry_run(&self) -> Result<bool, StatusError> {
        match self.query("dryRun") {
            "" => Ok(false),
            "All" => Ok(true),
            other => Err(StatusError::new(
                422,
                "Invalid",
                format!(
                    "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: {other:?}: supported values: \"All\""
                ),
            )),
        }
    }

    /// Parses the body as JSON, or as YAML if the content type is YAML, as apply requests send it.
    ///
    /// # Errors
    ///
    /// 400 when the body cannot be parsed, 415 for an unsupported media type.
    pub fn object(&self) -> Result<Value, StatusError> {
        let undecodable =
            |problem: String| StatusError::bad_request(format!("error decoding body: {problem}"));
        match self.content_type.as_str() {
            "application/yaml" | "application/apply-patch+yaml" => {
                let text = std::str::from_utf8(&self.body).map_err(|error| undecodable(error.to_string()))?;
                serde_saphyr::from_str(text).map_err(|error| undecodable(error.to_string()))
            }
            "application/json"
            | "application/json-patch+json"
            | "application/merge-patch+json"
            | "application/strategic-merge-patch+json"
            | "" => serde_json::from_slice(&self.body).map_err(|error| undecodable(error.to_string())),
            _ => Err(StatusError::new(
                415,
                "UnsupportedMediaType",
                "the body of the request was in an unknown format - accepted media types include: \
                 application/json, application/yaml",
            )),
        }
    }
}

impl Reply {
    /// Returns a 200 with a JSON object.
    pub fn json(body: Value) -> Self {
        Self::Json {
            code: 200,
            body,
            warnings: Vec::new(),
        }
    }

    /// Returns the HTTP status code.
    pub fn code(&self) -> u16 {
        match self {
            Self::Json { code, .. } => *code,
            Self::Text(_) | Self::Watch(_) => 200,
        }
    }
}

impl std::fmt::Debug for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Reply({})", self.code())
    }
}

impl ResourcePath {
    /// Parses `/api/v1/…` and `/apis/GROUP/VERSION/…`; returns `None` for any other path.
    pub(crate) fn parse(path: &str) -> Option<Self> {
        let mut parts = path.trim_matches('/').split('/').map(decode);
        let (group, version) = match parts.next()?.as_str() {
            "api" => (String::new(), parts.next()?),
            "apis" => (parts.next()?, parts.next()?),
            _ => return None,
        };
        let mut rest: Vec<String> = parts.collect();
        if rest.is_empty() || rest.iter().any(String::is_empty) {
            return None;
        }
        let mut namespace = String::new();
        // `/namespaces/NAME` and its subresources address the Namespace itself.
        let is_own =
            rest.len() <= 2 || (rest.len() == 3 && matches!(rest[2].as_str(), "status" | "finalize"));
        if rest[0] == "namespaces" && !is_own {
            namespace = rest[1].clone();
            rest.drain(..2);
        }
        let mut rest = rest.into_iter();
        let target = Self {
            group,
            version,
            namespace,
            resource: rest.next()?,
            name: rest.next().unwrap_or_default(),
            subresource: rest.next().unwrap_or_default(),
        };
        rest.next().is_none().then_some(target)
    }

    /// Returns the verb that authorization uses for the request.
    pub(crate) fn verb(&self, call: &Call) -> Result<&'static str, StatusError> {
        let is_collection = self.name.is_empty();
        match call.method {
            Method::GET if call.flag("watch") => Ok("watch"),
            Method::GET if is_collection => Ok("list"),
            Method::GET => Ok("get"),
            Method::POST if is_collection || !self.subresource.is_empty() => Ok("create"),
            Method::PUT if !is_collection => Ok("update"),
            Method::PATCH if !is_collection => Ok("patch"),
            Method::DELETE if is_collection => Ok("deletecollection"),
            Method::DELETE => Ok("delete"),
            _ => Err(StatusError::new(
                405,
                "MethodNotAllowed",
                "the server does not allow this method on the requested resource",
            )),
        }
    }

    /// Returns `resource` or `resource/subresource`.
    pub(crate) fn qualified_resource(&self) -> String {
        if self.subresource.is_empty() {
            self.resource.clone()
        } else {
            format!("{}/{}", self.resource, self.subresource)
        }
    }
}

/// Percent-decodes a part of a path or query.
pub(crate) fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while index < bytes.len() {
        let hex = (bytes[index] == b'%')
            .then(|| text.get(index + 1..index + 3))
            .flatten();
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                decoded.push(byte);
                index += 3;
            }
            None => {
                decoded.push(bytes[index]);
                index += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_what_kubernetes_means_by_them() {
        let parse = |path: &str| {
            ResourcePath::parse(path).map(|target| {
                let ResourcePath {
                    group,
                    version,
                    namespace,
                    resource,
                    name,
                    subresource,
                } = target;
                [group, version, namespace, resource, name, subresource].join("|")
            })
        };
        for (path, expected) in [
            ("/api/v1/namespaces", Some("|v1||namespaces||")),
            ("/api/v1/namespaces/a", Some("|v1||namespaces|a|")),
            (
                "/api/v1/namespaces/a/finalize",
                Some("|v1||namespaces|a|finalize"),
            ),
            ("/api/v1/namespaces/a/pods", Some("|v1|a|pods||")),
            ("/api/v1/namespaces/a/pods/p/status", Some("|v1|a|pods|p|status")),
            ("/apis/g/v1/widgets/w", Some("g|v1||widgets|w|")),
            ("/apis/g/v1", None),
            ("/metrics", None),
            ("/apis/g/v1/a/b/c/d/e", None),
        ] {
            assert_eq!(parse(path).as_deref(), expected, "{path}");
        }
        assert_eq!(decode("a%3Db%zz+"), "a=b%zz+");
    }
}
