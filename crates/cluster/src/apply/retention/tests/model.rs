//! Random sequences of writes by bundles, other clients and rules.

use proptest::prelude::*;
use tokio::runtime::Builder;

use super::*;

/// The fields of a spec; each may be absent or a small number.
const FIELDS: [&str; 6] = [
    "/spec/a",
    "/spec/b",
    "/spec/o/a",
    "/spec/o/b",
    "/spec/o/p/a",
    "/spec/q/r/a",
];

/// An event in the life of an install.
#[derive(Clone, Debug)]
enum Event {
    /// The bundle sets these fields.
    Upgrade([Option<u8>; 6]),
    /// Another client writes a field, and owns it.
    Update(usize, u8),
    /// A webhook writes a field, which has no owner then.
    Inject(usize, u8),
    /// These fields are retained.
    Rule([bool; 6]),
    /// The operator restarts.
    Restart,
}

fn event() -> impl Strategy<Value = Event> {
    let field = 0..FIELDS.len();
    prop_oneof![
        3 => prop::array::uniform6(prop::option::of(0_u8..4)).prop_map(Event::Upgrade),
        3 => (field.clone(), 0_u8..9).prop_map(|(field, value)| Event::Update(field, value)),
        1 => (field, 0_u8..9).prop_map(|(field, value)| Event::Inject(field, value)),
        1 => prop::array::uniform6(any::<bool>()).prop_map(Event::Rule),
        1 => Just(Event::Restart),
    ]
}

fn put(object: &mut Value, pointer: &str, value: u8) {
    let mut at = object;
    for name in pointer.split('/').skip(1) {
        if !at.is_object() {
            *at = json!({});
        }
        at = &mut at[name];
    }
    *at = value.into();
}

fn bundle(values: [Option<u8>; 6]) -> Value {
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"namespace": "n", "name": "w"}, "spec": {"always": 1},
    });
    for (pointer, value) in FIELDS.iter().zip(values) {
        if let Some(value) = value {
            put(&mut object, pointer, value);
        }
    }
    object
}

/// Retains the fields that an annotation of the observed object names.
fn keep_named(desired: &Value, observed: &Value) -> Result<Option<Value>, BoxError> {
    let mut kept = desired.clone();
    let named = windlass_object::object::annotation(observed, "kept").unwrap_or_default();
    for pointer in named.split(' ') {
        if let Some(value) = observed.pointer(pointer).and_then(Value::as_u64) {
            put(&mut kept, pointer, u8::try_from(value)?);
        }
    }
    Ok(Some(kept))
}

async fn check(events: Vec<Event>) -> Result<(), TestCaseError> {
    let mut install = Install::new(keep_named);
    let mut desired = bundle([None; 6]);
    let mut rule = [false; 6];
    install.ensure(&desired).await;
    for event in events {
        match event {
            Event::Upgrade(values) => desired = bundle(values),
            Event::Update(field, value) => {
                let mut stored = install.server.stored.lock();
                stored.update("other", |object| put(object, FIELDS[field], value));
            }
            Event::Inject(field, value) => {
                let mut stored = install.server.stored.lock();
                stored.inject(|object| put(object, FIELDS[field], value));
            }
            Event::Rule(kept) => {
                rule = kept;
                let named: Vec<_> = FIELDS
                    .iter()
                    .zip(rule)
                    .filter_map(|(pointer, is_kept)| is_kept.then_some(*pointer))
                    .collect();
                let mut stored = install.server.stored.lock();
                stored.update("admin", |object| {
                    object["metadata"]["annotations"]["kept"] = named.join(" ").into();
                });
            }
            Event::Restart => install.restart(),
        }
        let before = install.live();
        let (_, applies) = install.ensure(&desired).await;
        prop_assert!(applies <= 1);
        let after = install.live();
        for (pointer, is_kept) in FIELDS.iter().zip(rule) {
            let (desired, before, after) = (
                desired.pointer(pointer),
                before.pointer(pointer),
                after.pointer(pointer),
            );
            if is_kept && before.is_some() {
                prop_assert_eq!(after, before, "{} is retained", pointer);
            } else if desired.is_some() {
                prop_assert_eq!(after, desired, "{} is desired", pointer);
            }
        }
        let again = install.ensure(&desired).await;
        prop_assert_eq!(again, (Outcome::Unchanged, 0));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn kept_fields_stay_and_each_upgrade_is_one_write(events in prop::collection::vec(event(), 1..12)) {
        Builder::new_current_thread().enable_all().build().unwrap().block_on(check(events))?;
    }
}
