use windlass_trust::injection::TargetKinds;

use super::*;
use crate::{kinds, trim::trim, watch::Watch};

const ONE_WRITE: (Outcome, usize) = (Outcome::Written, 1);
const UNCHANGED: (Outcome, usize) = (Outcome::Unchanged, 0);

const REPLICAS: &[&str] = &["f:spec", "f:replicas"];
const SIDECAR: &[&str] = &[
    "f:spec",
    "f:template",
    "f:spec",
    "f:containers",
    "k:{\"name\":\"proxy\"}",
];

fn scale(install: &Install, replicas: u64) {
    let mut stored = install.server.stored.lock();
    stored.update("autoscaler", |object| {
        object["spec"]["replicas"] = replicas.into();
    });
}

fn sidecar() -> Value {
    json!({"name": "proxy", "image": "p"})
}

fn containers(object: &mut Value) -> &mut Vec<Value> {
    let containers = object.pointer_mut("/spec/template/spec/containers").unwrap();
    containers.as_array_mut().unwrap()
}

fn names(object: &Value) -> Vec<String> {
    let mut object = object.clone();
    let names = containers(&mut object)
        .iter()
        .map(|container| container["name"].as_str().unwrap().to_owned());
    names.collect()
}

#[tokio::test]
async fn autoscaled_replicas_stay_and_each_upgrade_is_one_write() {
    for kind in ["Deployment", "StatefulSet"] {
        let mut install = Install::new(keep_replicas);
        assert_eq!(install.ensure(&workload(kind, "v0")).await, ONE_WRITE);
        for (version, replicas) in [("v1", 5), ("v2", 6), ("v3", 1), ("v4", 9)] {
            scale(&install, replicas);
            let before = workload(kind, &format!("v{}", version[1..].parse::<u8>().unwrap() - 1));
            assert_eq!(
                install.ensure(&before).await,
                UNCHANGED,
                "{kind} {version}: scaled"
            );
            let desired = workload(kind, version);
            assert_eq!(install.ensure(&desired).await, ONE_WRITE, "{kind} {version}");
            assert_eq!(install.live()["spec"]["replicas"], replicas, "{kind} {version}");
            // Windlass may co-own a value that equals the bundle's; replicas of a Deployment are always left
            // to the scaler.
            let is_owned = replicas == 1 && kind == "StatefulSet";
            assert_eq!(install.owns(REPLICAS), is_owned, "{kind} {version}");
            assert_eq!(install.ensure(&desired).await, UNCHANGED, "{kind} {version}");
            assert!(
                install
                    .applier
                    .was_applied(&desired, &install.live(), &field_owner())
            );
            assert!(
                install
                    .applier
                    .is_applied(&desired, &install.live(), &field_owner())
            );
            assert_eq!(containers(&mut install.live())[0]["image"], version);
        }
        install.restart();
        // As without a retention, the normalized values of the API server are forgotten.
        let desired = workload(kind, "v4");
        assert_eq!(install.ensure(&desired).await.1, 1, "{kind}");
        assert_eq!(install.ensure(&desired).await, UNCHANGED, "{kind}");
        assert_eq!(install.live()["spec"]["replicas"], 9, "{kind}");
    }
}

#[tokio::test]
async fn fields_of_an_earlier_version_are_handed_over_without_a_gap() {
    let install = Install::new(keep_replicas);
    let mut before = workload("StatefulSet", "v1");
    before["spec"]["replicas"] = 5.into();
    *install.rules.rule.lock() = None;
    install.ensure(&before).await;
    assert!(install.owns(REPLICAS));
    *install.rules.rule.lock() = Some(keep_replicas);
    for silent in [false, true] {
        let mut desired = workload("StatefulSet", "v2");
        if silent {
            // A version without replicas.
            desired["spec"].as_object_mut().unwrap().remove("replicas");
        }
        assert_eq!(
            install.applier.ensure(&desired, &field_owner()).await.unwrap(),
            Outcome::Written
        );
        let sent = install.server.applied.lock().drain(..).next_back().unwrap();
        assert_eq!(sent["spec"]["replicas"], 5);
        assert!(sent["metadata"]["resourceVersion"].is_string(), "{sent}");
        assert_eq!(install.ensure(&desired).await, UNCHANGED);
        assert!(install.owns(REPLICAS));
    }
    scale(&install, 6);
    let mut desired = workload("StatefulSet", "v3");
    assert_eq!(install.ensure(&desired).await, ONE_WRITE);
    assert_eq!(install.live()["spec"]["replicas"], 6);
    assert!(!install.owns(REPLICAS), "the autoscaler owns it");
    desired["spec"].as_object_mut().unwrap().remove("replicas");
    assert_eq!(install.ensure(&desired).await, ONE_WRITE);
    assert_eq!(install.live()["spec"]["replicas"], 6);
}

