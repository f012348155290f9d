//! Whether the objects of a bundle, beside its Deployments, do what they are for. Nothing waits for that: what is armed stays
//! armed, and another revision may follow. It decides only what is said of the bundle.

use std::sync::Arc;

use interpreter::Operation;
use serde_json::Value;
use windlass_api::{BundleDeployment, ObjectInterpretation};
use windlass_cluster::{Kind, RequestError, apply::FieldOwner, kinds, telemetry::chain};
use windlass_object::{ObjectKey, object};

use super::{halt::Halt, reconciler::BundleReconciler, report::InstallReport};
use crate::{
    install::{
        plan::{Phase, Plan},
        status::{Ailment, BundleHealth, Milestone},
    },
    interpretation::INTERPRETATION_KINDS,
};

/// What is said while it is not known who says how objects are interpreted.
const UNLISTED: &str = "waiting to list resource interpretations; check why the API server cannot list";

/// What is known of the health of a plan.
pub(super) struct PlanHealth {
    /// Whether its objects are healthy.
    pub(super) health: BundleHealth,
    /// Whether customizations were asked, whose answers may change although no object does.
    pub(super) is_customized: bool,
}

/// What was observed of a plan's objects.
#[derive(Default)]
struct ObservedObjects {
    /// Those that are asked about.
    asked: Vec<(ObjectKey, Arc<Value>)>,
    /// Those of which the answer is known already.
    ailments: Vec<Ailment>,
    is_customized: bool,
}

impl BundleReconciler {
    /// Reads what has changed of customizations and webhooks, and tells what is wrong with them. All of a walk goes by the same ones.
    pub(super) async fn learn_rules(&self) -> Result<(), Halt> {
        let mut unlisted = self.context.watches.unlisted();
        unlisted.retain(|kind| INTERPRETATION_KINDS.contains(kind));
        let unlisted = unlisted.into_iter().collect();
        for news in self.context.interpretation.refresh(unlisted).await? {
            let name = object::text(&news.object, "/metadata/name");
            let reason = news.problem.reason();
            tracing::warn!(
                name,
                reason,
                problem = news.message,
                "Ignoring an interpretation or customization with a problem"
            );
            let events = &self.context.events;
            events.warn(&news.object, "Interpret", reason, &news.message);
        }
        Ok(())
    }

    /// Determines the health of the objects of a plan, once the install has come beyond `Available`, and
    /// notes it for the status.
    pub(super) async fn note_health<T>(
        &self,
        deployment: &BundleDeployment,
        owner: &FieldOwner,
        plan: &Plan,
        walked: &Result<T, Halt>,
        report: &mut InstallReport,
    ) -> Result<(), Halt> {
        let at = match walked {
            Ok(_) => None,
            Err(Halt::Gate(outcome) | Halt::Later(outcome, _)) => outcome.at(),
            Err(Halt::Error(_)) => Some(report.at),
        };
        if at.is_some_and(|at| at <= Milestone::Available) {
            return Ok(());
        }
        let PlanHealth {
            health,
            is_customized,
        } = self.health(deployment, owner, plan, true).await?;
        report.is_customized |= is_customized;
        report.health = match report.order_problem.take() {
            None => health,
            Some(problem) => health.and_unknown(problem),
        };
        Ok(())
    }

    /// Whether the objects of a plan are healthy. Those of one that is not `walked` are as they are: another revision may be about
    /// to change them.
    pub(super) async fn health(
        &self,
        deployment: &BundleDeployment,
        owner: &FieldOwner,
        plan: &Plan,
        walked: bool,
    ) -> Result<PlanHealth, Halt> {
        if deployment.spec.interpretation == ObjectInterpretation::Disabled {
            return Ok(PlanHealth {
                health: BundleHealth::Healthy,
                is_customized: false,
            });
        }
        let ObservedObjects {
            asked,
            mut ailments,
            is_customized,
        } = self.observe_objects(owner, plan, walked).await;
        let name = &owner.bundle_deployment;
        ailments.extend(self.context.interpretation.health_problems(name, asked).await?);
        let mut health = BundleHealth::of(&ailments);
        let unlisted = self.context.interpretation.unlisted();
        if unlisted.is_empty() {
            for why in self.unretained.reasons(name) {
                health = health.and_unknown(why);
            }
        } else {
            // The one reason that nothing is known of any object.
            let unlisted: Vec<_> = unlisted.into_iter().map(|kind| kind.kind).collect();
            health = health.and_unknown(format!("{UNLISTED} {}", unlisted.join(", ")));
        }
        Ok(PlanHealth {
            health,
            is_customized,
        })
    }

