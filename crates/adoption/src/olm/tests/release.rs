//! OLM releases an operator, Windlass installs it, and the adoption is confirmed.

use serde_json::{Value, json};
use windlass_object::{ObjectKey, names, object};

use super::world::{OF_BUNDLE, World};
use crate::{
    ADOPTED_FROM, AdoptionRecord, AdoptionStep,
    olm::{OlmState, final_steps, unrecorded_objects},
};

/// Runs all steps until OLM has released the operator, and calls `after` after each write. OLM and the
/// garbage collector run `rounds` times between two writes.
fn release_operator(world: &mut World, rounds: [usize; 2], after: &mut dyn FnMut(&World, &str)) {
    for _ in 0..50 {
        match world.next().unwrap() {
            OlmState::Released => return,
            OlmState::Waiting(_) => {
                world.reconcile_olm();
                world.collect_garbage();
            }
            OlmState::Due(steps) => {
                for step in steps {
                    if !world.write(&step) {
                        break;
                    }
                    after(world, &format!("{step:?}"));
                    (0..rounds[0]).for_each(|_| world.reconcile_olm());
                    (0..rounds[1]).for_each(|_| world.collect_garbage());
                }
            }
        }
    }
    panic!("OLM never releases the operator: {:?}", world.next());
}

/// Installs a bundle that has these objects, and webhook configurations and roles of other names.
fn install(world: &mut World) {
    for object in &mut world.objects {
        if OF_BUNDLE.iter().any(|kind| object["kind"] == *kind) {
            object["metadata"]["labels"][names::BUNDLE_DEPLOYMENT] = "widgets".into();
        }
    }
    for (api_version, kind) in [
        (
            "admissionregistration.k8s.io/v1",
            "ValidatingWebhookConfiguration",
        ),
        ("rbac.authorization.k8s.io/v1", "ClusterRole"),
    ] {
        world.objects.push(
            json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "new", "uid": format!("new {kind}"),
            "resourceVersion": "0", "labels": {names::BUNDLE_DEPLOYMENT: "widgets"}}}),
        );
    }
}

/// Confirms the adoption: deletes the remaining objects, except a Secret that pods use, then removes the
/// marks. Calls `after` after each write.
fn confirm(world: &mut World, record: &AdoptionRecord, after: &mut dyn FnMut(&World)) {
    let unrecorded = unrecorded_objects(record, &world.objects);
    let remaining = record.objects.iter().chain(&unrecorded);
    let remaining = remaining.filter(|recorded| !recorded.is_adopted() && recorded.kind() != "Secret");
    let live = remaining.filter_map(|recorded| {
        let is_it = |live: &&Value| object::text(live, "/metadata/uid") == recorded.uid();
        world.objects.iter().find(is_it)
    });
    let deletions: Vec<_> = live.filter_map(|live| AdoptionStep::delete(live, "")).collect();
    write(world, &deletions, after);
    let csv = world.csv();
    let steps = final_steps(&record.source, csv.as_ref(), &world.objects);
    write(world, &steps, after);
}

fn write(world: &mut World, steps: &[AdoptionStep], after: &mut dyn FnMut(&World)) {
    for step in steps {
        assert!(world.write(step), "{step:?}");
        world.reconcile_olm();
        world.collect_garbage();
        world.check_calls(&format!("{step:?}"));
        after(world);
    }
}

/// Installs the bundle, confirms the adoption, interrupted after any write, and checks what is left.
fn check_end(mut world: World, record: &AdoptionRecord) {
    install(&mut world);
    let mut ends = Vec::new();
    confirm(&mut world, record, &mut |world| ends.push(world.clone()));
    for end in &mut ends {
        confirm(end, record, &mut |_| {});
    }
    for world in [&[world][..], &ends].concat() {
        assert_eq!(world.csv(), None, "the ClusterServiceVersion still exists");
        let marked = world.objects.iter().filter(|object| {
            object::annotation(object, ADOPTED_FROM).is_some() || object::label(object, "olm.owner").is_some()
        });
        assert_eq!(marked.collect::<Vec<_>>(), Vec::<&Value>::new());
        let left: Vec<_> = world
            .objects
            .iter()
            .filter_map(ObjectKey::from_object)
            .map(|key| key.to_string())
            .collect();
        assert_eq!(
            left,
            [
                "OperatorGroup n/all",
                "ServiceAccount n/widgets",
                "Service n/widgets-service",
                "Secret n/widgets-service-cert",
                "Deployment n/widgets",
                "CustomResourceDefinition widgets.example.com",
                "ValidatingWebhookConfiguration new",
                "ClusterRole new",
            ]
        );
    }
}

#[test]
fn an_interruption_after_any_write_breaks_nothing() {
    for rounds in [[0, 0], [1, 0], [2, 2]] {
        let mut world = World::new();
        let record = world.record();
        let mut tried = 0;
        release_operator(&mut world, rounds, &mut |world, moment| {
            tried += 1;
            for order in 0..2 {
                let mut world = world.clone();
                for _ in 0..4 {
                    if order == 0 {
                        world.reconcile_olm();
                    } else {
                        world.collect_garbage();
                    }
                    world.check(moment);
                    if order == 0 {
                        world.collect_garbage();
                    } else {
                        world.reconcile_olm();
                    }
                    world.check(moment);
                }
            }
        });
        assert!(tried > 12, "{tried}");
        check_end(world, &record);
    }
}

/// OLM and the garbage collector run between the interruption and the next run: OLM creates the webhook
/// configurations again that lost its labels.
#[test]
fn an_interrupted_run_is_completed_by_the_next() {
    let mut moments = Vec::new();
    let record = World::new().record();
    release_operator(&mut World::new(), [0, 0], &mut |world, _| {
        moments.push(world.clone());
    });
    let mut most = 0;
    for world in moments {
        for rounds in 0..4 {
            let mut world = world.clone();
            for _ in 0..rounds {
                world.reconcile_olm();
                world.collect_garbage();
            }
            release_operator(&mut world, [1, 1], &mut |world, moment| world.check(moment));
            let kinds = world.objects.iter().map(|object| &object["kind"]);
            most = most.max(
                kinds
                    .filter(|kind| **kind == "ValidatingWebhookConfiguration")
                    .count(),
            );
            check_end(world, &record);
        }
    }
    assert_eq!(most, 2, "OLM has not created a configuration again");
}

/// Writes before the deletion of the ClusterServiceVersion can be undone.
#[test]
fn writes_before_the_deletion_can_be_undone() {
    let before = World::new();
    let mut world = before.clone();
    let mut undo = Vec::new();
    'written: loop {
        let OlmState::Due(steps) = world.next().unwrap() else {
            panic!("not due")
        };
        for step in steps {
            let Some(back) = step.undo.clone() else {
                break 'written;
            };
            world.write(&step);
            undo.push(AdoptionStep {
                write: back,
                undo: None,
                reason: "",
            });
        }
    }
    for step in undo.iter().rev() {
        world.write(step);
    }
    let marks = |world: &World| {
        let of = |object: &Value| {
            let labels = object["metadata"]["labels"].clone();
            (
                ObjectKey::from_object(object).unwrap().to_string(),
                labels,
                object::annotation(object, ADOPTED_FROM).is_some(),
            )
        };
        let mut marks: Vec<_> = world.objects.iter().map(of).collect();
        marks.sort_by(|a, b| a.0.cmp(&b.0));
        marks
    };
    assert_eq!(marks(&world), marks(&before));
}
