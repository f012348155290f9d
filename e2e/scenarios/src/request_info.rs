//! Reads from a method and URI what a request accesses, as an API server does (`RequestInfo` in
//! `k8s.io/apiserver/pkg/endpoints/request`).

use http::{Method, Uri};

use crate::audit::Right;

impl Right {
    /// The right that a request needs. Requests for other paths than objects (discovery, health) are named by
    /// the path.
    pub(crate) fn needed(method: &Method, uri: &Uri) -> Self {
        let parts: Vec<&str> = uri.path().split('/').filter(|part| !part.is_empty()).collect();
        let (group, below) = match parts.as_slice() {
            ["api", _version, below @ ..] => ("", below),
            ["apis", group, _version, below @ ..] => (*group, below),
            _ => ("", [].as_slice()),
        };
        let (resource, name, subresource) = match below {
            ["namespaces", _, resource, below @ ..] => (*resource, below.first(), below.get(1)),
            [resource, below @ ..] => (*resource, below.first(), below.get(1)),
            [] => return Self::of_path(method, uri),
        };
        Self {
            group: group.to_owned(),
            resource: match subresource {
                Some(subresource) => format!("{resource}/{subresource}"),
                None => resource.to_owned(),
            },
            verb: verb(method, uri, name.is_some()),
        }
    }

    fn of_path(method: &Method, uri: &Uri) -> Self {
        Self {
            group: String::new(),
            resource: uri.path().to_owned(),
            verb: method.as_str().to_lowercase(),
        }
    }
}

fn verb(method: &Method, uri: &Uri, is_named: bool) -> String {
    let is_watch = uri.query().is_some_and(|query| {
        query
            .split('&')
            .any(|pair| matches!(pair, "watch=true" | "watch=1"))
    });
    match (method, is_named) {
        (&Method::GET, _) if is_watch => "watch",
        (&Method::GET, true) => "get",
        (&Method::GET, false) => "list",
        (&Method::POST, _) => "create",
        (&Method::PUT, _) => "update",
        (&Method::PATCH, _) => "patch",
        (&Method::DELETE, true) => "delete",
        (&Method::DELETE, false) => "deletecollection",
        _ => return method.as_str().to_lowercase(),
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_named_as_roles_name_them() {
        let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        for (method, path, expected) in [
            (
                Method::GET,
                "/api/v1/secrets?labelSelector=x&watch=true",
                "watch secrets",
            ),
            (Method::GET, "/api/v1/namespaces/n/secrets", "list secrets"),
            (Method::GET, "/api/v1/namespaces/n", "get namespaces"),
            (Method::PUT, "/api/v1/namespaces/n/secrets/s", "update secrets"),
            (
                Method::PATCH,
                &format!("{crds}/c?fieldManager=f"),
                "patch customresourcedefinitions.apiextensions.k8s.io",
            ),
            (
                Method::PUT,
                "/apis/windlass.dev/v1alpha1/namespaces/n/servingcertificates/s/status",
                "update servingcertificates/status.windlass.dev",
            ),
            (
                Method::POST,
                "/apis/events.k8s.io/v1/namespaces/n/events",
                "create events.events.k8s.io",
            ),
            (
                Method::DELETE,
                "/api/v1/namespaces/n/pods",
                "deletecollection pods",
            ),
            (Method::GET, "/apis/apps/v1", "get /apis/apps/v1"),
            (Method::GET, "/version", "get /version"),
        ] {
            let right = Right::needed(&method, &path.parse().unwrap());
            assert_eq!(right.to_string(), expected);
        }
    }
}
