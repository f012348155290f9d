//! Whether a conversion is still as it was armed.

use std::iter;

use serde_json::Value;
use windlass_bundle::render::Conversion;
use windlass_object::object;

use crate::install::plan::Plan;

/// The plans that may have armed the conversions of an install: of the installed revision, and of those that came after it.
#[derive(Clone, Debug)]
pub struct Arming<'a> {
    /// That of the installed revision is the first.
    pub plans: Vec<&'a Plan>,
    /// The plan of no revision is lost.
    pub is_complete: bool,
}

impl<'a> Arming<'a> {
    /// One plan that alone may have armed anything.
    pub fn of(plan: &'a Plan) -> Self {
        Self {
            plans: vec![plan],
            is_complete: true,
        }
    }

    /// The plan that has armed a CRD as it is.
    pub fn plan_of(&self, crd: &Value) -> Option<&'a Plan> {
        self.plans.iter().copied().find(|plan| arms(plan, crd))
    }

    /// Reports whether another client removed or redirected the conversion of a CRD: no recorded plan arms it
    /// like that. If a plan is unknown, a conversion that calls the namespace of the install may belong to
    /// that plan.
    pub fn is_lost(&self, crd: &Value) -> bool {
        let called = object::text(crd, "/spec/conversion/webhook/clientConfig/service/namespace");
        let may_be_of_another = !self.is_complete
            && self
                .plans
                .iter()
                .any(|plan| Some(plan.namespace.as_str()) == called);
        !may_be_of_another && self.plan_of(crd).is_none()
    }
}

/// Whether `plan` arms a CRD as it is: with its conversion, at one of both Services. An operator that arms its conversions
/// itself may have pointed them anywhere.
fn arms(plan: &Plan, crd: &Value) -> bool {
    let name = object::text(crd, "/metadata/name").unwrap_or_default();
    let stanza = crd.pointer("/spec/conversion").unwrap_or(&Value::Null);
    if plan.is_self_managed() {
        return plan.crd(name).is_some() && Conversion::from_stanza(name, stanza).is_some();
    }
    let Some(conversion) = plan.conversion(name) else {
        return false;
    };
    let greens = plan
        .certificates
        .iter()
        .filter(|certificate| certificate.service == conversion.service)
        .map(|certificate| &certificate.green);
    iter::once(&conversion.service).chain(greens).any(|service| {
        let conversion = Conversion {
            service: service.clone(),
            ..conversion.clone()
        };
        conversion.matches(stanza)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_bundle::render::{ServingDefaults, WebhookCertificate};

    use super::*;
    use crate::install::plan::Phases;

    const CRD: &str = "widgets.example.com";

    fn conversion(service: &str, path: &str) -> Conversion {
        Conversion {
            crd: CRD.to_owned(),
            namespace: "n".to_owned(),
            service: service.to_owned(),
            port: 443,
            path: path.to_owned(),
            review_versions: vec!["v1".to_owned()],
        }
    }

    fn plan(service: &str, path: &str) -> Plan {
        Plan {
            namespace: "n".to_owned(),
            phases: Phases::new([json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": CRD},
            })]),
            conversions: vec![conversion(service, path)],
            self_managed: None,
            certificates: vec![WebhookCertificate {
                service: service.to_owned(),
                green: format!("{service}-green"),
                secret: "s".to_owned(),
                deployment: "d".to_owned(),
            }],
            serving: ServingDefaults::default(),
            examples: vec![],
            notices: vec![],
        }
    }

    fn crd(stanza: Value) -> Value {
        json!({"metadata": {"name": CRD}, "spec": {"conversion": stanza}})
    }

    #[test]
    fn only_what_a_revision_arms_is_left_alone() {
        let (installed, next) = (plan("a", "/convert"), plan("b", "/v2"));
        let elsewhere = Conversion {
            namespace: "m".to_owned(),
            ..conversion("a", "/convert")
        };
        for (stanza, lost_of_installed, lost_of_both, lost_of_unknown) in [
            (
                conversion("a", "/convert").stanza(Some("Y2E=")),
                false,
                false,
                false,
            ),
            (
                conversion("a-green", "/convert").stanza(None),
                false,
                false,
                false,
            ),
            (conversion("b", "/v2").stanza(None), true, false, false),
            (conversion("b-green", "/v2").stanza(None), true, false, false),
            // The other one's path, another path, another Service, another namespace.
            (conversion("a", "/v2").stanza(None), true, true, false),
            (conversion("a", "/").stanza(None), true, true, false),
            (conversion("metrics", "/convert").stanza(None), true, true, false),
            (elsewhere.stanza(None), true, true, true),
            (json!({"strategy": "None"}), true, true, true),
            (Value::Null, true, true, true),
        ] {
            let crd = crd(stanza);
            let both = |is_complete| Arming {
                plans: vec![&installed, &next],
                is_complete,
            };
            assert_eq!(Arming::of(&installed).is_lost(&crd), lost_of_installed, "{crd}");
            assert_eq!(both(true).is_lost(&crd), lost_of_both, "{crd}");
            assert_eq!(both(false).is_lost(&crd), lost_of_unknown, "{crd}");
        }
    }

    #[test]
    fn who_arms_its_conversions_itself_points_them_anywhere() {
        let next = Plan {
            conversions: vec![],
            self_managed: Some([].into()),
            ..plan("a", "/convert")
        };
        let arming = Arming::of(&next);
        assert!(!arming.is_lost(&crd(conversion("metrics", "/").stanza(None))));
        assert!(arming.is_lost(&crd(json!({"strategy": "None"}))));
    }
}
