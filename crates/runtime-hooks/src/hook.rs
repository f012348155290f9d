//! What a hook is: a request and a response by type, and where servers answer it.

use std::{collections::BTreeMap, fmt};

use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use windlass_object::rfc1123::{is_label, is_subdomain};

use crate::response::HookOutcome;

/// A hook in one version: the types of its request and response, and what is known of it.
///
/// Cluster API's own are in [`cluster_api`](crate::cluster_api); anybody may define more:
///
/// ```
/// use runtime_hooks::{
///     Hook, HookMetadata, HookRequest, HookResponse,
///     hook::HookSettings,
///     response::{HookOutcome, ResponseStatus},
/// };
/// use schemars::JsonSchema;
/// use serde::{Deserialize, Serialize};
///
/// /// Called before coffee is made.
/// struct BeforeCoffee;
///
/// #[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
/// #[serde(rename_all = "camelCase", default)]
/// struct BeforeCoffeeRequest {
///     settings: HookSettings,
///     cups: u32,
/// }
///
/// #[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
/// #[serde(rename_all = "camelCase", default)]
/// struct BeforeCoffeeResponse {
///     #[serde(default = "ResponseStatus::unset")]
///     status: ResponseStatus,
///     message: String,
/// }
///
/// impl HookRequest for BeforeCoffeeRequest {
///     const HAS_SETTINGS: bool = true;
/// }
///
/// impl HookResponse for BeforeCoffeeResponse {
///     fn outcome(&self) -> HookOutcome {
///         HookOutcome { status: self.status.clone(), message: self.message.clone(), retry_after_seconds: 0 }
///     }
///
///     fn set_outcome(&mut self, outcome: HookOutcome) {
///         (self.status, self.message) = (outcome.status, outcome.message);
///     }
/// }
///
/// impl Hook for BeforeCoffee {
///     type Request = BeforeCoffeeRequest;
///     type Response = BeforeCoffeeResponse;
///     const GROUP: &'static str = "hooks.example.com";
///     const VERSION: &'static str = "v1";
///     const NAME: &'static str = "BeforeCoffee";
///     const METADATA: HookMetadata = HookMetadata { summary: "Before coffee is made", ..HookMetadata::new() };
/// }
///
/// assert_eq!(BeforeCoffee::reference().path(), "/hooks.example.com/v1/beforecoffee");
/// ```
pub trait Hook: Send + Sync + 'static {
    /// What is asked.
    type Request: HookRequest;
    /// What is answered.
    type Response: HookResponse;
    /// For example `hooks.runtime.cluster.x-k8s.io`.
    const GROUP: &'static str;
    /// For example `v1alpha1`.
    const VERSION: &'static str;
    /// For example `BeforeClusterCreate`.
    const NAME: &'static str;
    /// What is known of it beside its types.
    const METADATA: HookMetadata = HookMetadata::new();

    /// The hook by its names.
    fn reference() -> HookReference {
        HookReference {
            api_version: format!("{}/{}", Self::GROUP, Self::VERSION),
            hook: Self::NAME.to_owned(),
        }
    }
}

/// What a hook is asked with. On the wire `kind` and `apiVersion` stand beside its fields; neither is a field of the type.
pub trait HookRequest:
    Clone + Default + Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static
{
    /// Whether it has a field `settings`, into which those of the ExtensionConfig go.
    const HAS_SETTINGS: bool;
}

/// What a hook is answered with. [`Default`] is a success with nothing to say.
pub trait HookResponse:
    Clone + Default + Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static
{
    /// Whether the handler succeeded, and what is to be known beside that.
    fn outcome(&self) -> HookOutcome;

    /// Changes [`Self::outcome`]; what the response has no field for is dropped.
    fn set_outcome(&mut self, outcome: HookOutcome);
}

/// What somebody gave a handler to work with, by the ExtensionConfig or by whoever calls.
pub type HookSettings = BTreeMap<String, String>;

/// What is known of a hook beside its types (`HookMeta` of `api/runtime/catalog/catalog.go`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HookMetadata {
    /// One line.
    pub summary: &'static str,
    /// What whoever answers it has to know.
    pub description: &'static str,
    /// What it is shown under.
    pub tags: &'static [&'static str],
    /// Whether a newer version is to be answered instead.
    pub deprecated: bool,
    /// Whether a server answers it once, rather than by handlers with names.
    pub singleton: bool,
    /// Whether being asked twice does no more than being asked once: only then is a call that failed on its way tried again.
    pub idempotent: bool,
}

