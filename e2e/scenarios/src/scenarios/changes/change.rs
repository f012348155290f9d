//! What a newer bundle changes that traffic hangs on, as text in the manifests of the samples.

use std::time::Duration;

use super::variant::Variant;
use crate::{sample, test_cluster::TestCluster};

/// How long slow pods answer before they say that they are ready.
const SLOW: Duration = Duration::from_secs(3);

/// One thing that traffic hangs on and in which the newer bundle differs from the older one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum BundleChange {
    /// The port that pods listen on.
    TargetPort,
    /// The Service port of every webhook.
    ServicePorts,
    /// The Service port of the conversion alone.
    ConversionPort,
    /// The labels that the Deployment selects its pods by, which nobody can change in a Deployment.
    Selector,
    /// The Deployment's name, and with it the Service's.
    DeploymentName,
    /// The names of the webhooks.
    WebhookNames,
    /// The path of every webhook.
    WebhookPaths,
    /// Nothing; but there is one pod.
    OneReplica,
    /// Nothing; but the bundle's strategy ends every pod before it starts a new one.
    Recreate,
    /// Nothing; but the bundle's strategy may end the only pod before it starts a new one.
    MaxUnavailable,
    /// Nothing; but pods need a while until they are ready.
    SlowPods,
    /// The NetworkPolicy that lets API servers in, and with it the port.
    NetworkPolicy,
    /// A key of the ConfigMap that pods mount: those of the older release need the one, those of the newer the other.
    ConfigMap,
    /// What a Role of the same name allows: less.
    Role,
    /// The Deployment that serves every webhook: a new one does, and the old one stays.
    Split,
    /// A Deployment beside, which serves no webhook: its selector, and the key of the ConfigMap that its pods need.
    Companion,
    /// All of that that goes together, of a bundle with one pod and `Recreate`.
    Everything,
}

// === impl BundleChange ===

impl BundleChange {
    /// Those that differ in one thing.
    pub(in super::super) const EACH: [Self; 16] = [
        Self::TargetPort,
        Self::ServicePorts,
        Self::ConversionPort,
        Self::Selector,
        Self::DeploymentName,
        Self::WebhookNames,
        Self::WebhookPaths,
        Self::OneReplica,
        Self::Recreate,
        Self::MaxUnavailable,
        Self::SlowPods,
        Self::NetworkPolicy,
        Self::ConfigMap,
        Self::Role,
        Self::Split,
        Self::Companion,
    ];

    /// Those that [`BundleChange::Everything`] is.
    const TOGETHER: [Self; 10] = [
        Self::TargetPort,
        Self::ServicePorts,
        Self::Selector,
        Self::DeploymentName,
        Self::WebhookNames,
        Self::WebhookPaths,
        Self::Recreate,
        Self::NetworkPolicy,
        Self::ConfigMap,
        Self::Role,
    ];

    /// Puts the older bundle into the operator's bundle folder: its name.
    pub(in super::super) fn older(self, cluster: &TestCluster) -> anyhow::Result<String> {
        self.bundle(cluster, false)
    }

    /// Puts the newer bundle into the operator's bundle folder: its name.
    pub(in super::super) fn newer(self, cluster: &TestCluster) -> anyhow::Result<String> {
        self.bundle(cluster, true)
    }

    fn bundle(self, cluster: &TestCluster, newer: bool) -> anyhow::Result<String> {
        let name = format!("{self:?}-{}", if newer { "newer" } else { "older" });
        let folder = cluster.add_bundle(&sample::bundle(base(newer)), &name)?;
        self.variant(newer).write(&folder)?;
        Ok(name)
    }

    /// What makes the older or the newer bundle of the sample.
    fn variant(self, newer: bool) -> Variant {
        let mut variant = Variant::default();
        if self == Self::Everything {
            for change in Self::TOGETHER {
                change.add(newer, &mut variant);
            }
        } else {
            self.add(newer, &mut variant);
        }
        variant
    }

    fn add(self, newer: bool, variant: &mut Variant) {
        match self {
            Self::TargetPort if newer => variant.listen_elsewhere(),
            Self::ServicePorts if newer => variant.replace("containerPort: 443\n", "containerPort: 4443\n"),
            Self::ConversionPort if newer => {
                let conversion = |port: u16| {
                    format!(
                        "generateName: cwidget.sample.windlass.dev\n    deploymentName: sample-operator\n    containerPort: {port}\n"
                    )
                };
                variant.replace(&conversion(443), &conversion(4443));
            }
            Self::Selector if newer => variant.select_more(),
            Self::DeploymentName if newer => {
                variant.replace(
                    "- name: sample-operator\n        label",
                    "- name: other-operator\n        label",
                );
                variant.replace(
                    "deploymentName: sample-operator\n",
                    "deploymentName: other-operator\n",
                );
            }
            Self::WebhookNames if newer => {
                for (name, other) in [
                    ("mwidget", "default"),
                    ("vwidget", "check"),
                    ("cwidget", "convert"),
                ] {
                    variant.replace(
                        &format!("generateName: {name}."),
                        &format!("generateName: {other}."),
                    );
                }
            }
            Self::WebhookPaths if newer => {
                for path in ["mutate", "validate", "convert"] {
                    variant.replace(
                        &format!("webhookPath: /{path}\n"),
                        &format!("webhookPath: /v2/{path}\n"),
                    );
                }
                let paths = [
                    "--mutate-path=/v2/mutate",
                    "--validate-path=/v2/validate",
                    "--convert-path=/v2/convert",
                ];
                variant.add_arguments(&paths);
            }
            Self::SlowPods => variant.take_time(SLOW),
            Self::OneReplica => variant.replace("replicas: 2\n", "replicas: 1\n"),
            Self::Recreate => variant.roll("{type: Recreate}"),
            Self::MaxUnavailable => {
                variant.roll("{type: RollingUpdate, rollingUpdate: {maxUnavailable: 1, maxSurge: 0}}");
            }
            Self::NetworkPolicy => variant.let_in(newer),
            Self::ConfigMap => variant.mount(newer),
            Self::Role => variant.allow(newer),
            Self::Split if newer => variant.split(),
            Self::Companion => variant.accompany(newer),
            _ => {}
        }
    }
}

fn base(newer: bool) -> &'static str {
    if newer { "sample.v2" } else { "sample.v1" }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;
    use windlass_bundle::{Bundle, sources};

    use super::*;

    #[test]
    fn every_variant_is_a_valid_bundle_and_differs_from_the_sample() {
        for change in BundleChange::EACH.into_iter().chain([BundleChange::Everything]) {
            for newer in [false, true] {
                let folder = TempDir::new().unwrap();
                for part in ["manifests", "metadata"] {
                    fs::create_dir(folder.path().join(part)).unwrap();
                    for entry in fs::read_dir(sample::bundle(base(newer)).join(part)).unwrap() {
                        let entry = entry.unwrap();
                        fs::copy(entry.path(), folder.path().join(part).join(entry.file_name())).unwrap();
                    }
                }
                change.variant(newer).write(folder.path()).unwrap();
                let files = sources::load(folder.path()).unwrap();
                let problems = Bundle::parse(&files).err();
                assert!(problems.is_none(), "{change:?}: {problems:?}");
                let same = change.variant(newer) == Variant::default();
                assert!(!(newer && same), "{change:?} changes nothing");
            }
        }
    }
}
