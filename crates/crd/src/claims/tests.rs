//! Claims under any order of events.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const CRDS: [&str; 3] = [
    "widgets.example.com",
    "gadgets.example.com",
    "widgetes.example.com",
];

/// Simulates all BundleDeployments of a cluster, which are reconciled in any order.
#[derive(Clone, Debug)]
struct World {
    claimants: Vec<Claimant>,
    /// The APIs that each bundle converts, which its first reconciliation reports.
    desired: BTreeMap<String, Vec<Api>>,
    /// The existing CRDs and their owners.
    crds: BTreeMap<String, String>,
}

fn api(crd: &str) -> Api {
    // The first and the last have the same kind.
    let kind = if crd.starts_with("widget") {
        "Widget"
    } else {
        "Gadget"
    };
    Api {
        crd: crd.to_owned(),
        kind: kind.to_owned(),
    }
}

fn claimant(name: &str, created: &str, uid: &str, crds: &[&str]) -> Claimant {
    Claimant {
        name: name.to_owned(),
        created: created.to_owned(),
        uid: uid.to_owned(),
        is_observed: true,
        claims: crds.iter().map(|crd| api(crd)).collect(),
    }
}

impl World {
    fn owner(&self, api: &Api) -> Option<&str> {
        self.crds.get(&api.crd).map(String::as_str)
    }

    /// Reconciles: reports the claims, and installs if every claim holds.
    fn reconcile(&mut self, name: &str) {
        let Some(own) = self.claimants.iter_mut().find(|claimant| claimant.name == name) else {
            return;
        };
        let desired = self.desired[name].clone();
        own.claims.clone_from(&desired);
        let uid = own.uid.clone();
        let waits = older_unobserved_claimant(&uid, &self.claimants).is_some();
        let holds = |api: &Api| {
            let holder = holder(api, &self.claimants, self.owner(api));
            let taken = self
                .crds
                .iter()
                .any(|(crd, owner)| owner != name && api.clashes_with(&self::api(crd)));
            holder.is_some_and(|holder| holder.name == name) && !taken
        };
        let accepted = desired.iter().all(holds);
        if !waits && accepted {
            let made = desired.iter().map(|api| (api.crd.clone(), name.to_owned()));
            self.crds.extend(made);
        }
        for claimant in &mut self.claimants {
            claimant.is_observed |= claimant.name == name;
        }
    }

    fn remove(&mut self, name: &str) {
        self.claimants.retain(|claimant| claimant.name != name);
        self.crds.retain(|_, owner| owner != name);
    }

    /// Reconciles until nothing changes.
    fn settle(&mut self) {
        for _ in 0..=self.claimants.len() {
            for name in self.desired.keys().cloned().collect::<Vec<_>>() {
                self.reconcile(&name);
            }
        }
    }
}

fn worlds() -> impl Strategy<Value = World> {
    let crds = prop::sample::subsequence(CRDS.to_vec(), 0..=2);
    prop::collection::vec((1u8..4, crds), 1..6).prop_map(|deployments| {
        let mut world = World {
            claimants: Vec::new(),
            desired: BTreeMap::new(),
            crds: BTreeMap::new(),
        };
        for (index, (day, crds)) in deployments.into_iter().enumerate() {
            let name = format!("b{index}");
            // The check of a bundle rejects two CRDs of one kind in it.
            let clash = crds.contains(&CRDS[0]) && crds.contains(&CRDS[2]);
            let crds = if clash { &crds[..1] } else { &crds[..] };
            world
                .desired
                .insert(name.clone(), crds.iter().map(|crd| api(crd)).collect());
            world.claimants.push(Claimant {
                is_observed: false,
                claims: Vec::new(),
                ..claimant(
                    &name,
                    &format!("2026-01-0{day}T00:00:00Z"),
                    &format!("u{}", 9 - index),
                    &[],
                )
            });
        }
        world
    })
}

