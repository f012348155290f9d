use serde_json::json;

use super::*;
use crate::{
    Hook,
    cluster_api::{BeforeClusterCreate, BeforeClusterUpgrade},
};

/// A discovered ExtensionConfig with handlers, each with the hook that it answers.
fn config(name: &str, handlers: &[(&str, &str)]) -> Value {
    let handlers = handlers.iter().map(|(handler, hook)| {
        json!({
            "name": format!("{handler}.{name}"),
            "requestHook": {"apiVersion": "hooks.runtime.cluster.x-k8s.io/v1alpha1", "hook": hook},
        })
    });
    json!({
        "apiVersion": "runtime.cluster.x-k8s.io/v1beta2", "kind": "ExtensionConfig",
        "metadata": {"name": name, "generation": 1, "resourceVersion": "7"},
        "spec": {
            "clientConfig": {"service": {"namespace": "system", "name": "extension", "path": "/x"}, "caBundle": "YQ=="},
            "settings": {"a": "b"},
        },
        "status": {
            "conditions": [{"type": "Discovered", "status": "True", "observedGeneration": 1}],
            "handlers": handlers.collect::<Value>(),
        },
    })
}

fn handler_names(registry: &Registry, hook: &HookReference) -> Vec<String> {
    let handlers = registry.list(hook).unwrap();
    handlers.iter().map(|handler| handler.name.clone()).collect()
}

fn register_error(registry: &Registry, config: &Value) -> String {
    registry.apply(config).unwrap_err().to_string()
}

#[test]
fn lookups_fail_until_extension_configs_are_listed() {
    let registry = Registry::new();
    let create = BeforeClusterCreate::reference();
    registry
        .apply(&config("ext1", &[("first", "BeforeClusterCreate")]))
        .unwrap();
    assert_eq!(registry.list(&create), Err(NotListedError));
    assert_eq!(registry.get("first.ext1"), Err(NotListedError));
    registry.mark_listed();
    assert_eq!(handler_names(&registry, &create), ["first.ext1"]);
}

