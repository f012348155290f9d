//! Which live fields of bundle objects an apply keeps.

use std::collections::HashSet;

use interpreter::{InterpretError, InterpreterSource, Operation, interpreter::InterpreterFailure};
use serde_json::Value;
use thiserror::Error;
use tokio::time::Instant;
use windlass_api::ObjectInterpretation;
use windlass_cluster::{
    apply::{Retention, RetentionFuture},
    kinds,
};
use windlass_object::{names, object};

use super::{
    object_interpretation::{Interpretation, run_blocking},
    wait_budget::WebhookWait,
};

/// Why the fields to keep are unknown.
#[derive(Debug, Error)]
enum UnknownRetentionError {
    #[error(
        "customizations and webhooks of resource interpreters cannot be listed; check the rights of the operator"
    )]
    Unlisted,
    #[error("{0}")]
    Unusable(String),
}

/// Named in messages in place of the interpreter while customizations or webhooks cannot be listed.
const UNKNOWN_INTERPRETER: &str = "an unknown resource interpreter";

/// Named in messages in place of the interpreter while a customization cannot be used.
const UNUSABLE_CUSTOMIZATION: &str = "a customization that cannot be used";

/// The label with which controllers other than the owner of a Deployment scale it: Karmada's
/// `RetainReplicasLabel`.
const RETAIN_REPLICAS: &str = "resourcetemplate.karmada.io/retain-replicas";

impl Interpretation {
    /// Reports whether a built-in rule keeps fields of `desired` that an apply would remove: other
    /// controllers add to the lists of a ServiceAccount, and a label marks Deployments that another
    /// controller scales.
    fn has_native_retention(&self, desired: &Value) -> bool {
        let has = |field| desired.get(field).is_some();
        let has_kept_fields = match object::text(desired, "/kind") {
            Some("ServiceAccount") => has("imagePullSecrets") || has("secrets"),
            Some("Deployment") => object::label(desired, RETAIN_REPLICAS).is_some(),
            _ => false,
        };
        has_kept_fields && !self.native.interpreters(Operation::Retain, desired).is_empty()
    }

    /// Reports whether any webhook not in `skipped` is called for the retention of `desired`.
    fn calls_any_webhook(&self, desired: &Value, skipped: &HashSet<String>) -> bool {
        let mut asked = self
            .webhooks
            .interpreters_for(Operation::Retain, desired)
            .into_iter();
        asked.any(|webhook| !skipped.contains(webhook.uid()))
    }

    /// Converts a failure of retention. It omits the interpreter and the object where the caller's message
    /// names them.
    fn retention_failure(&self, error: InterpretError, desired: &Value) -> InterpreterFailure {
        match self.first_rule(Operation::Retain, desired) {
            Some(by) if by == error.interpreter => error.source,
            _ => error.into(),
        }
    }

    /// Reports whether the BundleDeployment of an object disables interpretation.
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
        let rules = self.rules();
        if !rules.unlisted().is_empty() {
            return Some(UNKNOWN_INTERPRETER.to_owned());
        }
        if rules.unusable_for(Operation::Retain, desired).is_some() {
            return Some(UNUSABLE_CUSTOMIZATION.to_owned());
        }
        let rule = self.first_rule(Operation::Retain, desired);
        rule.or_else(|| self.has_native_retention(desired).then(|| "Windlass".to_owned()))
    }

    fn retain<'a>(&'a self, desired: &'a Value, observed: &'a Value) -> RetentionFuture<'a> {
        Box::pin(async move {
            if self.is_disabled_for(desired) {
                return Ok(None);
            }
            let rules = self.rules();
            if !rules.unlisted().is_empty() {
                return Err(UnknownRetentionError::Unlisted.into());
            }
            if let Some(unusable) = rules.unusable_for(Operation::Retain, desired) {
                return Err(UnknownRetentionError::Unusable(unusable.message.clone()).into());
            }
            let skipped = self.skipped(desired);
            let is_customized = self.is_customized(Operation::Retain, desired);
            let has_webhook = self.calls_any_webhook(desired, &skipped);
            if !is_customized && !has_webhook && !self.has_native_retention(desired) {
                return Ok(None);
            }
            let deployment = object::label(desired, names::BUNDLE_DEPLOYMENT).unwrap_or_default();
            // Scripts need no time to wait for webhooks.
            let wait = has_webhook.then(|| self.times.wait(deployment));
            let until = wait.as_ref().map_or_else(Instant::now, WebhookWait::until);
            let interpreter = self.interpreter(until, skipped);
            if !is_customized {
                let kept = interpreter.retain(desired, observed).await;
                return kept
                    .map(Some)
                    .map_err(|error| self.retention_failure(error, desired));
            }
            let (asked, observed) = (desired.clone(), observed.clone());
            let kept = run_blocking(async move { interpreter.retain(&asked, &observed).await }).await?;
            kept.map(Some)
                .map_err(|error| self.retention_failure(error, desired))
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

    async fn interpretation_with(retention: Value) -> (Arc<Interpretation>, Arc<Index>) {
        let index = Arc::new(Index::new());
        let watch = Watch::all(kinds::RESOURCE_INTERPRETATION);
        index.apply(&watch, interpretation(retention));
        let interpretation = Arc::new(Interpretation::without_webhooks(index.clone()));
        interpretation.refresh(Vec::new()).await.unwrap();
        (interpretation, index)
    }

    fn proxy() -> Value {
        json!({"fields": [r#".spec.template.spec.containers[?(@.name=="proxy")]"#]})
    }

    #[tokio::test]
    async fn fields_that_a_customization_names_are_kept() {
        let (interpretation, _) = interpretation_with(proxy()).await;
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
        let (interpretation, index) = interpretation_with(proxy()).await;
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
    async fn unknown_retention_is_an_error() {
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
            let (interpretation, _) = interpretation_with(retention).await;
            assert!(interpretation.answered_by(&desired).is_some());
            let error = interpretation.retain(&desired, &desired).await.unwrap_err();
            let error = windlass_cluster::telemetry::chain(&*error);
            assert!(error.contains(words), "{error}");
        }
        let (interpretation, _) = interpretation_with(proxy()).await;
        let unlisted = vec![kinds::RESOURCE_INTERPRETER_CUSTOMIZATION];
        interpretation.refresh(unlisted).await.unwrap();
        assert_eq!(
            interpretation.answered_by(&desired).as_deref(),
            Some(UNKNOWN_INTERPRETER)
        );
        let error = interpretation.retain(&desired, &desired).await.unwrap_err();
        assert!(error.to_string().contains("cannot be listed"), "{error}");
    }

    #[tokio::test]
    async fn built_in_rules_cover_only_fields_that_an_apply_would_remove() {
        let interpretation = Interpretation::without_webhooks(Arc::new(Index::new()));
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
