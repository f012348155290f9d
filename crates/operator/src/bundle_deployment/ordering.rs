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

impl BundleReconciler {
    /// Returns the plan with the objects of each phase in the order of their dependencies, which
    /// customizations and webhooks report. Kubernetes' own kinds depend only on earlier phases. If a
    /// dependency cannot be determined, the object keeps its place, and the report has the reason.
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
            .filter(|object| interpretation.has_rule(Operation::InterpretDependency, object));
        let asked: Vec<_> = asked.cloned().collect();
        if asked.is_empty() {
            return Ok(Cow::Borrowed(plan));
        }
        let keys: Vec<_> = asked.iter().map(ObjectKey::from_object).collect();
        let name = deployment.metadata.name.as_deref().unwrap_or_default();
        let answers = interpretation.dependencies(name, asked).await?;
        let mut dependencies: HashMap<ObjectKey, Vec<DependentObjectReference>> = HashMap::new();
        for (key, answer) in keys.into_iter().zip(answers) {
            let Some(key) = key else { continue };
            match answer {
                Ok(references) => {
                    dependencies.insert(key, references);
                }
                Err(why) => {
                    let why = shortened(tidied(&why), LONGEST);
                    report.order_problem = Some(format!("cannot determine the dependencies of {key}: {why}"));
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use windlass_object::object;

    use super::*;
    use crate::bundle_deployment::{
        health::tests::{HealthBed, scaler},
        tests::plan,
    };

    fn needs_settings(version: &str, script: &str) -> Value {
        let script = format!("function GetDependencies(desiredObj)\n  {script}\nend");
        json!({
            "apiVersion": "interpretation.windlass.dev/v1alpha1", "kind": "ResourceInterpretation",
            "metadata": {"name": "scalers", "resourceVersion": version},
            "spec": {
                "targets": [{"apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler"}],
                "customizations": {"dependencyInterpretation": {"luaScript": script}},
            },
        })
    }

    /// The kinds in the order in which they are applied, and why that is not known.
    async fn order(bed: &HealthBed) -> (Vec<String>, Option<String>) {
        let settings = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "a", "name": "settings"}});
        let plan = plan([scaler(), settings]);
        let mut report = InstallReport::new(&bed.deployment);
        assert!(bed.reconciler.learn_rules().await.is_ok());
        let ordered = bed.reconciler.in_order(&bed.deployment, &plan, &mut report).await;
        let ordered = ordered.ok().unwrap();
        let kinds = ordered
            .phases
            .all()
            .filter_map(|object| object::text(object, "/kind"));
        (kinds.map(str::to_owned).collect(), report.order_problem)
    }

    #[tokio::test]
    async fn objects_come_after_what_a_customization_says_that_they_need() {
        let mut bed = HealthBed::new().await;
        let (by_file, by_need) = (
            ["VerticalPodAutoscaler", "ConfigMap"],
            ["ConfigMap", "VerticalPodAutoscaler"],
        );
        assert_eq!(order(&bed).await.0, by_file);
        let needs = "return {{apiVersion = 'v1', kind = 'ConfigMap', namespace = desiredObj.metadata.namespace, name = 'settings'}}";
        bed.customize(needs_settings("1", needs));
        assert_eq!(order(&bed).await.0, by_need);
        bed.customize(needs_settings("2", "error('not today')"));
        let (kinds, problem) = order(&bed).await;
        assert_eq!(kinds, by_file);
        let problem = problem.unwrap();
        assert!(
            problem.contains("ResourceInterpretation scalers") && problem.contains("not today"),
            "{problem}"
        );
        bed.customize(needs_settings("3", needs));
        bed.deployment.spec.interpretation = ObjectInterpretation::Disabled;
        assert_eq!(order(&bed).await.0, by_file);
    }
}
