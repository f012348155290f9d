use serde_json::{Value, json};

use super::{NOW, status};

#[test]
fn a_job_completes_in_all_clusters_or_fails_in_one() {
    let with = |types: &[&str], start: &str, completion: Option<&str>| {
        let conditions: Vec<Value> = types
            .iter()
            .map(|of_type| json!({"type": of_type, "status": "True"}))
            .collect();
        json!({"succeeded": 1, "failed": 1, "conditions": conditions, "startTime": start, "completionTime": completion})
    };
    let condition = |of_type: &str, reason: &str, message: &str| json!({"type": of_type, "status": "True", "lastProbeTime": NOW, "lastTransitionTime": NOW, "reason": reason, "message": message});
    let first = "2026-01-01T00:00:00Z";
    let second = "2026-01-02T00:00:00Z";
    let third = "2026-01-03T00:00:00Z";
    let complete = with(&["Complete"], second, Some(third));
    let met = with(&["SuccessCriteriaMet", "Complete"], first, Some(second));
    let failed = with(&["Failed"], second, None);
    let announced = with(&["FailureTarget", "Failed"], second, None);
    let completed = condition("Complete", "Completed", "Job completed in all clusters");
    for (statuses, expected) in [
        (vec![], json!({})),
        (
            vec![json!({"active": 1}), json!({"active": 2})],
            json!({"active": 3}),
        ),
        (
            vec![complete.clone(), met.clone()],
            json!({"succeeded": 2, "failed": 2, "conditions": [completed], "startTime": first, "completionTime": third}),
        ),
        (
            vec![met.clone(), met.clone()],
            json!({
                "succeeded": 2, "failed": 2, "startTime": first, "completionTime": second,
                "conditions": [condition("SuccessCriteriaMet", "CompletionsReached", "Job met its success criteria in all clusters"), completed],
            }),
        ),
        (
            vec![complete.clone(), json!(null)],
            json!({"succeeded": 1, "failed": 1}),
        ),
        (
            vec![complete.clone(), failed.clone(), failed],
            json!({
                "succeeded": 3, "failed": 3, "startTime": second,
                "conditions": [condition("Failed", "JobFailed", "Job failed in clusters b, c")],
            }),
        ),
        (
            vec![announced],
            json!({
                "succeeded": 1, "failed": 1, "startTime": second,
                "conditions": [
                    condition("FailureTarget", "JobFailed", "Job failed in clusters a"),
                    condition("Failed", "JobFailed", "Job failed in clusters a"),
                ],
            }),
        ),
    ] {
        assert_eq!(
            status("batch/v1", "Job", &json!({}), &statuses),
            expected,
            "{statuses:?}"
        );
    }
    let started = json!({"status": {"startTime": third}});
    assert_eq!(
        status("batch/v1", "Job", &started, std::slice::from_ref(&met))["startTime"],
        third
    );
    let ended = json!({"status": {"conditions": [{"type": "Failed", "status": "True"}]}});
    assert_eq!(status("batch/v1", "Job", &ended, &[met]), ended["status"]);
}

#[test]
fn a_cron_job_has_the_last_start() {
    let old = json!({"status": {"active": [{"name": "old"}], "lastScheduleTime": "2025-01-01T00:00:00Z"}});
    let status = |statuses: &[Value]| status("batch/v1", "CronJob", &old, statuses);
    assert_eq!(
        status(&[
            json!({"active": [{"name": "x"}], "lastScheduleTime": "2026-01-01T00:00:00Z", "lastSuccessfulTime": "2026-01-03T00:00:00Z"}),
            json!({"active": [{"name": "y"}], "lastScheduleTime": "2026-01-02T00:00:00Z"}),
        ]),
        json!({
            "active": [{"name": "x"}, {"name": "y"}],
            "lastScheduleTime": "2026-01-02T00:00:00Z", "lastSuccessfulTime": "2026-01-03T00:00:00Z",
        })
    );
    assert_eq!(status(&[json!(null)]), json!({}));
}