    async fn observe_objects(&self, owner: &FieldOwner, plan: &Plan, walked: bool) -> ObservedObjects {
        let interpretation = &self.context.interpretation;
        let has_rules = interpretation.has_rules();
        let mut observed = ObservedObjects::default();
        for desired in plan.phases.all() {
            let Some(key) = ObjectKey::from_object(desired) else {
                continue;
            };
            // Without any rule most are asked about by nobody, whatever they are like.
            if !has_rules && !interpretation.interprets_health(desired) {
                continue;
            }
            if let Some(why) = interpretation.unusable_reason(desired) {
                observed.ailments.push(Ailment::unknown(key, &why));
                continue;
            }
            let seen = self.context.index.find(&key);
            let asks = |object: &Value| interpretation.interprets_health(object);
            if !asks(desired) && !seen.as_deref().is_some_and(asks) {
                continue;
            }
            let customized =
                |object: &Value| interpretation.is_customized(Operation::InterpretHealth, object);
            let ruled = |object: &Value| interpretation.has_rule(Operation::InterpretHealth, object);
            let has_rule = ruled(desired) || seen.as_deref().is_some_and(ruled);
            observed.is_customized |= customized(desired) || seen.as_deref().is_some_and(customized);
            let is_current = |seen: &Value| !walked || self.is_current(owner, desired, seen);
            let is_enough = |seen: &Arc<Value>| {
                let is_whole = self.context.index.find_whole(&key).is_some();
                // Of a definition the index lacks the schemas only, of which nothing is known natively.
                let is_definition = Kind::from_key(&key) == kinds::CUSTOM_RESOURCE_DEFINITION && !has_rule;
                (is_whole || is_definition) && is_current(seen)
            };
            match self.read_unless(seen, is_enough, &key).await {
                Ok(Some(live)) => observed.asked.push((key, live)),
                Ok(None) if walked => observed.ailments.push(Ailment::absent(key)),
                Ok(None) => {}
                Err(error) => observed.ailments.push(Ailment::unknown(key, &chain(&error))),
            }
        }
        observed
    }

    /// Whether a watch shows an object as it was applied last, which others than the install do not change.
    fn is_current(&self, owner: &FieldOwner, desired: &Value, seen: &Value) -> bool {
        let kind = object::text(desired, "/kind").unwrap_or_default();
        let is_plain = [Phase::Identity, Phase::Configuration].contains(&Phase::for_kind(kind));
        !is_plain || self.context.applier.was_applied(desired, seen, owner)
    }