/// A hook, as the status of an ExtensionConfig names it (`requestHook`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HookReference {
    /// `group/version`, for example `hooks.runtime.cluster.x-k8s.io/v1alpha1`.
    pub api_version: String,
    /// For example `BeforeClusterCreate`.
    pub hook: String,
}

/// The longest name of a hook that the status of an ExtensionConfig holds.
const LONGEST_NAME: usize = 256;

// === impl HookMetadata ===

impl HookMetadata {
    /// Of a hook of which nothing is known: not deprecated, not a singleton, not idempotent.
    pub const fn new() -> Self {
        Self {
            summary: "",
            description: "",
            tags: &[],
            deprecated: false,
            singleton: false,
            idempotent: false,
        }
    }
}

impl Default for HookMetadata {
    fn default() -> Self {
        Self::new()
    }
}

// === impl HookReference ===

impl HookReference {
    /// The part of `apiVersion` before the slash; empty where there is none.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// The part of `apiVersion` behind the slash.
    pub fn version(&self) -> &str {
        self.api_version
            .split_once('/')
            .map_or(&*self.api_version, |(_, version)| version)
    }

    /// The name among all versions, `<hook>.<group>`: what is called, whichever version a handler answers.
    pub fn group_hook(&self) -> String {
        format!("{}.{}", self.hook, self.group())
    }

    /// Whether both are one hook, maybe in different versions.
    pub fn is_same_hook(&self, other: &Self) -> bool {
        self.hook == other.hook && self.group() == other.group()
    }

    /// Whether `apiVersion` has a group and a version that the API server would take. They become parts of a path.
    pub(crate) fn has_group_and_version(&self) -> bool {
        let parts = self.api_version.split_once('/');
        parts.is_some_and(|(group, version)| is_subdomain(group) && is_label(version))
    }

    /// Whether the name is one that a type may have. It becomes a part of a path.
    pub(crate) fn has_name(&self) -> bool {
        let name = self.hook.as_bytes();
        (1..=LONGEST_NAME).contains(&name.len()) && name.iter().all(u8::is_ascii_alphanumeric)
    }

    /// Where a server answers it, behind the path of its ExtensionConfig: `/{group}/{version}/{hook}` in lower case
    /// (`GVHToPath` of `api/runtime/catalog/catalog.go`).
    pub fn path(&self) -> String {
        format!("/{}/{}", self.api_version, self.hook.to_lowercase())
    }

    /// Where the handler `name` of a server answers it; [`Self::path`] where a server answers it once.
    pub fn handler_path(&self, name: &str) -> String {
        format!("{}/{}", self.path(), name.to_lowercase())
    }
}

impl fmt::Display for HookReference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}, Hook={}", self.api_version, self.hook)
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
    use crate::cluster_api::{BeforeClusterUpgrade, Discovery};

    #[test]
    fn a_hook_is_answered_at_its_path() {
        assert_eq!(
            Discovery::reference().path(),
            "/hooks.runtime.cluster.x-k8s.io/v1alpha1/discovery"
        );
        assert_eq!(
            BeforeClusterUpgrade::reference().handler_path("first"),
            "/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclusterupgrade/first"
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

    #[test]
    fn a_hook_has_the_names_that_cluster_api_shows() {
        let hook = BeforeClusterUpgrade::reference();
        assert_eq!(
            hook.group_hook(),
            "BeforeClusterUpgrade.hooks.runtime.cluster.x-k8s.io"
        );
        assert_eq!(
            hook.to_string(),
            "hooks.runtime.cluster.x-k8s.io/v1alpha1, Hook=BeforeClusterUpgrade"
        );
        let newer = HookReference {
            api_version: "hooks.runtime.cluster.x-k8s.io/v1".into(),
            hook: hook.hook.clone(),
        };
        assert!(newer.is_same_hook(&hook));
        let other = HookReference {
            api_version: "hooks.example.com/v1alpha1".into(),
            hook: hook.hook.clone(),
        };
        assert!(!other.is_same_hook(&hook));
    }
}
