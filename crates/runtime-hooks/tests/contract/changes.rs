//! ExtensionConfigs and servers that change, or have invalid content.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use proptest::prelude::*;
use runtime_hooks::{
    Hook, Registry,
    cluster_api::{BeforeClusterCreate, GeneratePatches},
    discovery::FailurePolicy,
    registry::RegistrationState,
};
use serde_json::{Value, json};

use crate::peer::{Answer, call, config, handler, pair};

/// A discovered ExtensionConfig with handlers of one hook; `which` appears in all of its fields.
fn extension_config(name: &str, handlers: &[&str], hook: &str, which: &str) -> Value {
    let handlers = handlers.iter().map(|handler| {
        json!({
            "name": format!("{handler}.{name}"), "timeoutSeconds": which.len(),
            "requestHook": {"apiVersion": "hooks.runtime.cluster.x-k8s.io/v1alpha1", "hook": hook},
        })
    });
    json!({
        "apiVersion": "runtime.cluster.x-k8s.io/v1beta2", "kind": "ExtensionConfig",
        "metadata": {"name": name, "generation": 1, "resourceVersion": which},
        "spec": {"clientConfig": {"url": format!("https://{which}.example.com"), "caBundle": "YQ=="}, "settings": {"which": which}},
        "status": {
            "conditions": [{"type": "Discovered", "status": "True", "observedGeneration": 1}],
            "handlers": handlers.collect::<Value>(),
        },
    })
}

#[test]
fn an_extension_config_is_replaced_atomically() {
    let registry = Arc::new(Registry::listed());
    let one = extension_config("ext1", &["a", "b"], "BeforeClusterCreate", "one");
    let other = extension_config("ext1", &["a", "b", "c"], "BeforeClusterCreate", "other");
    registry.apply(&one).unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = (0..2)
        .map(|_| {
            let (registry, is_over) = (registry.clone(), is_over.clone());
            thread::spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let handlers = registry.list(&BeforeClusterCreate::reference()).unwrap();
                    let which = handlers[0].config.resource_version.clone();
                    assert_eq!(handlers.len(), if which == "one" { 2 } else { 3 });
                    for handler in &handlers {
                        assert_eq!(handler.config.settings["which"], which);
                        assert_eq!(handler.config.server.host(), format!("{which}.example.com"));
                        assert_eq!(handler.timeout.as_secs(), which.len() as u64);
                    }
                }
            })
        })
        .collect();
    for _ in 0..2000 {
        registry.apply(&other).unwrap();
        registry.apply(&one).unwrap();
    }
    is_over.store(true, Ordering::Relaxed);
    readers.into_iter().for_each(|reader| reader.join().unwrap());
}

#[test]
fn a_handler_may_change_its_hook() {
    let registry = Registry::listed();
    let (create, patches) = (BeforeClusterCreate::reference(), GeneratePatches::reference());
    for (hook, counts) in [
        ("BeforeClusterCreate", [1, 0]),
        ("GeneratePatches", [0, 1]),
        ("BeforeClusterCreate", [1, 0]),
    ] {
        registry
            .apply(&extension_config("ext1", &["a"], hook, "one"))
            .unwrap();
        let found = [&create, &patches].map(|hook| registry.list(hook).unwrap().len());
        assert_eq!(found, counts, "{hook}");
    }
}

#[test]
fn two_extension_configs_may_use_the_same_handler_names() {
    let registry = Registry::listed();
    for name in ["ext1", "ext2"] {
        registry
            .apply(&extension_config(name, &["a", "b"], "BeforeClusterCreate", name))
            .unwrap();
    }
    let names: Vec<_> = registry
        .handlers()
        .unwrap()
        .iter()
        .map(|handler| handler.name.clone())
        .collect();
    assert_eq!(names, ["a.ext1", "a.ext2", "b.ext1", "b.ext2"]);
    registry.remove("ext1");
    let left = registry.get("a.ext2").unwrap().unwrap();
    assert_eq!(
        left.config.settings["which"], "ext2",
        "the handlers of the other ExtensionConfig are kept"
    );
    assert_eq!(registry.get("a.ext1").unwrap(), None);
}

