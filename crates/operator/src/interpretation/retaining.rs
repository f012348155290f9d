//! What an apply keeps of what others have set in objects of bundles.

use std::collections::HashSet;

use interpreter::{InterpretError, InterpreterSource, Operation, interpreter::InterpreterFailure};
use serde_json::Value;
use thiserror::Error;
use tokio::time::Instant;
use windlass_api::ObjectInterpretation;
use windlass_cluster::{
    apply::{Retaining, Retention},
    kinds,
};
use windlass_object::{names, object};

use super::{
    look_times::LookWait,
    object_interpretation::{Interpretation, beside},
};

/// Why it is not known what must be kept.
#[derive(Debug, Error)]
enum UnknownRetentionError {
    #[error("who says how objects are interpreted cannot be listed")]
    Unlisted,
    #[error("{0}")]
    Unusable(String),
}

/// Who is asked while it is not known who there is.
const ANYBODY: &str = "whoever is asked, which is not known,";

/// Who is asked while one that may answer cannot be used.
const UNUSABLE: &str = "a customization that cannot be used";

/// A label by which others than the owner of a Deployment scale it. Karmada's `RetainReplicasLabel`.
const RETAIN_REPLICAS: &str = "resourcetemplate.karmada.io/retain-replicas";

// === impl Interpretation ===

impl Interpretation {
    /// Whether `desired` is of one of Kubernetes' own kinds of which something is kept that an apply would take away: others than
    /// the owner of a ServiceAccount add to its lists, and who scales a Deployment may be told by a label.
    fn keeps_natively(&self, desired: &Value) -> bool {
        let has = |field| desired.get(field).is_some();
        let is_at_stake = match object::text(desired, "/kind") {
            Some("ServiceAccount") => has("imagePullSecrets") || has("secrets"),
            Some("Deployment") => object::label(desired, RETAIN_REPLICAS).is_some(),
            _ => false,
        };
        is_at_stake && !self.native.interpreters(Operation::Retain, desired).is_empty()
    }

    /// Whether any webhook is asked what to keep of `desired`, of those that are not `spared`.
    fn asks_any(&self, desired: &Value, spared: &HashSet<String>) -> bool {
        let mut asked = self.webhooks.asked(Operation::Retain, desired).into_iter();
        asked.any(|webhook| !spared.contains(webhook.uid()))
    }

    /// Why it is not known what to keep of `desired`: who failed is said already where it is who answers, as is the object.
    fn why(&self, error: InterpretError, desired: &Value) -> InterpreterFailure {
        match self.first_rule(Operation::Retain, desired) {
            Some(by) if by == error.interpreter => error.source,
            _ => error.into(),
        }
    }

    /// Whether the BundleDeployment of an object wants none of this.
    fn is_disabled_for(&self, desired: &Value) -> bool {
        let Some(name) = object::label(desired, names::BUNDLE_DEPLOYMENT) else {
            return false;
        };
        let deployment = self.index.find(&kinds::BUNDLE_DEPLOYMENT.object(None, name));
        let spec = deployment
            .as_deref()
            .and_then(|deployment| deployment.get("spec"));
        let wanted = spec.and_then(|spec| spec.get("interpretation")).cloned();
        let wanted = wanted.and_then(|wanted| serde_json::from_value(wanted).ok());
        wanted == Some(ObjectInterpretation::Disabled)
    }
}

impl Retention for Interpretation {
    fn answered_by(&self, desired: &Value) -> Option<String> {
        let learned = self.learned();
        if !learned.unlisted().is_empty() {
            return Some(ANYBODY.to_owned());
        }
        if learned.unusable_for(Operation::Retain, desired).is_some() {
            return Some(UNUSABLE.to_owned());
        }
        let rule = self.first_rule(Operation::Retain, desired);
        rule.or_else(|| self.keeps_natively(desired).then(|| "Windlass".to_owned()))
    }

