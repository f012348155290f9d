//! Checks versions and leaders.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_cluster::{Kind, kinds, lease::LeaderElectionRecord};
use windlass_doctor::{
    DoctorCheck, DoctorSeverity, LeaseFacts, api_not_served, kubernetes_version, leader, own_crd,
    second_windlass, windlass_deployment,
};
use windlass_object::{ObjectKey, object};
use windlass_operator::{
    Controllers,
    admission::{AdmissionService, CERTIFICATES_ACCOUNT},
};

use super::examination::Examination;
use crate::commands::manifests;

/// Kinds that Windlass requires.
const USED: [Kind; 9] = [
    kinds::VALIDATING_WEBHOOK_CONFIGURATION,
    kinds::MUTATING_WEBHOOK_CONFIGURATION,
    kinds::CUSTOM_RESOURCE_DEFINITION,
    kinds::API_SERVICE,
    kinds::ENDPOINT_SLICE,
    kinds::DEPLOYMENT,
    kinds::REPLICA_SET,
    kinds::LEASE,
    kinds::EVENT,
];

/// What the checks know about the installation of Windlass.
#[derive(Clone, Debug, Default)]
pub(super) struct Installation {
    /// Whether its kinds are served.
    pub(super) is_installed: bool,
    /// Whether one of its Deployments has another version than this program.
    pub(super) is_of_another_version: bool,
    /// Whether the certificate controllers have a leader.
    pub(super) has_leader: bool,
}

/// Returns the names of Windlass's Deployments, which are also those of their ServiceAccounts.
pub(super) fn programs() -> [&'static str; 4] {
    [
        manifests::NAME,
        CERTIFICATES_ACCOUNT,
        AdmissionService::POLICIES.name,
        manifests::UI_NAME,
    ]
}

