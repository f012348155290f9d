use serde_json::{Value, json};

use super::*;

fn pod() -> Pod {
    serde_json::from_value(json!({
        "metadata": {"name": "p", "namespace": "n", "uid": "u"},
        "spec": {"restartPolicy": "OnFailure", "initContainers": [{"name": "init", "image": "i"}],
            "containers": [{"name": "a", "image": "x"}, {"name": "b", "image": "y"}]},
    }))
    .unwrap()
}

fn members(
    init: Option<ContainerRecord>,
    a: Option<ContainerRecord>,
    b: Option<ContainerRecord>,
) -> Vec<Member> {
    let mut members = Member::all(pod().spec.as_ref().unwrap());
    for (member, state) in members.iter_mut().zip([init, a, b]) {
        member.state = state;
    }
    members
}

fn running(ready: bool) -> Option<ContainerRecord> {
    Some(ContainerRecord::running(ready))
}

fn ended(exit_code: i32) -> Option<ContainerRecord> {
    Some(ContainerRecord::ended(exit_code))
}

fn crashed() -> Option<ContainerRecord> {
    let last = ended(1).and_then(|state| state.outcome().cloned());
    let phase = ContainerPhase::Waiting {
        reason: "CrashLoopBackOff",
        message: "back-off".to_owned(),
    };
    Some(ContainerRecord {
        phase,
        last,
        restarts: 2,
        ..ContainerRecord::default()
    })
}

fn view<'a>(pod: &'a Pod, members: &'a [Member]) -> View<'a> {
    let address = Some(Ipv4Addr::new(127, 1, 0, 9));
    View {
        pod,
        host: Ipv4Addr::new(127, 1, 0, 1),
        address,
        members,
        message: "",
        ending: false,
    }
}

fn true_conditions(status: &PodStatus) -> Vec<&str> {
    let conditions = status.conditions.iter().flatten();
    conditions
        .filter(|condition| condition.status == "True")
        .map(|condition| condition.type_.as_str())
        .collect()
}

#[test]
fn phases_follow_the_containers() {
    for (members, expected) in [
        (members(None, None, None), "Pending"),
        (members(running(true), None, None), "Pending"),
        (members(ended(0), running(false), None), "Pending"),
        (members(ended(0), running(false), running(true)), "Running"),
        (members(ended(0), crashed(), running(true)), "Running"),
        (members(ended(0), ended(0), running(true)), "Running"),
        (members(ended(0), ended(0), ended(0)), "Succeeded"),
        (members(ended(0), ended(0), ended(137)), "Failed"),
        (members(ended(1), None, None), "Failed"),
    ] {
        assert_eq!(phase(&members), expected, "{members:?}");
    }
}

#[test]
fn a_pod_is_ready_when_all_its_containers_are_and_it_is_not_to_end() {
    let (pod, previous, now) = (pod(), PodStatus::default(), Timestamp::UNIX_EPOCH);
    let ready = members(ended(0), running(true), running(true));
    let all = [
        "PodScheduled",
        "PodReadyToStartContainers",
        "Initialized",
        "ContainersReady",
        "Ready",
    ];
    assert_eq!(true_conditions(&of(&view(&pod, &ready), &previous, now)), all);
    let ending = View {
        ending: true,
        ..view(&pod, &ready)
    };
    assert_eq!(true_conditions(&of(&ending, &previous, now)), all[..3]);
    let unready = members(ended(0), running(true), running(false));
    let status = of(&view(&pod, &unready), &previous, now);
    assert_eq!(true_conditions(&status), all[..3]);
    let message = status.conditions.unwrap().pop().unwrap().message;
    assert_eq!(message.as_deref(), Some("containers with unready status: [b]"));
}

#[test]
fn a_readiness_gate_holds_readiness_back_until_its_condition_is_true() {
    let mut gated = serde_json::to_value(pod()).unwrap();
    gated["spec"]["readinessGates"] = json!([{"conditionType": "example.com/gate"}]);
    let ready = members(ended(0), running(true), running(true));
    let conditions = |gated: &Value| {
        let pod: Pod = serde_json::from_value(gated.clone()).unwrap();
        let status = of(&view(&pod, &ready), &PodStatus::default(), Timestamp::UNIX_EPOCH);
        true_conditions(&status).contains(&"Ready")
    };
    assert!(!conditions(&gated));
    gated["status"] = json!({"conditions": [{"type": "example.com/gate", "status": "True"}]});
    assert!(conditions(&gated));
}

#[test]
fn what_is_missing_is_said_where_kubectl_shows_it() {
    let (pod, waiting) = (pod(), members(None, None, None));
    let view = View {
        address: None,
        message: "secret \"x\" not found",
        ..view(&pod, &waiting)
    };
    let status = of(&view, &PodStatus::default(), Timestamp::UNIX_EPOCH);
    let first = status.container_statuses.unwrap().swap_remove(0);
    assert_eq!(
        serde_json::to_value(first.state).unwrap(),
        json!({"waiting": {"reason": "ContainerCreating", "message": "secret \"x\" not found"}})
    );
}

#[test]
fn a_condition_keeps_its_time_until_its_status_changes() {
    let (pod, ready) = (pod(), members(ended(0), running(true), running(true)));
    let second = |second| Timestamp::from_second(second).unwrap();
    let first = of(&view(&pod, &ready), &PodStatus::default(), second(1));
    let again = of(&view(&pod, &ready), &first, second(2));
    assert_eq!(again, first);
    let ending = of(
        &View {
            ending: true,
            ..view(&pod, &ready)
        },
        &again,
        second(3),
    );
    let times: Vec<_> = ending
        .conditions
        .unwrap()
        .into_iter()
        .map(|known| known.last_transition_time.unwrap().0)
        .collect();
    assert_eq!(times, [1, 1, 1, 3, 3].map(second));
}
