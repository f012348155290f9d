//! What is applied of a CustomResourceDefinition at each stage of an install, and how far it was applied already.
//!
//! Pods of the revision before convert and change objects until webhooks swing. Until then a CRD that converts keeps the schemas
//! that they know, and the trust bundle of whom it calls.

use std::sync::Arc;

use serde_json::Value;
use windlass_cluster::{RequestError, apply::Applicant};
use windlass_crd::{is_converting, versions};
use windlass_object::{ObjectKey, json, names, object};

use super::reconciler::BundleReconciler;
use crate::install::plan::{Stage, keep_schemas, staged};

// === impl BundleReconciler ===

impl BundleReconciler {
    /// The live CRD that [`Stage::Rollout`] begins with, and how far that goes: to [`Stage::Swing`] where the schemas of `desired`
    /// are there already, or nothing keeps them away. `seen` is what a watch has shown. `converts`: a webhook is to convert.
    pub(super) async fn rollout_of(
        &self,
        owner: &Applicant,
        desired: &Value,
        seen: Option<Arc<Value>>,
        converts: bool,
    ) -> Result<(Option<Arc<Value>>, Stage), RequestError> {
        let reaches_swing =
            |live: &Value| !keeps_schemas(live, converts) || self.has_schemas(owner, desired, live);
        let Some(key) = ObjectKey::of(desired).filter(|_| seen.is_some()) else {
            return Ok((seen, Stage::Swing));
        };
        if seen.as_deref().is_some_and(reaches_swing) {
            return Ok((seen, Stage::Swing));
        }
        // A watch that lags shows what was applied before, and shows no schemas.
        let live = self.context.cluster.read(&key).await?.map(Arc::new);
        let stage = match live.as_deref() {
            Some(live) if !reaches_swing(live) => Stage::Rollout,
            _ => Stage::Swing,
        };
        Ok((live, stage))
    }

    /// Whether `desired` was applied to a CRD, at any stage.
    pub(super) async fn is_crd_applied(
        &self,
        owner: &Applicant,
        desired: &Value,
        live: &Value,
        converts: bool,
    ) -> Result<bool, RequestError> {
        let was_applied = |live: &Value, stage| {
            let body = body_at(desired, Some(live), stage, converts);
            self.context.applier.was_applied(&body, live, owner)
        };
        if Stage::ALL.into_iter().any(|stage| was_applied(live, stage)) {
            return Ok(true);
        }
        let is_whole = versions(live)
            .iter()
            .all(|version| version.get("schema").is_some());
        let keeps = keeps_schemas(live, converts);
        let Some(key) = ObjectKey::of(desired).filter(|_| keeps && !is_whole) else {
            return Ok(false);
        };
        // The schemas that are kept are part of what was applied, and a watch does not show them.
        let whole = self.context.cluster.read(&key).await?;
        Ok(whole.is_some_and(|whole| was_applied(&whole, Stage::Rollout)))
    }

    /// Whether a CRD that converts was given the schemas of `desired`, whatever somebody has made of it since.
    fn has_schemas(&self, owner: &Applicant, desired: &Value, live: &Value) -> bool {
        [Stage::Swing, Stage::Proven, Stage::Settled]
            .into_iter()
            .any(|stage| {
                let body = body_at(desired, Some(live), stage, true);
                self.context.applier.has_applied(&body, live, owner)
            })
    }
}

/// The body to apply at a stage. `converts`: a webhook is to convert.
pub(super) fn body_at(desired: &Value, live: Option<&Value>, stage: Stage, converts: bool) -> Value {
    let mut body = staged(desired, live, stage, converts || live.is_some_and(is_converting));
    if let Some(live) = live.filter(|_| stage <= Stage::Swing) {
        keep_ca_source(&mut body, live);
    }
    if let Some(live) = live.filter(|live| stage == Stage::Rollout && keeps_schemas(live, converts)) {
        keep_schemas(&mut body, live);
    }
    body
}

/// Whether versions in use keep their schemas until webhooks swing. Where a conversion begins or ends there, nobody has converted
/// before, or nobody will.
fn keeps_schemas(live: &Value, converts: bool) -> bool {
    converts && is_converting(live)
}

/// Until its conversion is pointed elsewhere, a CRD has the trust bundle of whom it calls.
fn keep_ca_source(body: &mut Value, live: &Value) {
    let Some(source) = object::annotation(live, names::INJECT_CA_FROM).filter(|_| is_converting(live)) else {
        return;
    };
    json::fields(body, &["metadata", "annotations"]).insert(names::INJECT_CA_FROM.into(), source.into());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn crd(converts: bool, service: &str, versions: &[(&str, bool, &str)]) -> Value {
        let versions: Vec<_> = versions
            .iter()
            .map(|(name, served, schema)| {
                json!({"name": name, "served": served, "storage": *name == "v1", "schema": schema})
            })
            .collect();
        json!({
            "metadata": {"name": "widgets.example.com", "annotations": {names::INJECT_CA_FROM: service}},
            "spec": {
                "conversion": {"strategy": if converts { "Webhook" } else { "None" }}, "versions": versions,
            },
            "status": {"storedVersions": ["v1"]},
        })
    }

    #[test]
    fn what_old_pods_convert_changes_when_they_are_called_no_more() {
        let desired = crd(true, "n/new", &[("v1", true, "new"), ("v2", true, "new")]);
        for (was_converting, converts, stage, service, expected) in [
            (
                true,
                true,
                Stage::Rollout,
                "n/old",
                [(true, "old"), (false, "new")],
            ),
            (true, true, Stage::Swing, "n/old", [(true, "new"), (false, "new")]),
            (true, true, Stage::Proven, "n/new", [(true, "new"), (true, "new")]),
            (
                true,
                true,
                Stage::Settled,
                "n/new",
                [(true, "new"), (true, "new")],
            ),
            // Nobody converts, before or after.
            (
                false,
                true,
                Stage::Rollout,
                "n/new",
                [(true, "new"), (false, "new")],
            ),
            (
                true,
                false,
                Stage::Rollout,
                "n/old",
                [(true, "new"), (false, "new")],
            ),
            (
                false,
                false,
                Stage::Rollout,
                "n/new",
                [(true, "new"), (true, "new")],
            ),
        ] {
            let live = crd(was_converting, "n/old", &[("v1", true, "old")]);
            let body = body_at(&desired, Some(&live), stage, converts);
            let versions: Vec<_> = object::items(&body, "/spec/versions")
                .iter()
                .map(|version| (version["served"] == true, version["schema"].as_str().unwrap()))
                .collect();
            let case = format!("{was_converting} {converts} {stage:?}");
            assert_eq!(versions, expected, "{case}");
            assert_eq!(
                object::annotation(&body, names::INJECT_CA_FROM),
                Some(service),
                "{case}"
            );
        }
        let fresh = body_at(&desired, None, Stage::Rollout, true);
        assert_eq!(fresh["spec"]["versions"], desired["spec"]["versions"]);
    }
}