#[tokio::test]
async fn concurrent_writes_are_not_overwritten() {
    let install = Install::new(keep_replicas);
    install.ensure(&workload("StatefulSet", "v1")).await;
    assert!(install.owns(REPLICAS));
    // Windlass still owns replicas, so it sends the observed value, and the autoscaler writes at the same
    // time.
    let mut desired = workload("StatefulSet", "v2");
    desired["spec"]["replicas"] = 2.into();
    let racing = |replicas: u64| -> Box<dyn FnOnce(&mut api_server::Stored) + Send> {
        Box::new(move |stored| {
            stored.update("autoscaler", |object| {
                object["spec"]["replicas"] = replicas.into();
            });
        })
    };
    install.server.before_apply.lock().push_back(racing(7));
    assert_eq!(install.ensure(&desired).await, (Outcome::Written, 2));
    assert_eq!(install.live()["spec"]["replicas"], 7);

    // A body without guard needs no second attempt.
    install.server.before_apply.lock().push_back(racing(8));
    let mut desired = workload("StatefulSet", "v3");
    desired["spec"]["replicas"] = 2.into();
    assert_eq!(install.ensure(&desired).await, ONE_WRITE);
    assert_eq!(install.live()["spec"]["replicas"], 8);
    assert_eq!(install.ensure(&desired).await, UNCHANGED);

    // The autoscaler owns the value even if it equals the bundle's.
    scale(&install, 2);
    install.server.before_apply.lock().push_back(racing(9));
    let mut desired = workload("StatefulSet", "v4");
    desired["spec"]["replicas"] = 2.into();
    assert_eq!(install.ensure(&desired).await, (Outcome::Written, 2));
    assert_eq!(install.live()["spec"]["replicas"], 9);
}

#[tokio::test]
async fn constant_concurrent_writes_postpone_the_apply() {
    let install = Install::new(keep_replicas);
    install.ensure(&workload("StatefulSet", "v1")).await;
    let mut desired = workload("StatefulSet", "v2");
    desired["spec"]["replicas"] = 2.into();
    for label in 0..10 {
        install
            .server
            .before_apply
            .lock()
            .push_back(Box::new(move |stored| {
                stored.update("labeller", |object| {
                    object["metadata"]["labels"]["x"] = label.to_string().into();
                });
            }));
    }
    let error = install
        .applier
        .ensure(&desired, &field_owner())
        .await
        .unwrap_err();
    assert!(matches!(error, crate::apply::ApplyError::Request(error) if error.is_conflict()));
    assert_eq!(install.server.applies(), 5);
    assert_eq!(install.live()["spec"]["replicas"], 1);
}

#[tokio::test]
async fn an_injected_sidecar_stays_without_being_owned() {
    for injected in [true, false] {
        let mut install = Install::new(keep_sidecars);
        install.ensure(&workload("StatefulSet", "v1")).await;
        let add = |object: &mut Value| containers(object).insert(0, sidecar());
        match injected {
            true => install.server.stored.lock().inject(add),
            false => install.server.stored.lock().update("injector", add),
        }
        assert_eq!(
            install.ensure(&workload("StatefulSet", "v1")).await,
            UNCHANGED,
            "{injected}"
        );
        for version in ["v2", "v3"] {
            let desired = workload("StatefulSet", version);
            assert_eq!(install.ensure(&desired).await, ONE_WRITE, "{injected} {version}");
            assert_eq!(names(&install.live()), ["proxy", "main"], "{injected}");
            assert!(!install.owns(SIDECAR), "{injected}");
            assert_eq!(install.ensure(&desired).await, UNCHANGED, "{injected} {version}");
        }
        // The injector may change its value; values of the bundle stay.
        install
            .server
            .stored
            .lock()
            .update("injector", |object| containers(object)[0]["image"] = "q".into());
        assert_eq!(install.ensure(&workload("StatefulSet", "v3")).await, UNCHANGED);
        install
            .server
            .stored
            .lock()
            .update("kubectl", |object| containers(object)[1]["image"] = "q".into());
        assert_eq!(install.ensure(&workload("StatefulSet", "v3")).await, ONE_WRITE);
        let mut live = install.live();
        assert_eq!(containers(&mut live)[0]["image"], "q");
        assert_eq!(containers(&mut live)[1]["image"], "v3");
        // Without a rule, the API server keeps the value.
        *install.rules.rule.lock() = None;
        install.restart();
        install.ensure(&workload("StatefulSet", "v4")).await;
        assert_eq!(names(&install.live()), ["proxy", "main"]);
    }
}

