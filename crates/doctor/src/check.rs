//! The checks, by name.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::finding::{DoctorFinding, DoctorSeverity};

/// What checks are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CheckGroup {
    /// What runs, in which version.
    Versions,
    /// Who may do what.
    Rights,
    /// Who reaches whom, and trusts them.
    Reachability,
    /// Whose clock shows what.
    Clocks,
    /// Who else works on the same objects.
    Others,
    /// What turns a failure of one thing into a failure of many.
    Night,
    /// What Windlass itself says of its objects.
    Windlass,
    /// What was not looked at.
    Unseen,
}

/// Declares each check as a variant and says what it finds.
macro_rules! checks {
    ($($name:ident in $group:ident: $says:literal;)*) => {
        /// What is looked for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum DoctorCheck {
            $(#[doc = $says] $name,)*
        }

        impl DoctorCheck {
            /// Every check.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// What it is called, as reasons of conditions are.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }

            /// What it is about.
            pub const fn group(self) -> CheckGroup {
                match self { $(Self::$name => CheckGroup::$group,)* }
            }

            /// What it looks for.
            pub const fn says(self) -> &'static str {
                match self { $(Self::$name => $says,)* }
            }
        }
    };
}

checks! {
    KubernetesVersion in Versions: "the API server is of a version that Windlass supports";
    ApiNotServed in Versions: "the API server serves every kind that Windlass uses";
    DefinitionStale in Versions: "the CustomResourceDefinitions of Windlass are there, and those of this version of the program";
    WindlassNotInstalled in Versions: "Windlass is installed, and runs in the namespace that was named";
    OtherVersion in Versions: "the Deployments of Windlass run the version of this program";
    OperatorNotReady in Versions: "every Deployment of Windlass has its pods";
    NobodyLeads in Versions: "one replica renews the Lease of each part of Windlass";

    CallerLacksRights in Rights: "whoever runs this may install: Windlass itself where it is not there, else bundles";
    OperatorLacksRights in Rights: "the ServiceAccounts of Windlass have every right of the manifests of this version (SubjectAccessReview)";

    ServiceNotFound in Reachability: "the Service exists that a webhook, a conversion or an APIService calls";
    PortNotServed in Reachability: "that Service has the port that is called, and leads into the cluster";
    NoReadyEndpoint in Reachability: "that Service has a ready endpoint";
    NothingTrusted in Reachability: "who calls a Service has a caBundle that can be read";
    TrustEnded in Reachability: "a CA in that caBundle is still valid";
    TrustEndsSoon in Reachability: "a CA in that caBundle is valid for another week";
    ConversionFails in Reachability: "the API server can list an object of each CustomResourceDefinition that is converted, in each version: a real call of its webhook, where an object is stored";
    WebhookFails in Reachability: "with --call-webhooks: the admission webhooks of custom resources answer the API server, when it tries to update one of each kind in a dry run";
    ApiServiceUnavailable in Reachability: "the API server reaches the servers behind its APIServices, as it says itself";
    EgressRestricted in Reachability: "no NetworkPolicy keeps the pods of Windlass from connecting to the webhook servers that they look at";

    ClockSkew in Clocks: "the clock of this machine agrees with that of the API server, within 10 s; so does that of the leader";
    NodeClock in Clocks: "so do the clocks of nodes, by their Leases, and every node that is Ready renews its own";

    TwoInjectors in Others: "no object asks Windlass and another injector for its caBundle, and none of Windlass asks another one";
    CaBundleOwned in Others: "nobody else owns the caBundle of an object that asks Windlass (managedFields), and would put an old one back";
    AsksAboutWindlass in Others: "no webhook of others with failurePolicy Fail is asked about the pods and Leases of Windlass";
    SecondWindlass in Others: "there is one Windlass";
    OtherController in Others: "names other programs whose work touches that of Windlass: cert-manager, OLM, Karmada, Cluster API, policy engines, GitOps";

    DefinitionNotEstablished in Night: "every CustomResourceDefinition is established, and none waits for its removal";
    StoredVersionNotServed in Night: "every version in which objects may be stored is served";
    DrainsBlocked in Night: "no PodDisruptionBudget of pods that are called holds up every drain";
    NamespaceStuck in Night: "no namespace has been terminating for ten minutes";

    ReportedProblem in Windlass: "what the conditions of BundleDeployments and ServingCertificates say, and windlass report: such findings have the reason of the condition";

    NotLookedAt in Unseen: "names what could not be read, and which right that takes; and what this command does not look at";
}

// === impl DoctorCheck ===

impl DoctorCheck {
    /// Something fails, or will.
    pub fn error(self, subject: impl fmt::Display, message: impl Into<String>) -> DoctorFinding {
        self.found(DoctorSeverity::Error, subject, message)
    }

    /// Something may fail.
    pub fn warning(self, subject: impl fmt::Display, message: impl Into<String>) -> DoctorFinding {
        self.found(DoctorSeverity::Warning, subject, message)
    }

    /// Something is as it should be, or good to know.
    pub fn info(self, subject: impl fmt::Display, message: impl Into<String>) -> DoctorFinding {
        self.found(DoctorSeverity::Info, subject, message)
    }

    /// The same, with a severity that is known later.
    pub fn found(
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

// === impl CheckGroup ===

impl CheckGroup {
    /// What it is called.
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