#[test]
fn a_status_cannot_change_the_path() {
    let registry = Registry::listed();
    let good = extension_config("ext1", &["a"], "BeforeClusterCreate", "one");
    registry.apply(&good).unwrap();
    for api_version in [
        "",
        "/",
        "v1",
        "../v1",
        "group/..",
        "group//v1",
        "/group/v1",
        "group/v1/",
        "group/v1?a=b",
        "group/v1#",
        "a b/v1",
        "group/%2e%2e",
        "Group/v1",
        "gro\u{308}up/v1",
        "group/v1\n",
    ] {
        let mut wrong = good.clone();
        wrong["status"]["handlers"][0]["requestHook"]["apiVersion"] = api_version.into();
        let refused = registry.apply(&wrong).unwrap_err().to_string();
        assert!(
            refused.ends_with("must have the form <group>/<version>"),
            "{api_version:?}: {refused}"
        );
    }
    for hook in [
        "",
        "..",
        "a/b",
        "a?b",
        "a#b",
        "a b",
        "Ä",
        "a.b",
        "a\n",
        &"a".repeat(257),
    ] {
        let mut wrong = good.clone();
        wrong["status"]["handlers"][0]["requestHook"]["hook"] = hook.into();
        let refused = registry.apply(&wrong).unwrap_err().to_string();
        assert!(
            refused.ends_with("must be the name of a hook"),
            "{hook:?}: {refused}"
        );
    }
    for name in [
        "",
        ".",
        ".ext1",
        "a",
        "a.ext2",
        "A.ext1",
        "a/b.ext1",
        "a..ext1",
        "a.ext1.ext1",
        "a?b.ext1",
        "ä.ext1",
    ] {
        let mut wrong = good.clone();
        wrong["status"]["handlers"][0]["name"] = name.into();
        registry.apply(&wrong).unwrap_err();
    }
    for path in ["x", "/x?a=b", "/x#a", "/x y"] {
        let mut wrong = good.clone();
        wrong["spec"]["clientConfig"] =
            json!({"caBundle": "YQ==", "service": {"namespace": "n", "name": "s", "path": path}});
        let refused = registry.apply(&wrong).unwrap_err().to_string();
        assert!(
            refused.starts_with("spec.clientConfig: path "),
            "{path:?}: {refused}"
        );
    }
    assert!(matches!(registry.states()["ext1"], RegistrationState::Kept(_)));
    let kept = registry.get("a.ext1").unwrap().unwrap();
    assert_eq!(
        kept.path(),
        "/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclustercreate/a"
    );
}

#[tokio::test]
async fn a_removed_handler_is_not_found() {
    let (peer, client) = pair(Answer::json(&json!({"status": "Success"}))).await;
    call(&client, "fail.ext1", false).await.unwrap();
    peer.set(Answer::Bytes(
        http::StatusCode::NOT_FOUND,
        b"404 page not found".into(),
    ));
    let problem = call(&client, "fail.ext1", false).await.unwrap_err();
    assert!(
        problem.ends_with("HTTP 404 Not Found: 404 page not found"),
        "{problem}"
    );
    peer.set(Answer::json(&json!({"status": "Success", "handlers": []})));
    let found = client
        .discover(&config("ext1", "ext1", &peer.ca_bundle))
        .await
        .unwrap();
    client
        .registry()
        .register(config("ext1", "ext1", &peer.ca_bundle), found.handlers)
        .unwrap();
    let problem = call(&client, "fail.ext1", false).await.unwrap_err();
    assert_eq!(problem, "extension handler \"fail.ext1\" not found");
}

#[tokio::test]
async fn settings_may_have_any_number_and_names() {
    let (peer, client) = pair(Answer::json(&json!({"status": "Success"}))).await;
    let mut large = config("ext1", "ext1", &peer.ca_bundle);
    large.settings = (0..20_000)
        .map(|index| (format!("key-{index}"), "a".repeat(50)))
        .collect();
    for odd in [
        "", "\"", "kind", "Settings", "\u{0}", "\u{2028}", "🦀", "a\\u0000",
    ] {
        large.settings.insert(odd.into(), odd.into());
    }
    let registered = client
        .registry()
        .register(large.clone(), vec![handler("fail", FailurePolicy::Fail)]);
    registered.unwrap();
    call(&client, "fail.ext1", true).await.unwrap();
    let asked = peer.asked.lock().pop().unwrap();
    let body: Value = serde_json::from_slice(&asked.body).unwrap();
    assert_eq!(body["settings"], json!(large.settings));
    assert_eq!(body["kind"], "BeforeClusterCreateRequest");
}

/// Arbitrary JSON in the fields of an ExtensionConfig.
fn any_extension_config() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "Discovered|Paused|True|YQ==|https://a|a\\.ext1|v1/a|BeforeClusterCreate|\\PC{0,6}"
            .prop_map(Value::from),
    ];
    let field = "type|status|observedGeneration|url|service|caBundle|name|namespace|path|port|requestHook|apiVersion|hook|\
                 timeoutSeconds|failurePolicy|clientConfig|namespaceSelector|matchLabels|matchExpressions|settings|conditions|\
                 handlers|annotations|generation|deletionTimestamp|metadata|spec";
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(field, inner, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn an_invalid_extension_config_keeps_the_others(
        at in "|/metadata|/spec|/spec/clientConfig|/status|/status/conditions|/status/handlers|/status/handlers/0", value in any_extension_config(),
    ) {
        let registry = Registry::listed();
        registry.apply(&extension_config("ext2", &["a"], "BeforeClusterCreate", "two")).unwrap();
        let mut config = extension_config("ext1", &["a"], "BeforeClusterCreate", "one");
        *config.pointer_mut(&at).unwrap() = value;
        let taken = registry.apply(&config).is_ok();
        let handlers = registry.handlers().unwrap();
        prop_assert!(handlers.iter().any(|handler| handler.name == "a.ext2"));
        for handler in &handlers {
            prop_assert_eq!(&handler.name, &format!("{}.{}", handler.short_name(), handler.config.name));
            prop_assert!(!handler.path().contains(['?', '#', ' ']));
        }
        prop_assert!(taken || handlers.len() == 1);
    }
}
