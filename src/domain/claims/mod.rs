//! Claims: one CustomResourceDefinition has one conversion webhook, so at most one BundleDeployment converts it.

use std::cmp::Ordering;

/// A BundleDeployment's statement that it converts a CustomResourceDefinition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The CustomResourceDefinition.
    pub crd: String,
    /// The BundleDeployment.
    pub bundle_deployment: String,
    /// When the BundleDeployment was created, in RFC 3339 with UTC, whose order is the order of time.
    pub created: String,
    /// The uid of the BundleDeployment.
    pub uid: String,
}

/// Whose claim on `crd` holds.
///
/// Who has it keeps it: `owner` is the BundleDeployment that the live object belongs to, and its claim holds for as long
/// as it makes it. Otherwise the oldest BundleDeployment's does; of two that are equally old, the one with the smaller
/// uid.
pub fn holder<'a>(crd: &str, claims: &'a [Claim], owner: Option<&str>) -> Option<&'a Claim> {
    let mut rivals = claims.iter().filter(|claim| claim.crd == crd);
    let owned = owner.and_then(|owner| rivals.clone().find(|claim| claim.bundle_deployment == owner));
    owned.or_else(|| rivals.by_ref().min_by(|one, other| seniority(one, other)))
}

fn seniority(one: &Claim, other: &Claim) -> Ordering {
    (&one.created, &one.uid).cmp(&(&other.created, &other.uid))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn claim(bundle_deployment: &str, created: &str, uid: &str) -> Claim {
        Claim {
            crd: "widgets.example.com".into(),
            bundle_deployment: bundle_deployment.into(),
            created: created.into(),
            uid: uid.into(),
        }
    }

    #[test]
    fn the_oldest_claim_holds_unless_another_has_it() {
        let old = claim("old", "2026-01-01T00:00:00Z", "2");
        let twin = claim("twin", "2026-01-01T00:00:00Z", "1");
        let young = claim("young", "2026-01-02T00:00:00Z", "0");
        for (claims, owner, expected) in [
            (vec![young.clone(), old.clone()], None, Some("old")),
            (vec![young.clone(), old.clone(), twin], None, Some("twin")),
            (vec![young.clone(), old.clone()], Some("young"), Some("young")),
            (vec![young.clone(), old], Some("gone"), Some("old")),
            (vec![], Some("gone"), None),
        ] {
            let found =
                holder("widgets.example.com", &claims, owner).map(|claim| claim.bundle_deployment.as_str());
            assert_eq!(found, expected, "{claims:?} {owner:?}");
        }
        assert_eq!(holder("gadgets.example.com", &[young], None), None);
    }

    proptest! {
        #[test]
        fn exactly_one_claim_holds_whatever_the_order(
            times in prop::collection::vec("2026-0[1-9]-01T00:00:00Z", 1..6),
            turn in 0usize..6,
        ) {
            let claims: Vec<_> = times
                .iter()
                .enumerate()
                .map(|(index, created)| claim(&format!("b{index}"), created, &format!("u{index}")))
                .collect();
            let mut turned = claims.clone();
            turned.rotate_left(turn % claims.len());
            prop_assert_eq!(
                holder("widgets.example.com", &claims, None),
                holder("widgets.example.com", &turned, None)
            );
        }
    }
}
