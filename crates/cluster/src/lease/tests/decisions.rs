//! Decisions of a single candidate.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::{
    super::{Candidate, Decision, LeaderElectionRecord, Moment},
    *,
};

fn held(holder: &str, seconds: Option<u64>) -> LeaderElectionRecord {
    LeaderElectionRecord {
        holder: holder.to_owned(),
        duration: seconds.map(Duration::from_secs),
        acquired: Some(at(0).wall),
        renewed: Some(at(0).wall),
        transitions: 4,
    }
}

/// Returns the decision about a Lease that was first observed at 0 and is unchanged after `milliseconds`.
fn decided(found: &LeaderElectionRecord, milliseconds: u64) -> Decision {
    let mut candidate = Candidate::new("me".into(), TIMING);
    candidate.decide(Some(found), at(0));
    candidate.decide(Some(found), at(milliseconds))
}

#[test]
fn a_lease_is_acquired_without_a_holder_or_after_its_duration() {
    for (found, milliseconds, is_acquired) in [
        (held("", Some(15)), 0, true),
        (held("other", Some(15)), 0, false),
        (held("other", Some(15)), 14_999, false),
        (held("other", Some(15)), 15_000, true),
        (held("other", Some(60)), 59_999, false),
        (held("other", Some(1)), 1_000, true),
        (held("other", None), 14_999, false),
        (held("other", None), 15_000, true),
    ] {
        match decided(&found, milliseconds) {
            Decision::Take(record) => {
                assert!(is_acquired, "{found:?} after {milliseconds} ms");
                assert_eq!((record.holder.as_str(), record.transitions), ("me", 5));
                assert_eq!(record.acquired, Some(at(milliseconds).wall));
                assert_eq!(record.renewed, record.acquired);
            }
            Decision::Wait { holder, remaining } => {
                assert!(!is_acquired, "{found:?} after {milliseconds} ms");
                let waits = found.duration.unwrap_or(TIMING.lease_duration);
                assert_eq!(
                    (holder, remaining),
                    (found.holder, waits - Duration::from_millis(milliseconds))
                );
            }
            renewed @ Decision::Renew(_) => panic!("{renewed:?}"),
        }
    }
}

#[test]
fn a_missing_lease_is_created_without_a_transition() {
    let mut candidate = Candidate::new("me".into(), TIMING);
    let Decision::Take(record) = candidate.decide(None, at(7)) else {
        panic!("there is no holder");
    };
    assert_eq!((record.transitions, record.acquired), (0, Some(at(7).wall)));
}

#[test]
fn a_renewal_keeps_acquire_time_and_transitions() {
    let Decision::Renew(record) = decided(&held("me", Some(15)), 3_000) else {
        panic!("it is ours");
    };
    assert_eq!(record.acquired, Some(at(0).wall));
    assert_eq!(record.renewed, Some(at(3_000).wall));
    assert_eq!(record.transitions, 4);
}

#[test]
fn every_observed_renewal_restarts_the_wait() {
    let mut candidate = Candidate::new("me".into(), TIMING);
    let mut found = held("other", Some(15));
    for second in 0..100 {
        found.renewed = Some(at(second * 14_000).wall);
        let decision = candidate.decide(Some(&found), at(second * 14_000));
        assert!(
            matches!(decision, Decision::Wait { .. }),
            "{second}: {decision:?}"
        );
    }
}

#[test]
fn a_wrong_calendar_does_not_expire_a_lease() {
    let mut candidate = Candidate::new("me".into(), TIMING);
    let mut found = held("other", Some(15));
    found.renewed = Some(at(0).wall - SignedDuration::from_hours(24));
    candidate.decide(Some(&found), at(0));
    let jumped = Moment {
        wall: at(0).wall + SignedDuration::from_hours(48),
        ..at(1_000)
    };
    let decision = candidate.decide(Some(&found), jumped);
    assert!(matches!(decision, Decision::Wait { .. }), "{decision:?}");
}

#[test]
fn a_claim_ends_on_the_faster_clock() {
    let mut candidate = Candidate::new("me".into(), TIMING);
    let claim = candidate.record_write(held("me", Some(15)), at(1_000)).clone();
    let day = SignedDuration::from_hours(24);
    let moment = |milliseconds: u64, jump: SignedDuration| Moment {
        wall: at(milliseconds).wall + jump,
        ..at(milliseconds)
    };
    for (now, expected) in [
        (moment(1_000, SignedDuration::ZERO), true),
        (moment(10_999, SignedDuration::ZERO), true),
        (moment(11_000, SignedDuration::ZERO), false),
        (moment(2_000, day), false),
        (moment(2_000, -day), true),
        (moment(11_000, -day), false),
    ] {
        assert_eq!(claim.is_current_for("me", now), expected, "{now:?}");
        assert_eq!(candidate.has_expired(now), !expected, "{now:?}");
        assert!(!claim.is_current_for("other", now));
    }
}

#[test]
fn a_lease_is_read_back_and_keeps_other_fields() {
    let mut lease = json!({
        "metadata": {"name": "windlass", "resourceVersion": "7", "labels": {"theirs": "1"}},
        "spec": {"holderIdentity": "other", "preferredHolder": "theirs"},
    });
    let mut record = held("me", Some(15));
    record.acquired = Some("2026-11-21T10:00:00.000001Z".parse::<Timestamp>().unwrap());
    record.write_to(&mut lease);
    assert_eq!(LeaderElectionRecord::from_lease(&lease).unwrap(), record);
    assert_eq!(lease["metadata"]["labels"]["theirs"], "1");
    assert_eq!(lease["spec"]["preferredHolder"], "theirs");
    // The API server's MicroTime requires exactly six digits.
    assert_eq!(lease["spec"]["acquireTime"], "2026-11-21T10:00:00.000001Z");
    assert_eq!(lease["spec"]["renewTime"], "2027-01-15T08:00:00.000000Z");
}

#[test]
fn an_empty_lease_has_no_holder_and_an_invalid_one_is_an_error() {
    for lease in [
        json!({}),
        json!({"spec": {}}),
        json!({"spec": {"holderIdentity": null}}),
    ] {
        assert_eq!(
            LeaderElectionRecord::from_lease(&lease).unwrap(),
            LeaderElectionRecord::default()
        );
    }
    for spec in [
        json!({"holderIdentity": 1}),
        json!({"renewTime": "yesterday"}),
        json!([]),
    ] {
        assert!(
            LeaderElectionRecord::from_lease(&json!({"spec": spec})).is_err(),
            "{spec}"
        );
    }
}

#[test]
fn this_machine_has_a_steady_clock() {
    let before = Moment::now();
    let later = before.after(Duration::from_secs(3600));
    assert!(before.has_passed(Moment::now()) && !later.has_passed(Moment::now()));
}
