//! Groups of Kubernetes itself, whose CRDs need an approval (`validateAPIApproval` of
//! apiextensions-apiserver).

use serde_json::{Value, json};

use crate::field::{FieldError, Violation};

const ANNOTATION: &str = "api-approved.kubernetes.io";
const PROPOSAL: &str = "see https://github.com/kubernetes/enhancements/pull/1111";

/// The meaning of a CRD's approval annotation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Approval {
    Approved,
    Bypassed,
    Missing,
    Invalid,
}

/// Returns the error of a CRD's approval. An error that `old` already had is ignored.
pub(super) fn validate(crd: &Value, old: Option<&Value>) -> Option<FieldError> {
    let group = crd["spec"]["group"].as_str().unwrap_or_default();
    let is_protected = ["k8s.io", "kubernetes.io"].iter().any(|owner| {
        group
            .strip_suffix(owner)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    });
    let (approval, before) = (approval(crd), old.map(approval));
    if !is_protected || before == Some(approval) {
        return None;
    }
    let field = format!("metadata.annotations[{ANNOTATION}]");
    match approval {
        Approval::Approved | Approval::Bypassed => None,
        Approval::Missing => {
            let detail = format!("protected groups must have approval annotation {ANNOTATION:?}, {PROPOSAL}");
            Some(FieldError::new(field, Violation::Required, detail))
        }
        Approval::Invalid => {
            let detail = format!(
                "protected groups must have approval annotation {ANNOTATION:?} with either a URL or a reason starting \
                 with \"unapproved\", {PROPOSAL}"
            );
            Some(FieldError::new(
                field,
                Violation::Invalid(json!(approval_annotation(crd))),
                detail,
            ))
        }
    }
}

fn approval_annotation(crd: &Value) -> &str {
    crd["metadata"]["annotations"][ANNOTATION]
        .as_str()
        .unwrap_or_default()
}

fn approval(crd: &Value) -> Approval {
    let text = approval_annotation(crd);
    if text.is_empty() {
        return Approval::Missing;
    }
    if text.starts_with("unapproved") {
        return Approval::Bypassed;
    }
    let url = text.parse::<http::Uri>();
    if url.is_ok_and(|url| url.scheme().is_some() && url.host().is_some_and(|host| !host.is_empty())) {
        Approval::Approved
    } else {
        Approval::Invalid
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crd(group: &str, annotation: &str) -> Value {
        json!({"metadata": {"annotations": {ANNOTATION: annotation}}, "spec": {"group": group}})
    }

    #[test]
    fn only_kubernetes_groups_need_an_approval() {
        for (group, annotation, reason) in [
            ("example.com", "", None),
            ("cluster.x-k8s.io", "", None),
            ("autoscaling.k8s.io", "", Some("FieldValueRequired")),
            ("autoscaling.k8s.io", "yes", Some("FieldValueInvalid")),
            ("autoscaling.k8s.io", "unapproved, for a test", None),
            (
                "autoscaling.k8s.io",
                "https://github.com/kubernetes/kubernetes/pull/63797",
                None,
            ),
        ] {
            let error = validate(&crd(group, annotation), None);
            assert_eq!(
                error.as_ref().map(|error| error.fault.reason()),
                reason,
                "{group} {annotation:?}"
            );
        }
    }

    #[test]
    fn a_crd_that_was_not_approved_may_stay_so() {
        let old = crd("autoscaling.k8s.io", "");
        assert!(validate(&old, Some(&old)).is_none());
        let invalid = crd("autoscaling.k8s.io", "yes");
        assert!(validate(&invalid, Some(&old)).is_some());
    }
}
