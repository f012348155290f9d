//! Catalogs with hooks in several versions (`api/runtime/catalog/catalog_test.go`,
//! `api/runtime/catalog/conversion_test.go`).

use proptest::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::*;
use crate::{
    HookMetadata, HookRequest, HookResponse,
    cluster_api::{BeforeClusterCreate, Discovery},
    hook::HookSettings,
    response::{HookOutcome, ResponseStatus},
};

/// A version of a test hook with the given fields.
macro_rules! fake {
    ($hook:ident $name:literal $version:literal $request:ident $response:ident { $($field:ident),* } $metadata:expr) => {
        struct $hook;

        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(default)]
        struct $request {
            settings: HookSettings,
            $($field: String,)*
        }

        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(default)]
        struct $response {
            #[serde(default = "ResponseStatus::unset")]
            status: ResponseStatus,
            message: String,
            $($field: String,)*
        }

        impl HookRequest for $request {
            const HAS_SETTINGS: bool = true;
        }

        impl HookResponse for $response {
            fn outcome(&self) -> HookOutcome {
                HookOutcome { status: self.status.clone(), message: self.message.clone(), retry_after_seconds: 0 }
            }

            fn set_outcome(&mut self, outcome: HookOutcome) {
                (self.status, self.message) = (outcome.status, outcome.message);
            }
        }

        impl Hook for $hook {
            type Request = $request;
            type Response = $response;
            const GROUP: &'static str = "test.runtime.cluster.x-k8s.io";
            const VERSION: &'static str = $version;
            const NAME: &'static str = $name;
            const METADATA: HookMetadata = $metadata;
        }
    };
}

const OLD: HookMetadata = HookMetadata {
    deprecated: true,
    ..HookMetadata::new()
};

fake!(First "Fake" "v1alpha1" FirstRequest FirstResponse { name } OLD);
fake!(Second "Fake" "v1alpha2" SecondRequest SecondResponse { name, place } HookMetadata::new());
fake!(Third "Fake" "v1alpha3" ThirdRequest ThirdResponse { title, place } HookMetadata::new());
fake!(Other "Other" "v1alpha1" OtherRequest OtherResponse { name } HookMetadata::new());
fake!(Shouted "FAKE" "v1alpha1" ShoutedRequest ShoutedResponse { name } HookMetadata::new());
fake!(Again "Fake" "v1alpha1" AgainRequest AgainResponse { name } HookMetadata::new());

/// Returns a catalog with three versions of a hook. In v1alpha1, the place is part of the name; v1alpha3
/// renames the field name to title.
fn catalog() -> Catalog {
    let mut catalog = Catalog::new();
    catalog.register::<First>().unwrap().register::<Second>().unwrap();
    catalog.register::<Third>().unwrap().register::<Other>().unwrap();
    catalog
        .convert::<Second, First>(
            |SecondRequest {
                 settings,
                 name,
                 place,
             }| FirstRequest {
                settings,
                name: format!("{name}@{place}"),
            },
            |FirstResponse {
                 status,
                 message,
                 name,
             }| {
                let (name, place) = name.split_once('@').unwrap_or((&name, ""));
                SecondResponse {
                    status,
                    message,
                    name: name.into(),
                    place: place.into(),
                }
            },
        )
        .unwrap()
        .convert::<Third, Second>(
            |ThirdRequest {
                 settings,
                 title,
                 place,
             }| SecondRequest {
                settings,
                name: title,
                place,
            },
            |SecondResponse {
                 status,
                 message,
                 name,
                 place,
             }| ThirdResponse {
                status,
                message,
                title: name,
                place,
            },
        )
        .unwrap();
    catalog
}

#[test]
fn request_and_response_kinds_come_from_the_hook() {
    let catalog = catalog();
    let hook = catalog.get(&Second::reference()).unwrap();
    assert_eq!(
        (hook.request_kind(), hook.response_kind()),
        ("FakeRequest".into(), "FakeResponse".into())
    );
    assert_eq!(
        hook.reference().api_version,
        "test.runtime.cluster.x-k8s.io/v1alpha2"
    );
    let typed = hook.typed_request(json!({"kind": "Wrong", "name": "a"}).as_object().unwrap().clone());
    assert_eq!(
        Value::Object(typed),
        json!({"kind": "FakeRequest", "apiVersion": "test.runtime.cluster.x-k8s.io/v1alpha2", "name": "a"})
    );
    let versions: Vec<_> = catalog
        .named("Fake")
        .map(|hook| hook.reference().version())
        .collect();
    assert_eq!(versions, ["v1alpha1", "v1alpha2", "v1alpha3"]);
    assert!(catalog.get(&First::reference()).unwrap().metadata().deprecated);
    let unknown = HookReference {
        hook: "fake".into(),
        ..First::reference()
    };
    assert!(catalog.get(&unknown).is_none(), "names match exactly");
}

