//! Hooks: typed requests and responses, and their paths on servers.

use std::{collections::BTreeMap, fmt};

use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use windlass_object::rfc1123::{is_label, is_subdomain};

use crate::response::HookOutcome;

/// A hook in one version: the types of its request and response, and its metadata.
///
/// Cluster API's own are in [`cluster_api`](crate::cluster_api). Custom hooks can be defined:
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
    /// The type of the hook's requests.
    type Request: HookRequest;
    /// The type of the hook's responses.
    type Response: HookResponse;
    /// For example `hooks.runtime.cluster.x-k8s.io`.
    const GROUP: &'static str;
    /// For example `v1alpha1`.
    const VERSION: &'static str;
    /// For example `BeforeClusterCreate`.
    const NAME: &'static str;
    /// The metadata.
    const METADATA: HookMetadata = HookMetadata::new();

    /// Returns the names of the hook.
    fn reference() -> HookReference {
        HookReference {
            api_version: format!("{}/{}", Self::GROUP, Self::VERSION),
            hook: Self::NAME.to_owned(),
        }
    }
}

/// A request. In JSON it also has `kind` and `apiVersion`, which are not fields of the type.
pub trait HookRequest:
    Clone + Default + Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static
{
    /// Whether the type has a field `settings`, for the settings of the ExtensionConfig.
    const HAS_SETTINGS: bool;
}

/// A response. [`Default`] is a success without a message.
pub trait HookResponse:
    Clone + Default + Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static
{
    /// Returns the status, message and retry time.
    fn outcome(&self) -> HookOutcome;

    /// Sets the status, message and retry time, as far as the type has fields for them.
    fn set_outcome(&mut self, outcome: HookOutcome);
}

/// Settings of a handler, from the ExtensionConfig or from the caller.
pub type HookSettings = BTreeMap<String, String>;

/// Metadata of a hook (`HookMeta` of `api/runtime/catalog/catalog.go`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HookMetadata {
    /// A summary of one line.
    pub summary: &'static str,
    /// What an implementation has to know.
    pub description: &'static str,
    /// Groups for documentation.
    pub tags: &'static [&'static str],
    /// Whether a newer version should be used instead.
    pub deprecated: bool,
    /// Whether a server has one unnamed handler for the hook.
    pub singleton: bool,
    /// Whether a repeated call has no further effect; only then is a failed call retried.
    pub idempotent: bool,
}

/// The names of a hook, as in the status of an ExtensionConfig (`requestHook`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HookReference {
    /// `group/version`, for example `hooks.runtime.cluster.x-k8s.io/v1alpha1`.
    pub api_version: String,
    /// For example `BeforeClusterCreate`.
    pub hook: String,
}

/// The longest name of a hook in the status of an ExtensionConfig.
const LONGEST_NAME: usize = 256;

impl HookMetadata {
    /// Metadata of a hook that is not deprecated, not a singleton and not idempotent.
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

impl HookReference {
    /// The group in `apiVersion`; empty if there is none.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// The version in `apiVersion`.
    pub fn version(&self) -> &str {
        self.api_version
            .split_once('/')
            .map_or(&*self.api_version, |(_, version)| version)
    }

    /// The name for all versions, `<hook>.<group>`.
    pub fn group_hook(&self) -> String {
        format!("{}.{}", self.hook, self.group())
    }

    /// Reports whether both are versions of the same hook.
    pub fn is_same_hook(&self, other: &Self) -> bool {
        self.hook == other.hook && self.group() == other.group()
    }

    /// Reports whether `apiVersion` has a group and version that the API server accepts. They become part of
    /// a path.
    pub(crate) fn has_group_and_version(&self) -> bool {
        let parts = self.api_version.split_once('/');
        parts.is_some_and(|(group, version)| is_subdomain(group) && is_label(version))
    }

    /// Reports whether the name is valid for a type. It becomes part of a path.
    pub(crate) fn has_name(&self) -> bool {
        let name = self.hook.as_bytes();
        (1..=LONGEST_NAME).contains(&name.len()) && name.iter().all(u8::is_ascii_alphanumeric)
    }

    /// The path of the hook, below that of the ExtensionConfig: `/{group}/{version}/{hook}` in lower case
    /// (`GVHToPath` of `api/runtime/catalog/catalog.go`).
    pub fn path(&self) -> String {
        format!("/{}/{}", self.api_version, self.hook.to_lowercase())
    }

    /// The path of the handler `name`; [`Self::path`] for a singleton.
    pub fn handler_path(&self, name: &str) -> String {
        format!("{}/{}", self.path(), name.to_lowercase())
    }
}

impl fmt::Display for HookReference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}, Hook={}", self.api_version, self.hook)
    }
}

/// Joins paths without `.`, `..` and repeated slashes, like Go's `path.Join`.
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
    fn a_hook_has_a_path() {
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
    fn a_hook_is_displayed_as_in_cluster_api() {
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
