//! Whether a cluster has what a bundle requires.

use std::{collections::BTreeSet, fmt};

use serde_json::{Value, json};
use windlass_bundle::{
    requirements::{Dependency, RequiredApi, Requirement, Requirements},
    upgrade::Version,
};

/// What is known of a cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterFacts {
    /// The version of Kubernetes, as the API server writes it: `v1.30.2-gke.1`.
    pub kube_version: String,
    /// Kinds that are served, in these versions: at least those that are asked for, if they are.
    pub served: BTreeSet<RequiredApi>,
    /// The packages that are installed, with their versions.
    pub packages: Vec<(String, String)>,
}

/// What of the requirements is not met, and what cannot be said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnmetRequirements {
    /// What is not met: the operator would not work.
    pub missing: Vec<String>,
    /// What nobody can know here: packages of catalogs, and what they say about themselves.
    pub unknown: Vec<String>,
}

/// Whether a requirement is met. What cannot be known stays so in whatever it is part of, unless the rest decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Met {
    Yes,
    No,
    Unknown,
}

/// Returns the requirements of a bundle that a cluster does not meet, and those that cannot be checked.
pub fn unmet(requirements: &Requirements, facts: &ClusterFacts) -> UnmetRequirements {
    let mut found = UnmetRequirements::default();
    if let Some(oldest) = &requirements.min_kube_version
        && !is_new_enough(&facts.kube_version, oldest)
    {
        found.missing.push(format!(
            "spec.minKubeVersion is {oldest}, but the cluster runs Kubernetes {}",
            facts.kube_version
        ));
    }
    let mut served = facts.served.clone();
    served.extend(requirements.provided.iter().cloned());
    let scene = Scene {
        properties: properties(&served, &facts.packages),
        served,
        packages: &facts.packages,
    };
    for constraint in &requirements.constraints {
        let message = || format!("{}: {}", constraint.source, Described(constraint));
        let list = match scene.is_met(&constraint.requirement) {
            Met::Yes => continue,
            Met::No => &mut found.missing,
            Met::Unknown => &mut found.unknown,
        };
        let message = message();
        if !list.contains(&message) {
            list.push(message);
        }
    }
    found
}

/// By the numbers alone, as OLM compares: what a vendor appends to the server's version makes it no older.
fn is_new_enough(kube_version: &str, oldest: &str) -> bool {
    let numbers = kube_version.split(['-', '+']).next().unwrap_or_default();
    match (Version::parse(numbers), Version::parse(oldest)) {
        (Some(running), Some(oldest)) => running >= oldest,
        // A server that says nothing is not known to be too old.
        _ => true,
    }
}

/// What is there as OLM's properties (`operator-registry`, `alpha/property`).
fn properties(served: &BTreeSet<RequiredApi>, packages: &[(String, String)]) -> Vec<Value> {
    let apis = served.iter().map(|api| {
        json!({
            "type": "olm.gvk", "value": {"group": api.group, "version": api.version, "kind": api.kind},
        })
    });
    let packages = packages.iter().map(|(name, version)| {
        json!({
            "type": "olm.package", "value": {"packageName": name, "version": version},
        })
    });
    apis.chain(packages).collect()
}

/// What constraints are evaluated on.
struct Scene<'a> {
    served: BTreeSet<RequiredApi>,
    packages: &'a [(String, String)],
    properties: Vec<Value>,
}

impl Scene<'_> {
    fn is_met(&self, requirement: &Requirement) -> Met {
        let of = |parts: &[Dependency]| -> Vec<Met> {
            parts.iter().map(|part| self.is_met(&part.requirement)).collect()
        };
        match requirement {
            Requirement::Api(api) if self.served.contains(api) => Met::Yes,
            Requirement::Api(_) => Met::No,
            Requirement::Package(package) => {
                let installed = |(name, version): &(String, String)| package.is_met_by(name, version);
                if self.packages.iter().any(installed) {
                    Met::Yes
                } else {
                    // Somebody else may have installed it.
                    Met::Unknown
                }
            }
            Requirement::Rule(rule) => match rule.holds(&self.properties) {
                Ok(true) => Met::Yes,
                Ok(false) if is_about_apis(rule.text()) => Met::No,
                _ => Met::Unknown,
            },
            Requirement::All(parts) => all(&of(parts)),
            Requirement::Any(parts) => any(&of(parts)),
            Requirement::Not(parts) => not(any(&of(parts))),
        }
    }
}

