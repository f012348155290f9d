//! Objects within a phase, in the order of what they depend on.

use std::{borrow::Cow, collections::HashMap};

use interpreter::{Operation, answer::DependentObjectReference};
use windlass_api::{BundleDeployment, ObjectInterpretation};
use windlass_object::{
    ObjectKey,
    text::{shortened, tidied},
};

use super::{halt::Halt, reconciler::BundleReconciler, report::InstallReport};
use crate::install::plan::Plan;

/// The most bytes of why it is not known what an object depends on.
const LONGEST: usize = 512;

// === impl BundleReconciler ===

impl BundleReconciler {
    /// The plan with the objects of each phase after those that they depend on, as customizations say. What Kubernetes' own
    /// kinds depend on is in earlier phases. Where a customization fails, an object stays where it is, and the report says so.
    pub(super) async fn in_order<'a>(
        &self,
        deployment: &BundleDeployment,
        plan: &'a Plan,
        report: &mut InstallReport,
    ) -> Result<Cow<'a, Plan>, Halt> {
        if deployment.spec.interpretation == ObjectInterpretation::Disabled {
            return Ok(Cow::Borrowed(plan));
        }
        let interpretation = &self.context.interpretation;
        let asked = plan
            .phases
            .all()
            .filter(|object| interpretation.is_customized(Operation::InterpretDependency, object));
        let asked: Vec<_> = asked.cloned().collect();
        if asked.is_empty() {
            return Ok(Cow::Borrowed(plan));
        }
        let keys: Vec<_> = asked.iter().map(ObjectKey::of).collect();
        let answers = interpretation.dependencies(asked).await?;
        let mut dependencies: HashMap<ObjectKey, Vec<DependentObjectReference>> = HashMap::new();
        for (key, answer) in keys.into_iter().zip(answers) {
            let Some(key) = key else { continue };
            match answer {
                Ok(references) => {
                    dependencies.insert(key, references);
                }
                Err(why) => {
                    let why = shortened(tidied(&why), LONGEST);
                    report.order_problem = Some(format!("cannot say what {key} depends on: {why}"));
                }
            }
        }
        let phases = plan.phases.in_dependency_order(&dependencies);
        Ok(phases.map_or(Cow::Borrowed(plan), |phases| {
            Cow::Owned(Plan {
                phases,
                ..plan.clone()
            })
        }))
    }
}