/// Returns the expected owners: those that are oldest for everything they claim.
fn expected(world: &World) -> BTreeMap<String, String> {
    let age = |name: &str| {
        let claimant = world.claimants.iter().find(|claimant| claimant.name == name);
        claimant.map(|claimant| (claimant.created.clone(), claimant.uid.clone()))
    };
    let mut crds = BTreeMap::new();
    for claimant in &world.claimants {
        let desired = &world.desired[&claimant.name];
        let is_first = desired.iter().all(|api| {
            world
                .claimants
                .iter()
                .filter(|rival| {
                    world.desired[&rival.name]
                        .iter()
                        .any(|other| other.clashes_with(api))
                })
                .all(|rival| age(&claimant.name) <= age(&rival.name))
        });
        if is_first {
            crds.extend(desired.iter().map(|api| (api.crd.clone(), claimant.name.clone())));
        }
    }
    crds
}

#[test]
fn the_oldest_claim_wins_unless_another_owns_the_crd() {
    let widgets = [CRDS[0]];
    let old = claimant("old", "2026-01-01T00:00:00Z", "2", &widgets);
    let twin = claimant("twin", "2026-01-01T00:00:00Z", "1", &widgets);
    let young = claimant("young", "2026-01-02T00:00:00Z", "0", &widgets);
    for (claimants, owner, expected) in [
        (vec![young.clone(), old.clone()], None, Some("old")),
        (vec![young.clone(), old.clone(), twin], None, Some("twin")),
        (vec![young.clone(), old.clone()], Some("young"), Some("young")),
        (vec![young.clone(), old], Some("gone"), Some("old")),
        (vec![], Some("gone"), None),
    ] {
        let found = holder(&api(CRDS[0]), &claimants, owner).map(|claimant| claimant.name.as_str());
        assert_eq!(found, expected, "{claimants:?} {owner:?}");
    }
    assert_eq!(holder(&api(CRDS[1]), &[young], None), None);
}

#[test]
fn a_claim_on_a_kind_holds_against_another_name_of_it() {
    let claimants = [
        claimant("young", "2026-01-02T00:00:00Z", "0", &[CRDS[0]]),
        claimant("old", "2026-01-01T00:00:00Z", "1", &[CRDS[2]]),
    ];
    for crd in [CRDS[0], CRDS[2]] {
        let found = holder(&api(crd), &claimants, None).unwrap();
        assert_eq!(found.name, "old", "{crd}");
    }
}

#[test]
fn only_older_unobserved_claimants_block() {
    let mut silent = claimant("a", "2026-01-01T00:00:00Z", "1", &[]);
    silent.is_observed = false;
    let is_observed = claimant("b", "2026-01-02T00:00:00Z", "2", &[]);
    let claimants = [silent, is_observed];
    assert_eq!(older_unobserved_claimant("2", &claimants).unwrap().name, "a");
    assert_eq!(older_unobserved_claimant("1", &claimants), None);
    assert_eq!(older_unobserved_claimant("unknown", &claimants), None);
}

#[test]
fn an_outdated_status_is_not_observed() {
    let deployment = |generation: i64| {
        serde_json::json!({
            "metadata": {"name": "a", "uid": "u", "creationTimestamp": "t", "generation": generation},
            "status": {"observedGeneration": 1, "conversions": [{"crd": CRDS[0], "kind": "Widget"}, {"crd": CRDS[1]}]}
        })
    };
    assert!(Claimant::from_object(&deployment(1)).is_observed);
    assert!(!Claimant::from_object(&deployment(2)).is_observed);
    assert!(!Claimant::from_object(&serde_json::json!({})).is_observed);
    let claims = Claimant::from_object(&deployment(1)).claims;
    assert_eq!(claims[0], api(CRDS[0]));
    assert_eq!(claims[1].kind, "");
}

proptest! {
    #[test]
    fn claims_do_not_depend_on_the_event_order(
        mut world in worlds(),
        events in prop::collection::vec((0usize..6, prop::bool::weighted(0.1)), 0..40),
    ) {
        for (index, removed) in events {
            let name = format!("b{index}");
            if !world.desired.contains_key(&name) {
                continue;
            }
            let before = world.crds.clone();
            if removed {
                world.remove(&name);
            } else {
                world.reconcile(&name);
                // No owner loses a CRD.
                for (crd, owner) in &before {
                    prop_assert_eq!(world.crds.get(crd), Some(owner));
                }
            }
            for (crd, owner) in &world.crds {
                for (other, others) in &world.crds {
                    prop_assert!(owner == others || !api(crd).clashes_with(&api(other)));
                }
            }
        }
        world.settle();
        prop_assert_eq!(&world.crds, &expected(&world));
    }
}
