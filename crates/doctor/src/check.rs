//! The checks, by name.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::finding::{DoctorFinding, DoctorSeverity};

/// The subject of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CheckGroup {
    /// Installed versions.
    Versions,
    /// Permissions.
    Rights,
    /// Reachability and trust of servers.
    Reachability,
    /// Agreement of clocks.
    Clocks,
    /// Other controllers that write the same objects.
    Others,
    /// Risks: conditions that make one failure cause many others.
    Night,
    /// Problems that Windlass itself reports.
    Windlass,
    /// What was not checked.
    Unseen,
}

/// Declares each check as a variant with its description.
macro_rules! checks {
    ($($name:ident in $group:ident: $description:literal;)*) => {
        /// A check of the cluster.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum DoctorCheck {
            $(#[doc = $description] $name,)*
        }

        impl DoctorCheck {
            /// Every check.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// Returns the name, which is the reason of its findings.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }

            /// Returns the group that runs this check.
            pub const fn group(self) -> CheckGroup {
                match self { $(Self::$name => CheckGroup::$group,)* }
            }

            /// Returns what the check verifies.
            pub const fn description(self) -> &'static str {
                match self { $(Self::$name => $description,)* }
            }
        }
    };
}

checks! {
    KubernetesVersion in Versions: "the API server has a version that Windlass supports";
    ApiNotServed in Versions: "the API server serves every kind that Windlass uses";
    DefinitionStale in Versions: "the CustomResourceDefinitions of Windlass exist and match this version of the command";
    WindlassNotInstalled in Versions: "Windlass is installed and runs in the given namespace";
    OtherVersion in Versions: "the Deployments of Windlass run the version of this command";
    OperatorNotReady in Versions: "every Deployment of Windlass has all its pods ready";
    NobodyLeads in Versions: "each part of Windlass has a leader that renews its Lease";

    CallerLacksRights in Rights: "the current user may install Windlass, or bundles if Windlass is installed";
    OperatorLacksRights in Rights: "the ServiceAccounts of Windlass have all permissions in the manifests of this version (SubjectAccessReview)";

    ServiceNotFound in Reachability: "every Service that a webhook, a conversion or an APIService calls exists";
    PortNotServed in Reachability: "that Service has the called port and is not an ExternalName";
    NoReadyEndpoint in Reachability: "that Service has a ready endpoint";
    NothingTrusted in Reachability: "every caller of a Service has a readable caBundle";
    TrustEnded in Reachability: "a CA in that caBundle is still valid";
    TrustEndsSoon in Reachability: "a CA in that caBundle is valid for at least another week";
    ConversionFails in Reachability: "the API server can list an object of each converted CustomResourceDefinition in each version, which calls its webhook if an object is stored";
    WebhookFails in Reachability: "with --call-webhooks: the admission webhooks of custom resources answer a dry-run update of one object of each kind";
    ApiServiceUnavailable in Reachability: "the API server reports its APIServices as available";
    EgressRestricted in Reachability: "no NetworkPolicy blocks connections from the pods of Windlass to webhook servers";

    ClockSkew in Clocks: "the clocks of this machine and of the leader agree with that of the API server within 10 s";
    NodeClock in Clocks: "the clocks of nodes agree with that of the API server, and every Ready node renews its Lease";

    TwoInjectors in Others: "no object requests its caBundle from both Windlass and another injector, and no object that Windlass creates requests it from another injector";
    CaBundleOwned in Others: "only Windlass owns the caBundle of an object that requests it from Windlass (managedFields); another field manager could restore an old one";
    AsksAboutWindlass in Others: "no foreign webhook with failurePolicy Fail intercepts the pods and Leases of Windlass";
    SecondWindlass in Others: "Windlass is installed only once";
    OtherController in Others: "lists other controllers that interact with Windlass: cert-manager, OLM, Karmada, Cluster API, policy engines, GitOps";

    DefinitionNotEstablished in Night: "every CustomResourceDefinition is established, and none is being deleted";
    StoredVersionNotServed in Night: "every version in which objects may be stored is served";
    DrainsBlocked in Night: "no PodDisruptionBudget of webhook servers blocks every node drain";
    NamespaceStuck in Night: "no namespace has been terminating for ten minutes";

    ReportedProblem in Windlass: "lists problems in the conditions of BundleDeployments and ServingCertificates, as windlass report does; each finding has the reason of its condition";

    NotLookedAt in Unseen: "lists what could not be read, with the missing permission, and what this command does not check";
}

impl DoctorCheck {
    /// Creates a finding for something that fails or will fail.
    pub fn error(self, subject: impl fmt::Display, message: impl Into<String>) -> DoctorFinding {
        self.finding(DoctorSeverity::Error, subject, message)
    }

    /// Creates a finding for something that may fail.
    pub fn warning(self, subject: impl fmt::Display, message: impl Into<String>) -> DoctorFinding {
        self.finding(DoctorSeverity::Warning, subject, message)
    }

    /// Creates a finding for something that is in order or useful to know.
    pub fn info(self, subject: impl fmt::Display, message: impl Into<String>) -> DoctorFinding {
        self.finding(DoctorSeverity::Info, subject, message)
    }

    /// Creates a finding with the given severity.
    pub fn finding(
        self,
        severity: DoctorSeverity,
        subject: impl fmt::Display,
        message: impl Into<String>,
    ) -> DoctorFinding {
        DoctorFinding {
            severity,
            group: self.group(),
            reason: self.name().to_owned(),
            subject: subject.to_string(),
            message: message.into(),
        }
    }
}

impl CheckGroup {
    /// Returns the name for the report.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Versions => "versions",
            Self::Rights => "rights",
            Self::Reachability => "reachability",
            Self::Clocks => "clocks",
            Self::Others => "others",
            Self::Night => "night",
            Self::Windlass => "windlass",
            Self::Unseen => "unseen",
        }
    }
}

impl fmt::Display for CheckGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Serialize for CheckGroup {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn check_names_are_unique_and_sorted_by_group() {
        let names: BTreeSet<_> = DoctorCheck::ALL.iter().map(|check| check.name()).collect();
        assert_eq!(names.len(), DoctorCheck::ALL.len());
        assert!(DoctorCheck::ALL.is_sorted_by_key(|check| check.group()));
    }
}
