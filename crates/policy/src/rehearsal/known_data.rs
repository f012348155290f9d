//! Data that is given for an evaluation without a cluster.

use std::collections::HashSet;

use serde_json::Value;
use windlass_object::{label_selector, object};

use crate::{DataReference, FetchedAnswer, HttpRequest, ObjectSelection, ReferencedObjects, api::HttpMethod};

/// Objects of a cluster, and responses of servers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KnownData {
    /// The objects; the first of several with the same name applies.
    pub objects: Vec<Value>,
    /// The responses; the first of several for the same request applies.
    pub responses: Vec<KnownResponse>,
}

/// The response of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownResponse {
    /// GET or POST.
    pub method: HttpMethod,
    /// The full URL, with parameters.
    pub url: String,
    /// What the request returns.
    pub answer: FetchedAnswer,
}

impl KnownData {
    /// Answers a reference from this data; earlier data takes precedence.
    pub fn answer(known: &[&Self], reference: &DataReference) -> FetchedAnswer {
        let wanted = match reference.objects() {
            Ok(wanted) => wanted,
            Err(request) => return response(known, request),
        };
        match wanted.which {
            ObjectSelection::Named(name) => {
                let mut objects = known.iter().flat_map(|known| &known.objects);
                let found =
                    objects.find(|object| is_selected(&wanted, object) && text(object, "name") == name);
                found.map_or(FetchedAnswer::NotFound, |object| {
                    FetchedAnswer::Found(object.clone())
                })
            }
            ObjectSelection::Labelled(selector) => {
                FetchedAnswer::Found(with_labels(known, &wanted, selector).into())
            }
        }
    }

    /// Finds the Namespace of that name.
    pub fn namespace<'a>(known: &[&'a Self], name: &str) -> Option<&'a Value> {
        let mut objects = known.iter().flat_map(|known| &known.objects);
        objects.find(|object| {
            let is_kind = ["/apiVersion", "/kind"].map(|pointer| object::text(object, pointer))
                == [Some("v1"), Some("Namespace")];
            is_kind && text(object, "name") == name
        })
    }
}

fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    let field = object.get("metadata").and_then(|metadata| metadata.get(name));
    field.and_then(Value::as_str).unwrap_or_default()
}

fn response(known: &[&KnownData], request: &HttpRequest) -> FetchedAnswer {
    let mut responses = known.iter().flat_map(|known| &known.responses);
    let found = responses.find(|response| response.method == request.method && response.url == request.url);
    found.map_or_else(
        || FetchedAnswer::Failed("the response of the server is not in the data".into()),
        |response| response.answer.clone(),
    )
}

/// Reports whether an object has the referenced kind and namespace. Objects without a namespace match any,
/// unless the reference is confined to one.
fn is_selected(wanted: &ReferencedObjects<'_>, object: &Value) -> bool {
    let has = |pointer, wanted| object::text(object, pointer) == Some(wanted);
    let namespace = text(object, "namespace");
    has("/apiVersion", wanted.api_version)
        && has("/kind", wanted.kind)
        && (namespace == wanted.namespace || namespace.is_empty() && !wanted.is_confined)
}

fn with_labels(known: &[&KnownData], wanted: &ReferencedObjects<'_>, selector: &Value) -> Vec<Value> {
    let is_anywhere = wanted.namespace.is_empty() && !wanted.is_confined;
    let is_wanted = |object: &&Value| {
        let namespace = if is_anywhere {
            text(object, "namespace")
        } else {
            wanted.namespace
        };
        let wanted = ReferencedObjects { namespace, ..*wanted };
        is_selected(&wanted, object)
    };
    let mut places = HashSet::new();
    let fits = |object: &&Value| {
        let labels = object.pointer("/metadata/labels").unwrap_or(&Value::Null);
        label_selector::matches(selector, labels)
    };
    let objects = known.iter().flat_map(|known| &known.objects);
    objects
        .filter(is_wanted)
        .filter(|object| places.insert((text(object, "namespace"), text(object, "name"))))
        .filter(fits)
        .cloned()
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    fn config_map(namespace: &str, name: &str, app: &str) -> Value {
        let metadata = match namespace {
            "" => json!({"name": name, "labels": {"app": app}}),
            namespace => json!({"namespace": namespace, "name": name, "labels": {"app": app}}),
        };
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    }

    fn object(namespace: &str, name: &str, is_confined: bool) -> DataReference {
        DataReference::Object {
            api_version: "v1".into(),
            kind: "ConfigMap".into(),
            namespace: namespace.into(),
            name: name.into(),
            is_confined,
        }
    }

    #[test]
    fn objects_are_found_by_namespace_or_without_one() {
        let known = KnownData {
            objects: vec![config_map("n", "a", "x"), config_map("", "b", "y")],
            responses: Vec::new(),
        };
        for (reference, is_found) in [
            (object("n", "a", true), true),
            (object("m", "a", false), false),
            (object("n", "b", false), true),
            (object("n", "b", true), false),
            (object("n", "c", false), false),
        ] {
            let answer = KnownData::answer(&[&known], &reference);
            assert_eq!(answer != FetchedAnswer::NotFound, is_found, "{reference}");
        }
    }

    #[test]
    fn earlier_data_takes_precedence() {
        let one = KnownData {
            objects: vec![config_map("n", "a", "new")],
            responses: Vec::new(),
        };
        let other = KnownData {
            objects: vec![config_map("n", "a", "old"), config_map("n", "b", "old")],
            responses: Vec::new(),
        };
        let known = [&one, &other];
        let labelled = |app: &str, namespace: &str, is_confined| {
            let reference = DataReference::Objects {
                api_version: "v1".into(),
                kind: "ConfigMap".into(),
                namespace: namespace.into(),
                label_selector: json!({"matchLabels": {"app": app}}),
                is_confined,
            };
            let FetchedAnswer::Found(found) = KnownData::answer(&known, &reference) else {
                panic!()
            };
            found.as_array().unwrap().clone()
        };
        assert_eq!(labelled("new", "n", true), [config_map("n", "a", "new")]);
        assert_eq!(labelled("old", "", false), [config_map("n", "b", "old")]);
        assert_eq!(labelled("old", "", true), [Value::Null; 0]);
        assert_eq!(labelled("old", "m", false), [Value::Null; 0]);
        let found = KnownData::answer(&known, &object("n", "a", false));
        assert_eq!(found, FetchedAnswer::Found(config_map("n", "a", "new")));
    }

    #[test]
    fn responses_match_the_full_url() {
        let known = KnownData {
            objects: Vec::new(),
            responses: vec![KnownResponse {
                method: HttpMethod::Get,
                url: "https://a/?b=c".into(),
                answer: FetchedAnswer::Found(json!({"d": 1})),
            }],
        };
        let answer = |method, url: &str| {
            let request = HttpRequest {
                method,
                url: url.into(),
                headers: BTreeMap::new(),
                body: None,
                auth: None,
            };
            KnownData::answer(&[&known], &DataReference::Http(request))
        };
        assert_eq!(
            answer(HttpMethod::Get, "https://a/?b=c"),
            FetchedAnswer::Found(json!({"d": 1}))
        );
        for (method, url) in [
            (HttpMethod::Get, "https://a/"),
            (HttpMethod::Post, "https://a/?b=c"),
        ] {
            assert!(matches!(answer(method, url), FetchedAnswer::Failed(_)), "{url}");
        }
    }
}