/// Whether an expression asks for kinds, or for no property at all: that can be said of a cluster. What packages say of
/// themselves is in catalogs.
fn is_about_apis(rule: &str) -> bool {
    !rule.contains("properties") || (rule.contains("olm.gvk") && !rule.contains("olm.package"))
}

fn all(parts: &[Met]) -> Met {
    not(any(&parts.iter().map(|part| not(*part)).collect::<Vec<_>>()))
}

fn any(parts: &[Met]) -> Met {
    if parts.contains(&Met::Yes) {
        Met::Yes
    } else if parts.contains(&Met::Unknown) {
        Met::Unknown
    } else {
        Met::No
    }
}

fn not(part: Met) -> Met {
    match part {
        Met::Yes => Met::No,
        Met::No => Met::Yes,
        Met::Unknown => Met::Unknown,
    }
}

/// A constraint in words: those of its author, if there are any.
struct Described<'a>(&'a Dependency);

impl fmt::Display for Described<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(constraint) = self;
        if let Some(message) = &constraint.failure_message {
            return f.write_str(message);
        }
        let listed = |parts: &[Dependency], word: &str| {
            let parts: Vec<String> = parts.iter().map(|part| Described(part).to_string()).collect();
            parts.join(word)
        };
        match &constraint.requirement {
            Requirement::Api(api) => write!(f, "the cluster does not serve {api}"),
            Requirement::Package(package) => write!(f, "the package {package} is needed"),
            Requirement::Rule(rule) => write!(f, "{} does not hold", rule.text()),
            Requirement::All(parts) => write!(f, "all of: {}", listed(parts, ", ")),
            Requirement::Any(parts) => write!(f, "one of: {}", listed(parts, ", or ")),
            Requirement::Not(parts) => write!(f, "none of: {}", listed(parts, ", nor ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_bundle::requirements::{CelRule, RequiredPackage};

    fn api(text: &str) -> RequiredApi {
        let mut parts = text.split(' ').map(str::to_owned);
        let mut next = || parts.next().unwrap();
        RequiredApi {
            group: next(),
            version: next(),
            kind: next(),
        }
    }

    fn constraint(requirement: Requirement) -> Dependency {
        Dependency {
            source: "metadata/dependencies.yaml".into(),
            failure_message: None,
            requirement,
        }
    }

    fn found(requirement: Requirement) -> UnmetRequirements {
        let requirements = Requirements {
            min_kube_version: None,
            constraints: vec![constraint(requirement)],
            provided: vec![api("own.example.com v1 Own")],
        };
        let facts = ClusterFacts {
            kube_version: "v1.30.2".into(),
            served: [api("cert-manager.io v1 Certificate"), api(" v1 Pod")].into(),
            packages: vec![("etcd".into(), "3.5.0".into())],
        };
        unmet(&requirements, &facts)
    }

    /// `y`es, `n`o or `u`nknown.
    fn verdict(requirement: Requirement) -> char {
        let found = found(requirement);
        match (found.missing.len(), found.unknown.len()) {
            (0, 0) => 'y',
            (1, 0) => 'n',
            _ => 'u',
        }
    }

    fn served() -> Requirement {
        Requirement::Api(api("cert-manager.io v1 Certificate"))
    }

    fn absent() -> Requirement {
        Requirement::Api(api("cert-manager.io v2 Certificate"))
    }

    fn package(name: &str, range: &str) -> Requirement {
        Requirement::Package(RequiredPackage {
            name: name.into(),
            range: range.into(),
        })
    }

    fn rule(text: &str) -> Requirement {
        Requirement::Rule(CelRule::parse(text).unwrap())
    }

    #[test]
    fn kinds_are_served_or_not_and_packages_are_there_or_unknown() {
        for (requirement, expected) in [
            (served(), 'y'),
            (absent(), 'n'),
            (Requirement::Api(api(" v1 Pod")), 'y'),
            (Requirement::Api(api("own.example.com v1 Own")), 'y'),
            (package("etcd", ">3.1.0"), 'y'),
            (package("etcd", ">4.0.0"), 'u'),
            (package("other", "1.x"), 'u'),
            (rule("true"), 'y'),
            (rule("false"), 'n'),
            (
                rule("properties.exists(p, p.type == 'olm.gvk' && p.value.kind == 'Certificate')"),
                'y',
            ),
            (
                rule("properties.exists(p, p.type == 'olm.gvk' && p.value.kind == 'Issuer')"),
                'n',
            ),
            (rule("properties.exists(p, p.type == 'certified')"), 'u'),
            (rule("1"), 'u'),
        ] {
            assert_eq!(verdict(requirement.clone()), expected, "{requirement:?}");
        }
    }

    #[test]
    fn compound_constraints_keep_what_is_unknown_unless_the_rest_decides() {
        let unknown = || package("other", "1.x");
        let of = |parts: &[Requirement]| parts.iter().cloned().map(constraint).collect::<Vec<_>>();
        for (parts, in_all, in_any, in_not) in [
            (vec![served(), served()], 'y', 'y', 'n'),
            (vec![served(), absent()], 'n', 'y', 'n'),
            (vec![absent()], 'n', 'n', 'y'),
            (vec![served(), unknown()], 'u', 'y', 'n'),
            (vec![absent(), unknown()], 'n', 'u', 'u'),
        ] {
            let verdicts = (
                verdict(Requirement::All(of(&parts))),
                verdict(Requirement::Any(of(&parts))),
                verdict(Requirement::Not(of(&parts))),
            );
            assert_eq!(verdicts, (in_all, in_any, in_not), "{parts:?}");
        }
    }

    #[test]
    fn the_version_of_kubernetes_counts_without_what_vendors_append() {
        for (running, oldest, expected) in [
            ("v1.30.2", "1.30.2", true),
            ("v1.30.2-gke.100", "1.30.2", true),
            ("v1.30.2+k3s1", "v1.30.2", true),
            ("v1.30.2", "1.30.3", false),
            ("v1.30.2", "99.0.0", false),
            ("", "1.0.0", true),
        ] {
            assert_eq!(is_new_enough(running, oldest), expected, "{running} {oldest}");
        }
    }

    #[test]
    fn messages_say_where_and_what_and_everything_at_once() {
        let mut with_message = constraint(rule("false"));
        with_message.failure_message = Some("needs a certified cluster".into());
        let requirements = Requirements {
            min_kube_version: Some("1.31.0".into()),
            constraints: vec![
                constraint(absent()),
                constraint(absent()),
                with_message,
                constraint(Requirement::Any(vec![
                    constraint(absent()),
                    constraint(rule("false")),
                ])),
                constraint(package("etcd", ">3.1.0")),
            ],
            provided: vec![],
        };
        let facts = ClusterFacts {
            kube_version: "v1.30.2".into(),
            ..ClusterFacts::default()
        };
        let found = unmet(&requirements, &facts);
        assert_eq!(
            found.missing,
            [
                "spec.minKubeVersion is 1.31.0, but the cluster runs Kubernetes v1.30.2",
                "metadata/dependencies.yaml: the cluster does not serve Certificate (cert-manager.io/v2)",
                "metadata/dependencies.yaml: needs a certified cluster",
                "metadata/dependencies.yaml: one of: the cluster does not serve Certificate (cert-manager.io/v2), or \
                 false does not hold",
            ]
        );
        assert_eq!(
            found.unknown,
            ["metadata/dependencies.yaml: the package etcd >3.1.0 is needed"]
        );
    }
}