#[test]
fn a_request_of_another_version_or_hook_is_rejected() {
    let catalog = catalog();
    let body = |kind: &str, version: &str| json!({"kind": kind, "apiVersion": format!("test.runtime.cluster.x-k8s.io/{version}"), "name": "a"});
    let message = |body: &Value| {
        catalog
            .check_request(&Second::reference(), body)
            .unwrap_err()
            .to_string()
    };
    catalog
        .check_request(&Second::reference(), &body("FakeRequest", "v1alpha2"))
        .unwrap();
    catalog
        .check_request(&Second::reference(), &json!({"name": "a"}))
        .unwrap();
    assert_eq!(
        message(&body("FakeRequest", "v1alpha1")),
        "apiVersion: must be \"test.runtime.cluster.x-k8s.io/v1alpha2\", not \"test.runtime.cluster.x-k8s.io/v1alpha1\""
    );
    assert_eq!(
        message(&body("OtherRequest", "v1alpha2")),
        "kind: must be \"FakeRequest\", not \"OtherRequest\""
    );
    assert_eq!(
        message(&body("FakeResponse", "v1alpha2")),
        "kind: must be \"FakeRequest\", not \"FakeResponse\""
    );
    assert_eq!(
        message(&json!({"name": 1})),
        "name: invalid type: integer `1`, expected a string"
    );
    assert_eq!(
        catalog
            .check_request(&Discovery::reference(), &json!({}))
            .unwrap_err()
            .to_string(),
        "hooks.runtime.cluster.x-k8s.io/v1alpha1, Hook=Discovery is not registered"
    );
}

#[test]
fn a_hook_cannot_be_registered_twice() {
    let mut catalog = catalog();
    let registered = |result: Result<&mut Catalog, CatalogError>| result.map(drop);
    assert_eq!(
        registered(catalog.register::<Again>()),
        Err(CatalogError::Registered(First::reference()))
    );
    assert_eq!(
        registered(catalog.register::<Shouted>()),
        Err(CatalogError::SamePath(Shouted::reference(), First::reference()))
    );
    assert!(Catalog::cluster_api().register::<BeforeClusterCreate>().is_err());
}

#[test]
fn requests_and_responses_are_converted() {
    let catalog = catalog();
    let path = catalog
        .conversion(&Second::reference(), &First::reference())
        .unwrap();
    let request = json!({"settings": {"a": "b"}, "name": "x", "place": "y"});
    assert_eq!(
        path.request(request).unwrap(),
        json!({"settings": {"a": "b"}, "name": "x@y"})
    );
    let response = json!({"status": "Failure", "message": "m", "name": "x@y"});
    assert_eq!(
        path.response(response).unwrap(),
        json!({"status": "Failure", "message": "m", "name": "x", "place": "y"})
    );
}

#[test]
fn conversions_are_chained() {
    let catalog = catalog();
    let path = catalog
        .conversion(&Third::reference(), &First::reference())
        .unwrap();
    let request = json!({"settings": {}, "title": "x", "place": "y"});
    assert_eq!(
        path.request(request).unwrap(),
        json!({"settings": {}, "name": "x@y"})
    );
    let response = json!({"status": "Success", "name": "x@y"});
    assert_eq!(
        path.response(response).unwrap(),
        json!({"status": "Success", "message": "", "title": "x", "place": "y"})
    );
    assert_eq!(
        path.request(json!({"title": 1})).unwrap_err().to_string(),
        "cannot convert test.runtime.cluster.x-k8s.io/v1alpha3, Hook=Fake to test.runtime.cluster.x-k8s.io/v1alpha1, \
         Hook=Fake: title: invalid type: integer `1`, expected a string"
    );
}

#[test]
fn the_same_version_is_not_converted() {
    let catalog = catalog();
    let same = catalog
        .conversion(&First::reference(), &First::reference())
        .unwrap();
    assert!(same.is_empty());
    let anything = json!({"unknown": [1]});
    assert_eq!(same.request(anything.clone()).unwrap(), anything);
    assert!(
        catalog
            .conversion(&First::reference(), &Second::reference())
            .is_none()
    );
    assert!(
        catalog
            .conversion(&Third::reference(), &Other::reference())
            .is_none()
    );
}