    /// What a watch has `seen` of an object if that `is_enough`, else what the API server has.
    async fn read_unless(
        &self,
        seen: Option<Arc<Value>>,
        is_enough: impl Fn(&Arc<Value>) -> bool,
        key: &ObjectKey,
    ) -> Result<Option<Arc<Value>>, RequestError> {
        if let Some(seen) = seen.filter(is_enough) {
            return Ok(Some(seen));
        }
        match self.context.cluster.read(key).await {
            // What is not served is not there.
            Err(RequestError::UnknownKind { .. }) => Ok(None),
            read => Ok(read?.map(Arc::new)),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;
    use windlass_cluster::{apply::apply_body, watch::Watch, worker::Action};
    use windlass_object::names;

    use super::*;
    use crate::{
        bundle_deployment::{
            halt::Halt,
            tests::{Server, deployment, plan},
        },
        install::status::InstallOutcome,
    };

    const SCALERS: Kind = Kind::new("autoscaling.k8s.io/v1", "VerticalPodAutoscaler");

    pub(in crate::bundle_deployment) fn scaler() -> Value {
        json!({
            "apiVersion": SCALERS.api_version, "kind": SCALERS.kind,
            "metadata": {"namespace": "a", "name": "sizes"}, "spec": {"targetRef": {"name": "a"}},
        })
    }

    fn interpretation(version: &str, condition: &str) -> Value {
        json!({
            "apiVersion": "interpretation.windlass.dev/v1alpha1", "kind": "ResourceInterpretation",
            "metadata": {"name": "scalers", "resourceVersion": version},
            "spec": {
                "targets": [{"apiVersion": SCALERS.api_version, "kind": SCALERS.kind}],
                "customizations": {"healthInterpretation": {"condition": {"type": condition}}},
            },
        })
    }

    pub(in crate::bundle_deployment) struct HealthBed {
        server: Arc<Server>,
        pub(in crate::bundle_deployment) reconciler: Arc<BundleReconciler>,
        pub(in crate::bundle_deployment) deployment: BundleDeployment,
        owner: FieldOwner,
    }

    impl HealthBed {
        pub(in crate::bundle_deployment) async fn new() -> Self {
            let object = deployment(json!({"namespace": "a", "source": {}}));
            let server = Server::new(object.clone());
            let reconciler = server.reconciler().await;
            let deployment = serde_json::from_value(object).unwrap();
            let owner = reconciler.owner(&deployment);
            Self {
                server,
                reconciler,
                deployment,
                owner,
            }
        }

        pub(in crate::bundle_deployment) fn customize(&self, customization: Value) {
            let watch = Watch::all(kinds::RESOURCE_INTERPRETATION);
            self.server.index.apply(&watch, customization);
        }

        /// Shows an object as it was applied, with this status.
        fn show(&self, desired: &Value, status: Value) {
            let mut live = apply_body(desired, &self.owner);
            live["metadata"]["uid"] = "2".into();
            let entry = json!({"manager": names::INSTALL, "operation": "Apply"});
            live["metadata"]["managedFields"] = json!([entry]);
            live["status"] = status;
            self.server.index.apply(
                &Watch::all(Kind::from_key(&ObjectKey::from_object(desired).unwrap())),
                live,
            );
        }

        async fn health_of(&self, plan: &Plan) -> BundleHealth {
            self.reconciler.learn_rules().await.ok().unwrap();
            let health = self
                .reconciler
                .health(&self.deployment, &self.owner, plan, true)
                .await;
            health.ok().unwrap().health
        }
    }

    fn ready(status: &str) -> Value {
        json!({"conditions": [{"type": "Ready", "status": status, "message": "3 of 8 samples"}]})
    }

    #[tokio::test]
    async fn a_custom_resource_counts_from_when_somebody_knows_its_kind() {
        let bed = HealthBed::new().await;
        let plan = plan([scaler()]);
        assert_eq!(
            bed.health_of(&plan).await,
            BundleHealth::Healthy,
            "no rule covers it"
        );
        bed.show(&scaler(), ready("False"));
        assert_eq!(bed.health_of(&plan).await, BundleHealth::Healthy);
        bed.customize(interpretation("1", "Ready"));
        let health = bed.health_of(&plan).await;
        let expected = "waiting for VerticalPodAutoscaler a/sizes: condition Ready is False: 3 of 8 samples (ResourceInterpretation scalers)";
        let message = expected.to_owned();
        assert_eq!(health, BundleHealth::Unhealthy { message });
        bed.show(&scaler(), ready("True"));
        assert_eq!(bed.health_of(&plan).await, BundleHealth::Healthy);
        bed.customize(interpretation("2", "Provided"));
        assert!(matches!(
            bed.health_of(&plan).await,
            BundleHealth::Unhealthy { .. }
        ));
    }

    #[tokio::test]
    async fn nobody_is_asked_where_interpretation_is_disabled() {
        let mut bed = HealthBed::new().await;
        bed.customize(interpretation("1", "Ready"));
        bed.show(&scaler(), ready("False"));
        bed.deployment.spec.interpretation = ObjectInterpretation::Disabled;
        assert_eq!(bed.health_of(&plan([scaler()])).await, BundleHealth::Healthy);
    }

    #[tokio::test]
    async fn a_customization_that_cannot_be_used_is_named() {
        let bed = HealthBed::new().await;
        let mut broken = interpretation("1", "Ready");
        broken["spec"]["mode"] = "Sometimes".into();
        bed.customize(broken);
        bed.show(&scaler(), ready("True"));
        let BundleHealth::Unknown { message } = bed.health_of(&plan([scaler()])).await else {
            panic!("it is known");
        };
        assert!(
            message.contains("VerticalPodAutoscaler a/sizes: ResourceInterpretation scalers cannot be used"),
            "{message}"
        );
    }

    #[tokio::test]
    async fn what_cannot_be_listed_is_not_taken_for_none() {
        let bed = HealthBed::new().await;
        bed.reconciler
            .context
            .watches
            .start(Watch::all(kinds::RESOURCE_INTERPRETATION));
        let BundleHealth::Unknown { message } = bed.health_of(&plan([])).await else {
            panic!("it is known");
        };
        assert!(message.ends_with("ResourceInterpretation"), "{message}");
    }

    #[tokio::test]
    async fn what_a_watch_does_not_show_as_applied_is_read() {
        let bed = HealthBed::new().await;
        bed.customize(interpretation("1", "Ready"));
        bed.show(&scaler(), ready("True"));
        let mut changed = scaler();
        changed["spec"]["targetRef"]["name"] = "b".into();
        let path = "/apis/autoscaling.k8s.io/v1/namespaces/a/verticalpodautoscalers/sizes";
        let served = json!({"name": "verticalpodautoscalers", "kind": SCALERS.kind, "namespaced": true});
        let mut live = changed.clone();
        live["status"] = ready("False");
        bed.server.readable.lock().extend([
            (
                "/apis/autoscaling.k8s.io/v1".to_owned(),
                json!({ "resources": [served] }),
            ),
            (path.to_owned(), live),
        ]);
        let health = bed.health_of(&plan([changed])).await;
        assert!(matches!(health, BundleHealth::Unhealthy { .. }), "{health:?}");
        assert_eq!(bed.health_of(&plan([scaler()])).await, BundleHealth::Healthy);
    }

    #[tokio::test]
    async fn an_object_of_which_nobody_knows_what_to_keep_stays_as_it_is() {
        let bed = HealthBed::new().await;
        let mut broken = interpretation("1", "Ready");
        broken["spec"]["customizations"] = json!({"retention": {"luaScript": "no script"}});
        bed.customize(broken);
        bed.show(&scaler(), json!({}));
        assert!(bed.reconciler.learn_rules().await.is_ok());
        assert!(bed.reconciler.ensure(&scaler(), &bed.owner).await.is_ok());
        let BundleHealth::Unknown { message } = bed.health_of(&plan([scaler()])).await else {
            panic!("it is known");
        };
        assert!(message.contains("failed to retain values"), "{message}");
        let mut changed = scaler();
        changed["spec"]["targetRef"]["name"] = "b".into();
        let refused = bed.reconciler.ensure(&changed, &bed.owner).await;
        let Err(Halt::Gate(InstallOutcome::Failed { reason, message, .. })) = refused else {
            panic!("it was written");
        };
        assert_eq!(reason, "RetentionFailed");
        assert!(message.contains("ResourceInterpretation scalers"), "{message}");
        bed.reconciler.unretained.forget("a");
        assert_eq!(bed.health_of(&plan([])).await, BundleHealth::Healthy);
    }

    #[tokio::test]
    async fn health_is_looked_at_when_deployments_are_available_and_looked_at_again() {
        let bed = HealthBed::new().await;
        bed.customize(interpretation("1", "Ready"));
        assert!(bed.reconciler.learn_rules().await.is_ok());
        bed.show(&scaler(), ready("False"));
        let plan = plan([scaler()]);
        let gate = |at| Err(Halt::Gate(InstallOutcome::waiting(at, "Waiting", "")));
        let done = || Ok(Action::AwaitChange);
        for (walked, is_looked_at) in [
            (gate(Milestone::Installed), false),
            (gate(Milestone::Available), false),
            (gate(Milestone::Armed), true),
            (gate(Milestone::Migrated), true),
            (done(), true),
        ] {
            let mut report = InstallReport::new(&bed.deployment);
            let noted = bed
                .reconciler
                .note_health(&bed.deployment, &bed.owner, &plan, &walked, &mut report)
                .await;
            assert!(noted.is_ok());
            assert_eq!(report.health != BundleHealth::Healthy, is_looked_at);
            assert_eq!(report.is_customized, is_looked_at);
        }
    }
}
