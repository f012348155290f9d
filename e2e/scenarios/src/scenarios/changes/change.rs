//! The changes in a newer bundle that can interrupt traffic, as edits of the sample's manifests.

use std::time::Duration;

use super::variant::Variant;
use crate::{sample, test_cluster::TestCluster};

/// How long a slow pod answers requests before it reports ready.
const SLOW: Duration = Duration::from_secs(3);

/// A difference between the older and the newer bundle that can interrupt traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum BundleChange {
    /// The port that pods listen on.
    TargetPort,
    /// The Service port of all webhooks.
    ServicePorts,
    /// The Service port of the conversion webhook only.
    ConversionPort,
    /// The Deployment's label selector, which is immutable.
    Selector,
    /// The name of the Deployment, and with it the name of the Service.
    DeploymentName,
    /// The names of the webhooks.
    WebhookNames,
    /// The path of each webhook.
    WebhookPaths,
    /// The versions that webhooks receive: the older release any, the newer only its newest, so that the API server
    /// converts objects for them.
    WebhookVersions,
    /// One replica, and nothing else.
    OneReplica,
    /// The strategy `Recreate`, and nothing else.
    Recreate,
    /// A `maxUnavailable` that allows the only pod to end first, and nothing else.
    MaxUnavailable,
    /// Pods that become ready slowly, and nothing else.
    SlowPods,
    /// The NetworkPolicy that admits API servers, together with the port.
    NetworkPolicy,
    /// The key in the mounted ConfigMap: each release requires another one.
    ConfigMap,
    /// The rules of a Role: the newer release has fewer.
    Role,
    /// The Deployment that serves the webhooks: a new one, and the old one stays.
    Split,
    /// The selector of another Deployment without webhooks, and the key in the ConfigMap that it requires.
    Companion,
    /// All changes that can be combined, with one replica and `Recreate`.
    Everything,
}

impl BundleChange {
    /// Every single change.
    pub(in super::super) const EACH: [Self; 17] = [
        Self::TargetPort,
        Self::ServicePorts,
        Self::ConversionPort,
        Self::Selector,
        Self::DeploymentName,
        Self::WebhookNames,
        Self::WebhookPaths,
        Self::WebhookVersions,
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

    /// The changes in [`BundleChange::Everything`].
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

    /// Writes the older bundle into the operator's bundle folder, and returns its name.
    pub(in super::super) fn older(self, cluster: &TestCluster) -> anyhow::Result<String> {
        self.bundle(cluster, false)
    }

    /// Writes the newer bundle into the operator's bundle folder, and returns its name.
    pub(in super::super) fn newer(self, cluster: &TestCluster) -> anyhow::Result<String> {
        self.bundle(cluster, true)
    }

    fn bundle(self, cluster: &TestCluster, newer: bool) -> anyhow::Result<String> {
        let name = format!("{self:?}-{}", if newer { "newer" } else { "older" });
        let folder = cluster.add_bundle(&sample::bundle(base(newer)), &name)?;
        self.variant(newer).write(&folder)?;
        Ok(name)
    }

    /// Returns the edits that make the older or the newer bundle of the sample.
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
            Self::TargetPort if newer => variant.change_port(),
            Self::ServicePorts if newer => variant.replace("containerPort: 443\n", "containerPort: 4443\n"),
            Self::ConversionPort if newer => {
                let conversion = |port: u16| {
                    format!(
                        "generateName: cwidget.sample.windlass.dev\n    deploymentName: sample-operator\n    containerPort: {port}\n"
                    )
                };
                variant.replace(&conversion(443), &conversion(4443));
            }
            Self::Selector if newer => variant.add_selector_label(),
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
            Self::WebhookVersions if newer => {
                variant.replace("apiVersions: [v2, v1, v1beta1]\n", "apiVersions: [v2]\n");
            }
            Self::WebhookVersions => variant.replace("apiVersions: [v1, v1beta1]\n", "apiVersions: ['*']\n"),
            Self::SlowPods => variant.delay_readiness(SLOW),
            Self::OneReplica => variant.replace("replicas: 2\n", "replicas: 1\n"),
            Self::Recreate => variant.set_strategy("{type: Recreate}"),
            Self::MaxUnavailable => {
                variant
                    .set_strategy("{type: RollingUpdate, rollingUpdate: {maxUnavailable: 1, maxSurge: 0}}");
            }
            Self::NetworkPolicy => variant.add_network_policy(newer),
            Self::ConfigMap => variant.mount_config_map(newer),
            Self::Role => variant.add_role(newer),
            Self::Split if newer => variant.move_webhooks(),
            Self::Companion => variant.add_second_deployment(newer),
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
