//! Resources of requests to an API server, from their path.

/// The resource and namespace of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TracedResource<'a> {
    /// The plural name of the kind, or the last segment of another path.
    pub(super) resource: &'a str,
    pub(super) namespace: Option<&'a str>,
}

impl<'a> TracedResource<'a> {
    /// Parses a path of kube's requests, which may follow the prefix of a proxy.
    pub(super) fn from_path(path: &'a str) -> Self {
        let segments: Vec<_> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        let group = segments
            .iter()
            .position(|segment| ["api", "apis"].contains(segment));
        let version = match group {
            Some(at) if segments[at] == "api" => at + 1,
            Some(at) => at + 2,
            None => segments.len(),
        };
        let below = segments.get(version + 1..).unwrap_or_default();
        match below {
            ["namespaces", namespace, resource, ..] => Self {
                resource,
                namespace: Some(namespace),
            },
            [resource, ..] => Self {
                resource,
                namespace: None,
            },
            [] => Self {
                resource: segments.last().copied().unwrap_or("/"),
                namespace: None,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_parsed_into_resource_and_namespace() {
        for (path, resource, namespace) in [
            ("/api/v1/namespaces/a/secrets/b", "secrets", Some("a")),
            ("/apis/apps/v1/namespaces/a/deployments", "deployments", Some("a")),
            ("/api/v1/namespaces/a", "namespaces", None),
            (
                "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/a/status",
                "customresourcedefinitions",
                None,
            ),
            ("/proxy/api/v1/nodes", "nodes", None),
            ("/apis/apps/v1", "v1", None),
            ("/version", "version", None),
            ("/", "/", None),
            ("", "/", None),
        ] {
            let expected = TracedResource { resource, namespace };
            assert_eq!(TracedResource::from_path(path), expected, "{path}");
        }
    }
}
