use proptest::prelude::*;

use super::*;

fn handler(name: &str, hook: &str) -> Value {
    json!({"name": name, "requestHook": {"apiVersion": format!("{GROUP}/{VERSION}"), "hook": hook}})
}

fn discover(answer: &Value) -> Result<Discovered, DiscoveryError> {
    read_answer(answer.to_string().as_bytes(), &Catalog::cluster_api())
}

fn read(answer: &Value) -> Result<Vec<Handler>, DiscoveryError> {
    discover(answer).map(|discovered| discovered.handlers)
}

fn answer_with(field: &str, value: Value) -> Value {
    let mut handler = handler("first", "BeforeClusterCreate");
    handler[field] = value;
    json!({"status": "Success", "handlers": [handler]})
}

#[test]
fn handlers_are_sorted_and_have_defaults() {
    let mut second = handler("second", "GeneratePatches");
    second["timeoutSeconds"] = 0.into();
    second["failurePolicy"] = "Ignore".into();
    let answer = json!({"Status": "Success", "Handlers": [second, handler("first", "BeforeClusterCreate")]});
    let statuses: Vec<_> = read(&answer)
        .unwrap()
        .iter()
        .map(|handler| handler.to_status("ext1"))
        .collect();
    let hook = |hook: &str| json!({"apiVersion": format!("{GROUP}/{VERSION}"), "hook": hook});
    assert_eq!(
        statuses,
        [
            json!({"name": "first.ext1", "requestHook": hook("BeforeClusterCreate"), "failurePolicy": "Fail", "timeoutSeconds": 10}),
            json!({"name": "second.ext1", "requestHook": hook("GeneratePatches"), "failurePolicy": "Ignore"}),
        ]
    );
    for nothing in [
        json!({"status": "Success"}),
        json!({"status": "Success", "handlers": null}),
    ] {
        assert_eq!(read(&nothing), Ok(vec![]));
    }
}

#[test]
fn hooks_of_unknown_groups_are_accepted() {
    let own = json!({"apiVersion": "hooks.example.com/v1", "hook": "BeforeCoffee"});
    assert_eq!(
        read(&answer_with("requestHook", own)).unwrap()[0].hook.path(),
        "/hooks.example.com/v1/beforecoffee"
    );
}

#[test]
fn unknown_hooks_of_a_known_group_are_skipped() {
    let newer = json!({"apiVersion": format!("{GROUP}/v1"), "hook": "BeforeClusterCreate"});
    let mut second = handler("second", "BeforeCoffee");
    second["timeoutSeconds"] = 5.into();
    let answer = json!({"status": "Success", "handlers": [
        handler("first", "BeforeClusterCreate"), second, {"name": "third", "requestHook": newer},
    ]});
    let found = discover(&answer).unwrap();
    assert_eq!(found.handlers.len(), 1);
    let unknown: Vec<_> = found
        .unknown
        .iter()
        .map(|(name, hook)| format!("{name}: {hook}"))
        .collect();
    assert_eq!(
        unknown,
        [
            "second: hooks.runtime.cluster.x-k8s.io/v1alpha1, Hook=BeforeCoffee",
            "third: hooks.runtime.cluster.x-k8s.io/v1, Hook=BeforeClusterCreate",
        ]
    );
}

