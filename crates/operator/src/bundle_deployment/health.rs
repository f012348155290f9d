//! Whether the objects of a bundle, beside its Deployments, do what they are for. Nothing waits for that: what is armed stays
//! armed, and another revision may follow. It decides only what is said of the bundle.

use std::sync::Arc;

use interpreter::Operation;
use serde_json::Value;
use windlass_api::{BundleDeployment, ObjectInterpretation};
use windlass_cluster::{Kind, RequestError, apply::Applicant, kinds, telemetry::chain};
use windlass_object::{ObjectKey, object};

use super::{halt::Halt, reconciler::BundleReconciler, report::InstallReport};
use crate::{
    install::{
        plan::{Phase, Plan},
        status::{Ailment, BundleHealth, Milestone},
    },
    interpretation::CUSTOMIZATION_KINDS,
};

/// What is said while customizations are not known.
const UNLISTED: &str = "waiting until customizations of how objects are interpreted can be listed; see what keeps the API server from listing";

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

// === impl BundleReconciler ===

impl BundleReconciler {
    /// Reads what has changed of customizations, and tells what is wrong with them.
    pub(super) async fn learn_customizations(&self) -> Result<(), Halt> {
        for news in self.context.interpretation.learn().await? {
            let name = object::text(&news.object, "/metadata/name");
            tracing::warn!(name, problem = news.message, "A customization cannot be used");
            let events = &self.context.events;
            events.warn(&news.object, "Interpret", "CustomizationUnusable", &news.message);
        }
        Ok(())
    }

    /// Notes whether the objects of a plan are healthy that was `walked`, where that decides what is said of it.
    pub(super) async fn note_health<T>(
        &self,
        deployment: &BundleDeployment,
        owner: &Applicant,
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
        owner: &Applicant,
        plan: &Plan,
        walked: bool,
    ) -> Result<PlanHealth, Halt> {
        if deployment.spec.interpretation == ObjectInterpretation::Disabled {
            return Ok(PlanHealth {
                health: BundleHealth::Healthy,
                is_customized: false,
            });
        }
        self.learn_customizations().await?;
        let ObservedObjects {
            asked,
            mut ailments,
            is_customized,
        } = self.observe_objects(owner, plan, walked).await;
        ailments.extend(self.context.interpretation.ailments(asked).await?);
        let mut health = BundleHealth::of(&ailments);
        let unlisted = self.context.watches.unlisted();
        let unlisted: Vec<_> = CUSTOMIZATION_KINDS
            .into_iter()
            .filter(|kind| unlisted.contains(kind))
            .map(|kind| kind.kind)
            .collect();
        if !unlisted.is_empty() {
            health = health.and_unknown(format!("{UNLISTED} {}", unlisted.join(", ")));
        }
        Ok(PlanHealth {
            health,
            is_customized,
        })
    }

    async fn observe_objects(&self, owner: &Applicant, plan: &Plan, walked: bool) -> ObservedObjects {
        let interpretation = &self.context.interpretation;
        let has_customizations = interpretation.has_customizations().await;
        let mut observed = ObservedObjects::default();
        for desired in plan.phases.all() {
            let Some(key) = ObjectKey::of(desired) else {
                continue;
            };
            // Without any customization most are asked about by nobody, whatever they are like.
            if !has_customizations && !interpretation.judges(desired) {
                continue;
            }
            if let Some(why) = interpretation.why_unknown(desired).await {
                observed.ailments.push(Ailment::unknown(key, &why));
                continue;
            }
            let seen = self.context.index.find(&key);
            let asks = |object: &Value| interpretation.judges(object);
            if !asks(desired) && !seen.as_deref().is_some_and(asks) {
                continue;
            }
            let customized =
                |object: &Value| interpretation.is_customized(Operation::InterpretHealth, object);
            let is_customized = customized(desired) || seen.as_deref().is_some_and(customized);
            observed.is_customized |= is_customized;
            let is_current = |seen: &Value| !walked || self.is_current(owner, desired, seen);
            let is_enough = |seen: &Arc<Value>| {
                let is_whole = self.context.index.find_whole(&key).is_some();
                // Of a definition the index lacks the schemas only, of which nothing is known natively.
                let is_definition = Kind::of(&key) == kinds::CUSTOM_RESOURCE_DEFINITION && !is_customized;
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
    fn is_current(&self, owner: &Applicant, desired: &Value, seen: &Value) -> bool {
        let kind = object::text(desired, "/kind").unwrap_or_default();
        let is_plain = [Phase::Identity, Phase::Configuration].contains(&Phase::of(kind));
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