#[test]
fn only_versions_of_one_hook_are_converted() {
    let mut catalog = Catalog::new();
    catalog.register::<First>().unwrap().register::<Other>().unwrap();
    let other = catalog
        .convert::<First, Other>(|_| OtherRequest::default(), |_| FirstResponse::default())
        .map(drop);
    assert_eq!(
        other,
        Err(CatalogError::NotVersions(First::reference(), Other::reference()))
    );
    let itself = catalog
        .convert::<First, First>(|request| request, |response| response)
        .map(drop);
    assert_eq!(
        itself,
        Err(CatalogError::NotVersions(First::reference(), First::reference()))
    );
    let missing = catalog
        .convert::<Second, First>(|_| FirstRequest::default(), |_| SecondResponse::default())
        .map(drop);
    assert_eq!(missing, Err(CatalogError::NotRegistered(Second::reference())));
}

#[test]
fn a_path_resolves_to_its_hook() {
    let catalog = Catalog::cluster_api();
    let found = |path: &str| {
        let (hook, handler) = catalog.at_path(path)?;
        Some((hook.reference().hook.clone(), handler.map(str::to_owned)))
    };
    for hook in catalog.hooks() {
        let (reference, name) = (hook.reference(), hook.reference().hook.clone());
        let (path, handler_path) = (reference.path(), reference.handler_path("first-1"));
        match hook.metadata().singleton {
            true => assert_eq!((found(&path), found(&handler_path)), (Some((name, None)), None)),
            false => assert_eq!(
                (found(&path), found(&handler_path)),
                (None, Some((name, Some("first-1".into()))))
            ),
        }
    }
    let prefix = "/hooks.runtime.cluster.x-k8s.io/v1alpha1";
    for path in [
        "",
        "/",
        "//",
        "/discovery",
        prefix,
        &format!("{prefix}/"),
        &format!("{prefix}/discovery/"),
        &format!("{prefix}/Discovery"),
        &format!("/{prefix}/discovery"),
        &format!("{prefix}//discovery"),
        &format!("{prefix}/./discovery"),
        &format!("{prefix}/x/../discovery"),
        &format!("x{prefix}/discovery"),
        &format!("{prefix}/%64iscovery"),
        &format!("{prefix}/discovery?timeout=10s"),
        &format!("{prefix}/generatepatches/"),
        &format!("{prefix}/generatepatches/a/"),
        &format!("{prefix}/generatepatches/a/b"),
        &format!("{prefix}/generatepatches/.."),
        &format!("{prefix}/generatepatches/A"),
        &format!("{prefix}/generatepatches/a.b"),
        &format!("{prefix}/generatepatches/%61"),
        &format!("{prefix}/generatepatches/{}", "a".repeat(64)),
        "/hooks.runtime.cluster.x-k8s.io/v1/generatepatches/a",
        "/v1alpha1/generatepatches/a",
    ] {
        assert_eq!(found(path), None, "{path}");
    }
}

proptest! {
    #[test]
    fn a_resolved_hook_has_the_same_path(
        segments in prop::collection::vec(
            "hooks\\.runtime\\.cluster\\.x-k8s\\.io|v1alpha1|discovery|generatepatches|\\.\\.|[a-zA-Z0-9.%-]{0,3}|\\PC{0,3}", 0..6,
        ),
        start in "|/|//",
    ) {
        let catalog = Catalog::cluster_api();
        let path = format!("{start}{}", segments.join("/"));
        if let Some((hook, handler)) = catalog.at_path(&path) {
            let answered = handler.map_or_else(|| hook.reference().path(), |name| hook.reference().handler_path(name));
            prop_assert_eq!(&answered, &path);
            prop_assert_eq!(handler.is_none(), hook.metadata().singleton);
        }
    }

    #[test]
    fn every_handler_path_resolves_to_its_handler(name in "[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?", index in any::<prop::sample::Index>()) {
        let catalog = Catalog::cluster_api();
        let hooks: Vec<_> = catalog.hooks().filter(|hook| !hook.metadata().singleton).collect();
        let hook = hooks[index.index(hooks.len())];
        let path = hook.reference().handler_path(&name);
        let (found, handler) = catalog.at_path(&path).unwrap();
        prop_assert_eq!((found.reference(), handler), (hook.reference(), Some(&*name)));
    }
}
