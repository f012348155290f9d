//! Selection of handlers by namespace (`matchNamespace` of Cluster API's
//! `internal/runtime/client/client.go`).

use std::sync::Arc;

use futures::future::BoxFuture;
use runtime_hooks::{
    client::{NamespaceError, NamespaceLabels},
    cluster_api::BeforeClusterCreate,
    discovery::FailurePolicy,
};
use serde_json::{Value, json};

use crate::peer::{Names, client, config, handler};

/// A source of namespaces that knows only one.
struct One;

impl NamespaceLabels for One {
    fn labels(&self, namespace: String) -> BoxFuture<'_, Result<Value, NamespaceError>> {
        Box::pin(async move {
            match &*namespace {
                "one" => Ok(json!({"team": "a", "kubernetes.io/metadata.name": "one"})),
                _ => Err(NamespaceError::NotFound(namespace)),
            }
        })
    }
}

#[tokio::test]
async fn a_selector_needs_an_existing_namespace() {
    let within =
        |values: &[&str]| json!({"matchExpressions": [{"key": "team", "operator": "In", "values": values}]});
    for (selector, namespace, expected) in [
        (
            json!({"matchLabels": {"kubernetes.io/metadata.name": "one"}}),
            "one",
            Some(true),
        ),
        (json!({"matchLabels": {"team": "a"}}), "other", None),
        (json!({"matchLabels": {"team": "a"}}), "", None),
        (json!({"matchLabels": {"team": "b"}}), "one", Some(false)),
        (within(&["b", "a"]), "one", Some(true)),
        (within(&["b", "c"]), "one", Some(false)),
        (json!({}), "other", Some(true)),
        (json!({}), "", Some(true)),
    ] {
        let client = client(Names::default()).with_namespaces(Arc::new(One));
        let mut config = config("ext1", "ext1", "");
        config.namespace_selector = selector.clone();
        client
            .registry()
            .register(config, vec![handler("x", FailurePolicy::Fail)])
            .unwrap();
        let names = client.handlers::<BeforeClusterCreate>(namespace).await;
        let expected = expected.map(|is_selected| {
            if is_selected {
                vec!["x.ext1".to_owned()]
            } else {
                vec![]
            }
        });
        assert_eq!(names.ok(), expected, "{selector} {namespace:?}");
    }
}