#[tokio::test]
async fn a_sidecar_of_ours_is_sent_as_observed() {
    let install = Install::new(keep_sidecars);
    let mut before = workload("StatefulSet", "v1");
    containers(&mut before).push(sidecar());
    install.ensure(&before).await;
    assert!(install.owns(SIDECAR));
    assert_eq!(install.ensure(&workload("StatefulSet", "v2")).await, ONE_WRITE);
    assert_eq!(names(&install.live()), ["main", "proxy"]);
    assert_eq!(install.ensure(&workload("StatefulSet", "v2")).await, UNCHANGED);
    *install.rules.rule.lock() = None;
    assert_eq!(install.ensure(&workload("StatefulSet", "v2")).await, ONE_WRITE);
    assert_eq!(names(&install.live()), ["main"]);
}

#[tokio::test]
async fn without_its_rule_a_value_is_reverted_by_one_write() {
    for owned_by_autoscaler in [true, false] {
        for restarts in [true, false] {
            let mut install = Install::new(keep_replicas);
            let mut before = workload("StatefulSet", "v1");
            before["spec"]["replicas"] = 5.into();
            install.ensure(&before).await;
            if owned_by_autoscaler {
                scale(&install, 4);
            }
            let desired = workload("StatefulSet", "v2");
            install.ensure(&desired).await;
            assert_eq!(install.ensure(&desired).await, UNCHANGED);
            assert_ne!(install.live()["spec"]["replicas"], 1);
            *install.rules.rule.lock() = None;
            if restarts {
                install.restart();
            }
            assert_eq!(install.ensure(&desired).await, ONE_WRITE);
            assert_eq!(install.live()["spec"]["replicas"], 1);
            assert_eq!(install.ensure(&desired).await, UNCHANGED);
        }
    }
}

#[tokio::test]
async fn failed_retentions_write_nothing_and_are_reported() {
    let left_out = |desired: &Value, _: &Value| {
        let mut kept = desired.clone();
        kept["spec"]["template"]["spec"]
            .as_object_mut()
            .unwrap()
            .remove("containers");
        kept["spec"].as_object_mut().unwrap().remove("replicas");
        Ok(Some(kept))
    };
    let renamed = |desired: &Value, _: &Value| {
        let mut kept = desired.clone();
        kept["metadata"]["name"] = "other".into();
        Ok(Some(kept))
    };
    for (rule, expected) in [
        (
            (|_: &Value, _: &Value| Err("script.lua:1: no".into())) as Rule,
            "script.lua:1: no",
        ),
        (
            left_out,
            "it omitted desired fields that exist in the cluster: spec.replicas, spec.template.spec.containers; it must return the desired or the observed value",
        ),
        (renamed, "it returned another object: StatefulSet n/other"),
        (
            |_, _| Ok(Some(json!([]))),
            "it returned another object: one without a name",
        ),
    ] {
        let install = Install::new(keep_replicas);
        install.ensure(&workload("StatefulSet", "v1")).await;
        *install.rules.rule.lock() = Some(rule);
        let desired = workload("StatefulSet", "v2");
        let error = install
            .applier
            .ensure(&desired, &field_owner())
            .await
            .unwrap_err();
        let expected = format!("StatefulSet n/w: rule r failed to retain values: {expected}");
        assert_eq!(error.to_string(), expected);
        assert!(install.applier.dry_run(&desired, &field_owner()).await.is_err());
        assert_eq!(install.server.applies(), 0);
    }
}

