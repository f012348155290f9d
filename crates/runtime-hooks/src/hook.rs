//! Hooks, and where a server answers them.

/// The group of Cluster API's own hooks (`api/runtime/hooks/v1alpha1/groupversion_info.go`).
pub const GROUP: &str = "hooks.runtime.cluster.x-k8s.io";

/// The version of Cluster API's own hooks.
pub const VERSION: &str = "v1alpha1";

/// The hook with which a server says which others it answers.
pub const DISCOVERY: &str = "Discovery";

/// Cluster API's own hooks beside [`DISCOVERY`].
pub const HOOKS: [&str; 16] = [
    "AfterClusterUpgrade",
    "AfterControlPlaneInitialized",
    "AfterControlPlaneUpgrade",
    "AfterWorkersUpgrade",
    "BeforeClusterCreate",
    "BeforeClusterDelete",
    "BeforeClusterUpgrade",
    "BeforeControlPlaneUpgrade",
    "BeforeWorkersUpgrade",
    "CanUpdateMachine",
    "CanUpdateMachineSet",
    "DiscoverVariables",
    "GeneratePatches",
    "GenerateUpgradePlan",
    "UpdateMachine",
    "ValidateTopology",
];

/// A hook, as the status of an ExtensionConfig names it (`requestHook`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HookReference {
    /// `group/version`, for example `hooks.runtime.cluster.x-k8s.io/v1alpha1`.
    pub api_version: String,
    /// For example `BeforeClusterCreate`.
    pub hook: String,
}

// === impl HookReference ===

impl HookReference {
    /// One of Cluster API's own hooks.
    pub fn of_cluster_api(hook: &str) -> Self {
        Self {
            api_version: format!("{GROUP}/{VERSION}"),
            hook: hook.to_owned(),
        }
    }

    /// Whether the hook is one of Cluster API's own group.
    pub fn is_of_cluster_api(&self) -> bool {
        self.api_version.split('/').next() == Some(GROUP)
    }

    /// Where a server answers it, behind the path of its ExtensionConfig: `/{group}/{version}/{hook}` in lower case
    /// (`GVHToPath` of `api/runtime/catalog/catalog.go`).
    pub fn path(&self) -> String {
        format!("/{}/{}", self.api_version, self.hook.to_lowercase())
    }
}

/// `path` behind `prefix`, without `.`, `..` and slashes that say nothing, as Go's `path.Join` has it.
pub fn join(prefix: &str, path: &str) -> String {
    let mut segments = Vec::new();
    for segment in prefix.split('/').chain(path.split('/')) {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            segment => segments.push(segment),
        }
    }
    format!("/{}", segments.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_is_answered_at_its_path() {
        let discovery = HookReference::of_cluster_api(DISCOVERY);
        assert_eq!(
            discovery.path(),
            "/hooks.runtime.cluster.x-k8s.io/v1alpha1/discovery"
        );
        for (prefix, expected) in [
            ("", "/a/b"),
            ("/", "/a/b"),
            ("/x", "/x/a/b"),
            ("//x//y/", "/x/y/a/b"),
            ("/x/../y", "/y/a/b"),
            ("/../..", "/a/b"),
        ] {
            assert_eq!(join(prefix, "/a/b"), expected, "{prefix}");
        }
    }
}