    fn retain<'a>(&'a self, desired: &'a Value, observed: &'a Value) -> Retaining<'a> {
        Box::pin(async move {
            if self.is_disabled_for(desired) {
                return Ok(None);
            }
            let learned = self.learned();
            if !learned.unlisted().is_empty() {
                return Err(UnknownRetentionError::Unlisted.into());
            }
            if let Some(unusable) = learned.unusable_for(Operation::Retain, desired) {
                return Err(UnknownRetentionError::Unusable(unusable.message.clone()).into());
            }
            let spared = self.spared(desired);
            let is_customized = self.is_customized(Operation::Retain, desired);
            let asks_webhook = self.asks_any(desired, &spared);
            if !is_customized && !asks_webhook && !self.keeps_natively(desired) {
                return Ok(None);
            }
            let deployment = object::label(desired, names::BUNDLE_DEPLOYMENT).unwrap_or_default();
            // Who asks scripts only waits for nobody.
            let wait = asks_webhook.then(|| self.times.wait(deployment));
            let until = wait.as_ref().map_or_else(Instant::now, LookWait::until);
            let interpreter = self.interpreter(until, spared);
            if !is_customized {
                let kept = interpreter.retain(desired, observed).await;
                return kept.map(Some).map_err(|error| self.why(error, desired));
            }
            let (asked, observed) = (desired.clone(), observed.clone());
            let kept = beside(async move { interpreter.retain(&asked, &observed).await }).await?;
            kept.map(Some).map_err(|error| self.why(error, desired))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use windlass_cluster::{Index, watch::Watch};

    use super::*;

    fn interpretation(retention: Value) -> Value {
        json!({
            "apiVersion": "interpretation.windlass.dev/v1alpha1", "kind": "ResourceInterpretation",
            "metadata": {"name": "sidecars", "resourceVersion": retention.to_string()},
            "spec": {
                "targets": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
                "customizations": {"retention": retention},
            },
        })
    }

    fn deployment(containers: &[&str]) -> Value {
        let containers: Vec<_> = containers.iter().map(|name| json!({ "name": name })).collect();
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"namespace": "n", "name": "d", "labels": {names::BUNDLE_DEPLOYMENT: "a"}},
            "spec": {"replicas": 1, "template": {"spec": {"containers": containers}}},
        })
    }

    async fn of(retention: Value) -> (Arc<Interpretation>, Arc<Index>) {
        let index = Arc::new(Index::new());
        let watch = Watch::all(kinds::RESOURCE_INTERPRETATION);
        index.apply(&watch, interpretation(retention));
        let interpretation = Arc::new(Interpretation::reading(index.clone()));
        interpretation.learn(Vec::new()).await.unwrap();
        (interpretation, index)
    }

    fn proxy() -> Value {
        json!({"fields": [r#".spec.template.spec.containers[?(@.name=="proxy")]"#]})
    }

    #[tokio::test]
    async fn what_a_customization_names_is_kept() {
        let (interpretation, _) = of(proxy()).await;
        let (desired, observed) = (deployment(&["manager"]), deployment(&["manager", "proxy"]));
        let by = interpretation.answered_by(&desired);
        assert_eq!(by.as_deref(), Some("ResourceInterpretation sidecars"));
        let kept = interpretation.retain(&desired, &observed).await.unwrap().unwrap();
        assert_eq!(kept["spec"], observed["spec"]);
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}});
        assert_eq!(interpretation.answered_by(&service), None);
    }

    #[tokio::test]
    async fn nothing_is_kept_for_a_bundle_deployment_that_disables_it() {
        let (interpretation, index) = of(proxy()).await;
        let (desired, observed) = (deployment(&["manager"]), deployment(&["manager", "proxy"]));
        for (wanted, is_kept) in [("Disabled", false), ("Enabled", true)] {
            let owner = json!({
                "apiVersion": names::API_VERSION, "kind": "BundleDeployment", "metadata": {"name": "a"},
                "spec": {"interpretation": wanted},
            });
            index.apply(&Watch::all(kinds::BUNDLE_DEPLOYMENT), owner);
            let kept = interpretation.retain(&desired, &observed).await.unwrap();
            assert_eq!(kept.is_some(), is_kept, "{wanted}");
        }
    }

    #[tokio::test]
    async fn what_is_not_known_is_an_error_that_says_so() {
        let desired = deployment(&["manager"]);
        let script = |body: &str| {
            let script = format!("function Retain(desiredObj, observedObj)\n  {body}\nend");
            json!({ "luaScript": script })
        };
        for (retention, words) in [
            (script("error('not today')"), "not today"),
            (
                script("return +"),
                "ResourceInterpretation sidecars cannot be used",
            ),
            (
                json!({"fields": ["no path"]}),
                "ResourceInterpretation sidecars cannot be used",
            ),
        ] {
            let (interpretation, _) = of(retention).await;
            assert!(interpretation.answered_by(&desired).is_some());
            let error = interpretation.retain(&desired, &desired).await.unwrap_err();
            let error = windlass_cluster::telemetry::chain(&*error);
            assert!(error.contains(words), "{error}");
        }
        let (interpretation, _) = of(proxy()).await;
        let unlisted = vec![kinds::RESOURCE_INTERPRETER_CUSTOMIZATION];
        interpretation.learn(unlisted).await.unwrap();
        assert_eq!(interpretation.answered_by(&desired).as_deref(), Some(ANYBODY));
        let error = interpretation.retain(&desired, &desired).await.unwrap_err();
        assert!(error.to_string().ends_with("cannot be listed"), "{error}");
    }

    #[tokio::test]
    async fn natively_only_what_an_apply_would_take_away_is_asked_about() {
        let interpretation = Interpretation::reading(Arc::new(Index::new()));
        let account = |field: &str| {
            let mut account =
                json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}});
            account[field] = json!([{"name": "pull"}]);
            account
        };
        let mut scaled = deployment(&["manager"]);
        scaled["metadata"]["labels"][RETAIN_REPLICAS] = "true".into();
        for (desired, expected) in [
            (account("imagePullSecrets"), true),
            (account("automountServiceAccountToken"), false),
            (scaled, true),
            (deployment(&["manager"]), false),
        ] {
            assert_eq!(
                interpretation.answered_by(&desired).is_some(),
                expected,
                "{desired}"
            );
        }
        let mut observed = account("imagePullSecrets");
        observed["imagePullSecrets"] = json!([{"name": "pull"}, {"name": "injected"}]);
        let kept = interpretation
            .retain(&account("imagePullSecrets"), &observed)
            .await;
        assert_eq!(
            kept.unwrap().unwrap()["imagePullSecrets"],
            observed["imagePullSecrets"]
        );
    }
}
