//! Shadowed webhooks, and revisions of configurations.

use proptest::prelude::*;

use super::*;
use crate::Operation;

/// The scope of a webhook: kind, group, operation.
type Scope = (&'static str, &'static str, &'static str);

fn scope() -> impl Strategy<Value = Scope> {
    let kinds = prop::sample::select(vec!["*", "A", "B", "C"]);
    let groups = prop::sample::select(vec!["*", "one", "two"]);
    let operations = prop::sample::select(vec!["*", "Retain", "InterpretHealth"]);
    (kinds, groups, operations)
}

fn meet(one: &str, other: &str) -> bool {
    one == other || one == "*" || other == "*"
}

fn shadowed(scopes: &[Scope]) -> Vec<(String, String, Vec<Operation>)> {
    let hooks: Vec<_> = (0..)
        .zip(scopes)
        .map(|(number, (kind, group, operation))| {
            let name = format!("w{number:04}.example.com");
            webhook(&name, "", &[operation], [group, "v1", kind])
        })
        .collect();
    let states = Webhooks::new(Fake::new(vec![])).replace(&[configuration("c", &hooks)]);
    let shadowed = states[0].shadowed.iter().cloned();
    shadowed
        .map(|shadowed| (shadowed.webhook, shadowed.by, shadowed.operations))
        .collect()
}

proptest! {
    #[test]
    fn the_first_overlapping_webhook_shadows(scopes in prop::collection::vec(scope(), 0..12)) {
        let mut expected: Vec<(String, String, Vec<Operation>)> = Vec::new();
        for (number, (kind, group, operation)) in scopes.iter().enumerate() {
            let mut of_webhook: Vec<(String, String, Vec<Operation>)> = Vec::new();
            for asked in Operation::ALL.into_iter().filter(|asked| meet(operation, asked.name())) {
                let by = scopes[..number].iter().position(|(kind_of, group_of, operation_of)| {
                    meet(operation_of, asked.name()) && meet(kind, kind_of) && meet(group, group_of)
                });
                let Some(by) = by.map(|by| format!("c/w{by:04}.example.com")) else {
                    continue;
                };
                match of_webhook.iter_mut().find(|(_, known, _)| *known == by) {
                    Some((.., operations)) => operations.push(asked),
                    None => of_webhook.push((format!("w{number:04}.example.com"), by, vec![asked])),
                }
            }
            expected.extend(of_webhook);
        }
        prop_assert_eq!(shadowed(&scopes), expected);
    }
}

#[test]
fn a_revision_changes_with_the_configuration() {
    let webhooks = Webhooks::new(Fake::new(vec![]));
    assert!(webhooks.matching(Operation::Retain, &deployment()).is_none());
    let hook = |path: &str| webhook("w.example.com", path, &["*"], ["apps", "v1", "Deployment"]);
    let read = |objects: &[Value]| {
        webhooks.replace(objects);
        let asked = webhooks.matching(Operation::Retain, &deployment()).unwrap();
        asked
            .first()
            .map(|webhook| (webhook.uid().to_owned(), webhook.revision()))
    };
    let first = read(&[configuration("c", &[hook("a")])]);
    assert_eq!(
        first.as_ref().map(|(uid, _)| uid.as_str()),
        Some("c/w.example.com")
    );
    let mut labelled = configuration("c", &[hook("a")]);
    labelled["metadata"]["labels"] = json!({"a": "b"});
    let other = configuration("d", &[]);
    assert_eq!(read(&[other, labelled]), first, "its webhooks are unchanged");
    let second = read(&[configuration("c", &[hook("b")])]);
    assert_ne!(second, first);
    let of_second = || {
        let asked = webhooks.matching(Operation::Retain, &deployment()).unwrap();
        (asked[0].revision(), asked[0].full_revision())
    };
    let (revision, reading) = of_second();
    let mut trusting = hook("b");
    trusting["clientConfig"]["caBundle"] = base64(certificate()).into();
    assert_eq!(
        read(&[configuration("c", &[trusting])]),
        second,
        "its trust bundle has changed"
    );
    assert!(of_second().0 == revision && of_second().1 != reading);
    assert_eq!(read(&[]), None);
    let third = webhooks.replace(&[configuration("c", &[hook("b")])]);
    assert_eq!(third[0].usage, WebhookUsage::Used);
    let asked = webhooks.matching(Operation::Retain, &deployment()).unwrap();
    assert_ne!(
        Some(asked[0].revision()),
        second.map(|(_, revision)| revision),
        "it was deleted before"
    );
}

#[test]
fn a_webhook_has_the_service_of_its_configuration() {
    let mut hook = webhook("w.example.com", "", &["*"], ["apps", "v1", "Deployment"]);
    let service_of = |hook: &Value| {
        let webhooks = Webhooks::new(Fake::new(vec![]));
        webhooks.replace(&[configuration("c", std::slice::from_ref(hook))]);
        let asked = webhooks.matching(Operation::Retain, &deployment()).unwrap();
        asked[0].service().cloned()
    };
    assert_eq!(service_of(&hook), None);
    hook["clientConfig"] = json!({"service": {"namespace": "n", "name": "s"}});
    let service = service_of(&hook).unwrap();
    assert_eq!((&*service.namespace, &*service.name), ("n", "s"));
}