#[test]
fn handlers_are_registered_with_their_extension_config() {
    let registry = Registry::listed();
    let (create, upgrade) = (
        BeforeClusterCreate::reference(),
        BeforeClusterUpgrade::reference(),
    );
    let first = [
        ("b", "BeforeClusterCreate"),
        ("a", "BeforeClusterCreate"),
        ("c", "BeforeClusterUpgrade"),
    ];
    registry.apply(&config("ext1", &first)).unwrap();
    assert_eq!(handler_names(&registry, &create), ["a.ext1", "b.ext1"]);
    assert_eq!(handler_names(&registry, &upgrade), ["c.ext1"]);
    registry
        .apply(&config("ext2", &[("a", "BeforeClusterUpgrade")]))
        .unwrap();
    assert_eq!(handler_names(&registry, &upgrade), ["a.ext2", "c.ext1"]);
    registry
        .apply(&config("ext1", &[("a", "BeforeClusterUpgrade")]))
        .unwrap();
    assert!(handler_names(&registry, &create).is_empty());
    assert_eq!(handler_names(&registry, &upgrade), ["a.ext1", "a.ext2"]);
    registry.remove("ext1");
    assert_eq!(handler_names(&registry, &upgrade), ["a.ext2"]);
    registry.retain(|name| name != "ext2");
    assert!(registry.handlers().unwrap().is_empty() && registry.states().is_empty());

    registry.apply(&config("ext1", &first)).unwrap();
    let mut terminating = config("ext1", &first);
    terminating["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    terminating["metadata"]["annotations"] = json!({"cluster.x-k8s.io/paused": ""});
    registry.apply(&terminating).unwrap();
    assert!(registry.handlers().unwrap().is_empty(), "even while paused");
}

#[test]
fn a_handler_has_the_fields_of_its_extension_config() {
    let registry = Registry::listed();
    let mut written = config(
        "ext1",
        &[
            ("first", "BeforeClusterCreate"),
            ("second", "BeforeClusterCreate"),
        ],
    );
    written["status"]["handlers"][0]["timeoutSeconds"] = 5.into();
    written["status"]["handlers"][0]["failurePolicy"] = "Ignore".into();
    registry.apply(&written).unwrap();
    let first = registry.get("first.ext1").unwrap().unwrap();
    assert_eq!(
        first.path(),
        "/x/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclustercreate/first"
    );
    assert_eq!(first.config.server.authority(), "extension.system.svc:443");
    assert_eq!(first.config.resource_version, "7");
    assert_eq!(first.config.settings["a"], "b");
    assert_eq!(
        (first.timeout, first.failure_policy),
        (Duration::from_secs(5), FailurePolicy::Ignore)
    );
    let second = registry.get("second.ext1").unwrap().unwrap();
    assert_eq!(
        (second.timeout, second.failure_policy),
        (Duration::from_secs(10), FailurePolicy::Fail)
    );
    assert_eq!(registry.get("third.ext1").unwrap(), None);
}

#[test]
fn an_invalid_extension_config_is_rejected() {
    let good = config("ext1", &[("first", "BeforeClusterCreate")]);
    let with = |pointer: &str, value: Value| {
        let mut config = good.clone();
        *config.pointer_mut(pointer).unwrap() = value;
        config
    };
    for (wrong, expected) in [
        (
            with("/spec/clientConfig/caBundle", "".into()),
            "failed to validate ExtensionConfig: caBundle is not set on ExtensionConfig ext1",
        ),
        (
            with("/status/conditions", json!([])),
            "failed to validate ExtensionConfig: waiting for the Discovered condition of ExtensionConfig ext1",
        ),
        (
            with(
                "/status/conditions/0",
                json!({"type": "Discovered", "status": "False", "message": "a"}),
            ),
            "failed to validate ExtensionConfig: ExtensionConfig ext1 is not discovered: a",
        ),
        (
            with("/status/conditions/0/observedGeneration", 0.into()),
            "failed to validate ExtensionConfig: waiting for the Discovered condition of generation 1 of ExtensionConfig ext1, observed generation is 0",
        ),
        (
            with("/status/handlers/0/name", "first.ext2".into()),
            "failed to validate ExtensionConfig: status.handlers[0].name: \"first.ext2\" must have the form <handler>.ext1",
        ),
        (
            with("/status/handlers/0/name", "a.b.ext1".into()),
            "failed to validate ExtensionConfig: status.handlers[0].name: \"a.b.ext1\" must have the form <handler>.ext1",
        ),
        (
            with("/status/handlers/0/requestHook/apiVersion", "a/b/c".into()),
            "failed to validate ExtensionConfig: status.handlers[0].requestHook.apiVersion: \"a/b/c\" must have the form <group>/<version>",
        ),
        (
            with("/status/handlers/0/requestHook/hook", "../x".into()),
            "failed to validate ExtensionConfig: status.handlers[0].requestHook.hook: \"../x\" must be the name of a hook",
        ),
        (
            with(
                "/spec/clientConfig",
                json!({"caBundle": "YQ==", "url": "http://a"}),
            ),
            "spec.clientConfig: \"http://a\" must begin with https://",
        ),
        (
            with("/spec/clientConfig", json!({"caBundle": "YQ=="})),
            "spec.clientConfig: must have service or url",
        ),
        (
            with("/spec/clientConfig/caBundle", "%".into()),
            "spec.clientConfig.caBundle: must be base64",
        ),
    ] {
        let registry = Registry::listed();
        assert_eq!(register_error(&registry, &wrong), expected);
        assert_eq!(
            registry.states()["ext1"],
            RegistrationState::Waiting(expected.into())
        );

        registry.apply(&good).unwrap();
        registry.apply(&wrong).unwrap_err();
        assert_eq!(
            registry.states()["ext1"],
            RegistrationState::Kept(expected.into())
        );
        assert_eq!(
            registry.handlers().unwrap().len(),
            1,
            "the last valid handlers are kept"
        );
        registry.apply(&good).unwrap();
        assert_eq!(registry.states()["ext1"], RegistrationState::Registered);
    }
    let without_bundle = with("/spec/clientConfig/caBundle", "".into());
    let registry = Registry::listed().with_system_roots();
    registry.apply(&without_bundle).unwrap();

    let mut selects = good.clone();
    selects["spec"]["namespaceSelector"] =
        json!({"matchExpressions": [{"key": "a", "operator": "bad-operator"}]});
    assert_eq!(
        register_error(&registry, &selects),
        "spec.namespaceSelector.matchExpressions[0].operator: must be In, NotIn, Exists or DoesNotExist"
    );
}

#[test]
fn a_paused_extension_config_is_unchanged() {
    let registry = Registry::listed();
    let good = config("ext1", &[("first", "BeforeClusterCreate")]);
    registry.apply(&good).unwrap();
    let mut paused = config("ext1", &[("second", "BeforeClusterCreate")]);
    paused["status"]["conditions"]
        .as_array_mut()
        .unwrap()
        .push(json!({"type": "Paused", "status": "True"}));
    assert_eq!(
        register_error(&registry, &paused),
        "ExtensionConfig ext1 is paused"
    );
    assert_eq!(
        handler_names(&registry, &BeforeClusterCreate::reference()),
        ["first.ext1"]
    );
}

#[test]
fn v1alpha1_conditions_are_read_from_the_v1beta2_path() {
    let registry = Registry::listed();
    let mut older = config("ext1", &[("first", "BeforeClusterCreate")]);
    older["apiVersion"] = "runtime.cluster.x-k8s.io/v1alpha1".into();
    let conditions = older["status"]["conditions"].take();
    older["status"]["conditions"] = json!([{"type": "Discovered", "status": "True"}]);
    assert!(
        register_error(&registry, &older).contains("waiting for"),
        "the v1alpha1 conditions are not used"
    );
    older["status"]["v1beta2"] = json!({"conditions": conditions});
    registry.apply(&older).unwrap();
}

#[test]
fn code_can_register_handlers() {
    let registry = Registry::listed();
    let server = webhook_transport::ServerReference::url("https://example.com/x", "").unwrap();
    let config = ExtensionConfig {
        name: "ext1".into(),
        resource_version: String::new(),
        server,
        namespace_selector: json!({}),
        settings: BTreeMap::new(),
    };
    let handler = |name: &str| Handler {
        name: name.into(),
        hook: BeforeClusterCreate::reference(),
        timeout_seconds: None,
        failure_policy: FailurePolicy::Fail,
    };
    registry.register(config.clone(), vec![handler("a")]).unwrap();
    for wrong in [
        vec![handler("a"), handler("a")],
        vec![handler("a.b")],
        vec![handler("")],
    ] {
        registry.register(config.clone(), wrong).unwrap_err();
        assert_eq!(
            registry.handlers().unwrap().len(),
            1,
            "the last valid handlers are kept"
        );
    }
}

#[test]
fn an_empty_selector_selects_all_namespaces() {
    let mut object = config("ext1", &[]);
    for (selector, all, matching) in [
        (Value::Null, true, true),
        (json!({}), true, true),
        (json!({"matchLabels": {}, "matchExpressions": []}), true, true),
        (json!({"matchLabels": {"a": "b"}}), false, true),
        (json!({"matchLabels": {"a": "c"}}), false, false),
    ] {
        object["spec"]["namespaceSelector"] = selector;
        let read = ExtensionConfig::read(&object).unwrap();
        assert_eq!(read.is_for_all_namespaces(), all);
        assert_eq!(read.is_for_namespace(&json!({"a": "b"})), matching);
    }
}