impl Examination<'_> {
    /// Checks versions and Leases.
    ///
    /// # Errors
    ///
    /// When the CustomResourceDefinitions of this program cannot be written as JSON.
    pub(super) async fn check_versions(&mut self, kubernetes: &str) -> anyhow::Result<Installation> {
        self.add([kubernetes_version(kubernetes)]);
        for kind in &USED {
            match self.cluster.serves(kind).await {
                Ok(true) => {}
                Ok(false) => self.add([api_not_served(kind)]),
                Err(error) => {
                    self.report_unchecked("Discovery", kind, "get", None, &error)
                        .await;
                }
            }
        }
        let is_installed = match self.cluster.serves(&kinds::BUNDLE_DEPLOYMENT).await {
            Ok(is_served) => is_served,
            Err(error) => {
                self.report_unchecked("Discovery", &kinds::BUNDLE_DEPLOYMENT, "get", None, &error)
                    .await;
                false
            }
        };
        let mut installation = Installation {
            is_installed,
            ..Installation::default()
        };
        let read = self.deployments().await;
        let deployments = read.as_deref().unwrap_or_default();
        let here = deployments
            .iter()
            .filter(|deployment| object::text(deployment, "/metadata/namespace") == Some(self.namespace));
        let names: BTreeSet<_> = here
            .clone()
            .filter_map(|deployment| object::text(deployment, "/metadata/name"))
            .collect();
        let image = manifests::image();
        let tag = image.rsplit(':').next().unwrap_or_default();
        let found: Vec<_> = here
            .flat_map(|deployment| windlass_deployment(deployment, tag))
            .collect();
        installation.is_of_another_version = found.iter().any(|finding| {
            finding.reason == DoctorCheck::OtherVersion.name() && finding.severity == DoctorSeverity::Warning
        });
        self.add(found);
        let namespace = self.namespace;
        self.add(
            deployments
                .iter()
                .filter_map(|deployment| second_windlass(deployment, namespace)),
        );
        let leaders = self.check_leaders(&names).await;
        installation.has_leader = leaders > 0;
        if read.is_some() || !is_installed {
            self.check_installation(&installation, names.is_empty());
        }
        if is_installed {
            self.check_own_definitions(&installation).await?;
        }
        Ok(installation)
    }

    /// Lists the Deployments of Windlass, in the whole cluster if that is allowed.
    async fn deployments(&mut self) -> Option<Vec<Value>> {
        let selector = format!("app.kubernetes.io/name in ({})", programs().join(","));
        let everywhere = self.cluster.list(&kinds::DEPLOYMENT, None, Some(&selector)).await;
        if let Ok(deployments) = everywhere {
            return Some(deployments);
        }
        let namespace = self.namespace;
        self.list(&kinds::DEPLOYMENT, Some(namespace), Some(&selector), Some)
            .await
    }

    fn check_installation(&mut self, installation: &Installation, runs_elsewhere: bool) {
        let check = DoctorCheck::WindlassNotInstalled;
        let namespace = self.namespace;
        self.add([match (installation.is_installed, runs_elsewhere) {
            (false, _) => check.info(
                "Windlass",
                "is not installed: windlass manifests | kubectl apply --server-side -f - (docs/install.md)",
            ),
            (true, true) if installation.has_leader => check.info(
                "Windlass",
                format!("is installed, but its leader is not a pod of a Deployment in namespace {namespace}"),
            ),
            (true, true) => check.warning(
                "Windlass",
                format!(
                    "is installed, but does not run in namespace {namespace}, so certificates are not renewed: start it, or specify its \
                     namespace with --operator-namespace"
                ),
            ),
            (true, false) => check.info("Windlass", format!("is installed in namespace {namespace}")),
        }]);
    }

    /// Checks the leaders, and returns how many there are.
    async fn check_leaders(&mut self, deployments: &BTreeSet<&str>) -> usize {
        let groups = [
            Controllers::BUNDLES,
            Controllers::CERTIFICATES,
            Controllers::POLICIES,
        ];
        let mut leaders = 0;
        for group in groups {
            let key = kinds::LEASE.object(Some(self.namespace), group.lease());
            let Some(read) = self.read(&key).await else {
                continue;
            };
            let record = read.map(|lease| LeaderElectionRecord::from_lease(&lease));
            let finding = match record {
                None if !deployments.contains(group.lease()) => continue,
                None => {
                    let message =
                        "not found: no replica has ever been the leader; check the pods and their logs";
                    DoctorCheck::NobodyLeads.warning(&key, message)
                }
                Some(Err(error)) => DoctorCheck::NobodyLeads.warning(&key, error.to_string()),
                Some(Ok(record)) => leader(&lease_facts(key, record), self.now()),
            };
            leaders += usize::from(finding.severity == DoctorSeverity::Info);
            self.add([finding]);
        }
        leaders
    }

    async fn check_own_definitions(&mut self, installation: &Installation) -> anyhow::Result<()> {
        let severity = match installation.is_of_another_version {
            true => DoctorSeverity::Warning,
            false => DoctorSeverity::Error,
        };
        let mut current = 0;
        let definitions = windlass_api::custom_resource_definitions();
        for definition in &definitions {
            let expected = serde_json::to_value(definition)?;
            let Some(key) = ObjectKey::from_object(&expected) else {
                continue;
            };
            let Some(live) = self.read(&key).await else {
                continue;
            };
            match own_crd(&expected, live.as_ref(), severity) {
                Some(finding) => self.add([finding]),
                None => current += 1,
            }
        }
        if current == definitions.len() {
            let message = format!("all {current} match those of this program");
            self.add([DoctorCheck::DefinitionStale.info("CustomResourceDefinitions of Windlass", message)]);
        }
        Ok(())
    }
}

/// Returns the relevant parts of a Lease.
pub(super) fn lease_facts(key: ObjectKey, record: LeaderElectionRecord) -> LeaseFacts {
    LeaseFacts {
        key,
        holder: record.holder,
        duration: record.duration,
        renewed: record.renewed,
    }
}
