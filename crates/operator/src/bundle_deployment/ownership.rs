//! For whom objects are applied, and what stays theirs though others change it.

use std::time::Duration;

use serde_json::Value;
use windlass_api::{BundleDeployment, WebhookState};
use windlass_cluster::{
    apply::{FieldOwner, RepairContest},
    kinds,
    worker::Action,
};
use windlass_crd::claims::{self, Adoption};

use super::{reconciler::BundleReconciler, tenancy::account};

impl BundleReconciler {
    /// For whom the objects of a BundleDeployment are applied.
    ///
    /// Whoever replaces a CRD by one without labels does not get it: while its conversion is armed, it is taken
    /// back as if it were to be adopted, whichever marks of its own the other has left.
    pub(super) fn owner(&self, deployment: &BundleDeployment) -> FieldOwner {
        let mut adopt = deployment.spec.adopt.clone();
        let armed = deployment
            .status
            .iter()
            .flat_map(|status| &status.conversions)
            .filter(|conversion| conversion.state == WebhookState::Armed);
        for conversion in armed {
            let live = self.crd_seen(&conversion.crd);
            if live.is_some_and(|live| claims::Owner::is_erased(&live)) {
                adopt.push(Adoption {
                    kind: kinds::CUSTOM_RESOURCE_DEFINITION.kind.to_string(),
                    name: conversion.crd.clone(),
                });
            }
        }
        FieldOwner {
            bundle_deployment: deployment.metadata.name.clone().unwrap_or_default(),
            uid: deployment.metadata.uid.clone().unwrap_or_default(),
            namespace: deployment.spec.namespace.clone(),
            adopt,
            account: account(deployment),
        }
    }

    /// Says of the objects of a BundleDeployment that somebody else changes them again and again; then `next`, or when
    /// the first of them is to be put back again.
    pub(super) fn announce_contested(&self, deployment: &Value, name: &str, next: Action) -> Action {
        let contested = self.context.applier.contested(name);
        for object in contested.iter().filter(|object| object.is_news) {
            let note = contest(object);
            self.context
                .events
                .warn_related(deployment, &object.object, "Repair", "ObjectContested", &note);
        }
        contested
            .iter()
            .filter_map(|object| object.wait)
            .fold(next, earlier)
    }
}

/// What an event says of an object that somebody else changes again and again.
fn contest(object: &RepairContest) -> String {
    let by = object.by.as_deref().map_or_else(
        || "another client".to_owned(),
        |manager| format!("field manager {manager}"),
    );
    format!(
        "{by} has changed or deleted {} {} times; Windlass restored it each time, and will restore it less often from now on. Configure {by} to ignore it, or change the bundle or spec.config",
        object.object, object.repairs
    )
}

fn earlier(next: Action, wait: Duration) -> Action {
    match next {
        Action::Requeue(after) => Action::Requeue(after.min(wait)),
        Action::AwaitChange => Action::Requeue(wait),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contested_object_is_looked_at_when_it_may_be_put_back() {
        let seconds = Duration::from_secs;
        assert_eq!(
            earlier(Action::AwaitChange, seconds(2)),
            Action::Requeue(seconds(2))
        );
        assert_eq!(
            earlier(Action::Requeue(seconds(5)), seconds(2)),
            Action::Requeue(seconds(2))
        );
        assert_eq!(
            earlier(Action::Requeue(seconds(1)), seconds(2)),
            Action::Requeue(seconds(1))
        );
    }

    #[test]
    fn an_event_names_the_other_writer() {
        let mut object = RepairContest {
            object: kinds::SERVICE.object(Some("n"), "s"),
            by: Some("argocd-controller".to_owned()),
            repairs: 8,
            wait: None,
            is_news: true,
        };
        let note = contest(&object);
        assert!(
            note.starts_with("field manager argocd-controller has changed or deleted Service n/s 8 times"),
            "{note}"
        );
        object.by = None;
        assert!(contest(&object).starts_with("another client has"));
    }
}