#[tokio::test]
async fn server_fields_are_not_sent() {
    let observed = |_: &Value, observed: &Value| Ok(Some(observed.clone()));
    let install = Install::new(observed);
    install.ensure(&workload("StatefulSet", "v1")).await;
    install.server.stored.lock().inject(|object| {
        object["status"] = json!({"replicas": 1});
        object["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
    });
    // All values are retained, except the marks.
    let desired = workload("StatefulSet", "v2");
    assert_eq!(
        install.applier.ensure(&desired, &field_owner()).await.unwrap(),
        Outcome::Written
    );
    let sent = install.server.applied.lock().drain(..).next_back().unwrap();
    assert_eq!(sent.get("status"), None);
    let metadata = sent["metadata"].as_object().unwrap();
    let fields: Vec<_> = metadata.keys().collect();
    assert!(
        !fields
            .iter()
            .any(|field| ["managedFields", "creationTimestamp", "generation"].contains(&&***field))
    );
    assert_eq!(containers(&mut install.live())[0]["image"], "v1");
    assert_eq!(install.ensure(&desired).await, UNCHANGED);
}

#[tokio::test]
async fn a_dry_run_sends_the_same_body_as_a_write() {
    let install = Install::new(keep_replicas);
    install.ensure(&workload("StatefulSet", "v1")).await;
    scale(&install, 5);
    install
        .applier
        .dry_run(&workload("StatefulSet", "v2"), &field_owner())
        .await
        .unwrap();
    let tried = install.server.applied.lock().drain(..).next_back().unwrap();
    assert_eq!(tried["spec"].get("replicas"), None);
    assert_eq!(install.live()["spec"]["replicas"], 5);
}

#[tokio::test]
async fn objects_without_a_retention_cost_no_request() {
    let install = Install::new(keep_replicas);
    *install.rules.rule.lock() = None;
    install.ensure(&workload("StatefulSet", "v1")).await;
    *install.server.reads.lock() = 0;
    assert_eq!(install.ensure(&workload("StatefulSet", "v2")).await, ONE_WRITE);
    assert_eq!(*install.server.reads.lock(), 1, "as without a retention");
    assert_eq!(*install.rules.asked.lock(), 0);
    // A source that retains nothing costs no request either.
    *install.rules.rule.lock() = Some(keep_replicas);
    *install.server.reads.lock() = 0;
    assert_eq!(install.ensure(&workload("StatefulSet", "v3")).await, ONE_WRITE);
    assert_eq!(*install.server.reads.lock(), 1);
}

#[tokio::test]
async fn co_owned_replicas_are_given_up() {
    let install = Install::new(|desired, _| Ok(Some(desired.clone())));
    let desired = workload("Deployment", "v1");
    install.ensure(&desired).await;
    assert!(install.owns(REPLICAS));
    let theirs = REPLICAS.iter().map(|name| (*name).to_owned()).collect();
    let writer = ("kubectl".to_owned(), "Apply");
    install
        .server
        .stored
        .lock()
        .owned
        .entry(writer)
        .or_default()
        .insert(theirs);
    assert_eq!(install.ensure(&desired).await, ONE_WRITE);
    assert!(!install.owns(REPLICAS));
    assert_eq!(install.ensure(&desired).await, UNCHANGED);
    assert!(
        install
            .applier
            .was_applied(&desired, &install.live(), &field_owner())
    );
}

#[tokio::test]
async fn complete_index_entries_need_no_request() {
    for (length, is_answered, reads) in [
        (10, true, [0, 0]),
        (50_000, true, [1, 1]),
        (50_000, false, [1, 0]),
    ] {
        let mut install = Install::new(keep_replicas);
        let mut desired = workload("Deployment", "v1");
        desired["metadata"]["annotations"]["note"] = "x".repeat(length).into();
        containers(&mut desired)[0]["cpu"] = "1".into();
        install.ensure(&desired).await;
        match is_answered {
            true => scale(&install, 5),
            false => *install.rules.rule.lock() = None,
        }
        let index = Index::new();
        let served = kinds::SECRET.object(Some("n"), "windlass-cert");
        let seen = trim(
            install.live(),
            &kinds::DEPLOYMENT,
            &served,
            &TargetKinds::default(),
        );
        index.apply(&Watch::all(kinds::DEPLOYMENT), seen.unwrap());
        let applier = Applier::new(install.server.cluster(), Arc::new(index));
        install.applier = applier.retaining(install.rules.clone());
        for expected in reads {
            *install.server.reads.lock() = 0;
            assert_eq!(install.ensure(&desired).await, UNCHANGED, "{length}");
            assert_eq!(*install.server.reads.lock(), expected, "{length} {is_answered}");
        }
    }
}