#[test]
fn every_problem_is_reported() {
    let message = |answer: &Value| read(answer).unwrap_err().to_string();
    assert_eq!(
        message(&json!({"status": "Failure", "message": "no\n database"})),
        "got failure response with message: no database"
    );
    assert_eq!(
        message(&json!({"message": "a"})),
        "got unknown response status \"\" with message: a"
    );
    assert!(
        read_answer(b"<html>", &Catalog::new())
            .unwrap_err()
            .to_string()
            .starts_with("the answer is not JSON: ")
    );
    assert!(read_answer(b"[]", &Catalog::new()).is_err());
    for (field, value, expected) in [
        (
            "name",
            json!("a.b"),
            "handlers[0].name: \"a.b\" must be a DNS label",
        ),
        ("name", json!(null), "handlers[0].name: \"\" must be a DNS label"),
        (
            "name",
            json!("../x"),
            "handlers[0].name: \"../x\" must be a DNS label",
        ),
        (
            "name",
            json!(1),
            "handlers[0]: name must be a string; handlers[0].name: \"\" must be a DNS label",
        ),
        (
            "timeoutSeconds",
            json!(31),
            "handlers[0].timeoutSeconds: must be 0 to 30",
        ),
        (
            "timeoutSeconds",
            json!(-1),
            "handlers[0].timeoutSeconds: must be 0 to 30",
        ),
        (
            "timeoutSeconds",
            json!("5"),
            "handlers[0].timeoutSeconds: must be 0 to 30",
        ),
        (
            "failurePolicy",
            json!("ignore"),
            "handlers[0].failurePolicy: must be Fail or Ignore",
        ),
        (
            "requestHook",
            json!("x"),
            "handlers[0].requestHook: must be an object",
        ),
        (
            "requestHook",
            json!({"apiVersion": "v1", "hook": "BeforeClusterCreate"}),
            "handlers[0].requestHook: apiVersion \"v1\" must have the form <group>/<version>",
        ),
        (
            "requestHook",
            json!({"apiVersion": "a/b/c", "hook": "BeforeClusterCreate"}),
            "handlers[0].requestHook: apiVersion \"a/b/c\" must have the form <group>/<version>",
        ),
        (
            "requestHook",
            json!({"apiVersion": "example.com/v1", "hook": "a/b"}),
            "handlers[0].requestHook: hook \"a/b\" must be the name of a hook",
        ),
    ] {
        assert_eq!(
            message(&answer_with(field, value.clone())),
            expected,
            "{field}: {value}"
        );
    }
    let twice = json!({"status": "Success", "handlers": [
        handler("a", "BeforeClusterCreate"), handler("a", "GeneratePatches"), 1, handler("", "GeneratePatches"),
    ]});
    assert_eq!(
        message(&twice),
        "handlers[2]: must be an object; handlers[3].name: \"\" must be a DNS label; handlers: duplicate name \"a\""
    );
    assert_eq!(
        message(&json!({"status": "Success", "handlers": {}})),
        "handlers: must be a list"
    );
    let many: Vec<_> = (0..600)
        .map(|index| handler(&format!("h{index}"), "GeneratePatches"))
        .collect();
    assert!(read(&json!({"status": "Success", "handlers": many[..512]})).is_ok());
    assert_eq!(
        message(&json!({"status": "Success", "handlers": many})),
        "handlers: 600 items, at most 512 are allowed"
    );
    let wrong = vec![json!(1); 100];
    assert!(message(&json!({"status": "Success", "handlers": wrong})).ends_with("; and 80 more"));
}

proptest! {
    #[test]
    fn any_answer_is_accepted_or_rejected(body in ".{0,200}") {
        let _ = read_answer(body.as_bytes(), &Catalog::cluster_api());
    }

    #[test]
    fn accepted_handlers_fit_into_the_status(
        names in prop::collection::vec("[a-z./-]{0,4}", 0..4), timeout in -2_i64..40, policy in "Fail|Ignore|fail|",
    ) {
        let handlers: Vec<_> = names.iter().map(|name| {
            let mut handler = handler(name, "GeneratePatches");
            handler["timeoutSeconds"] = timeout.into();
            handler["failurePolicy"] = policy.as_str().into();
            handler
        }).collect();
        for handler in read(&json!({"status": "Success", "handlers": handlers})).unwrap_or_default() {
            let status = handler.to_status("ext1");
            prop_assert!(status["name"].as_str().unwrap().split('.').count() == 2);
            prop_assert!(status.get("timeoutSeconds").is_none_or(|seconds| seconds.as_i64() > Some(0)));
        }
    }
}
