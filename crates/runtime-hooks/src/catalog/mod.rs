//! The known hooks, their versions, and the conversions between versions.

mod conversion;
mod definition;
mod openapi;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde_json::Value;
use thiserror::Error;
use windlass_object::rfc1123::is_label;

use self::conversion::HookConversion;
pub use self::{conversion::ConversionPath, definition::HookDefinition};
use crate::{Hook, HookReference, cluster_api, go_json::DecodeError};

/// The hooks that a program can call or answer.
///
/// ```
/// use runtime_hooks::{Catalog, Hook, cluster_api::BeforeClusterUpgrade};
///
/// let catalog = Catalog::cluster_api();
/// let hook = catalog.get(&BeforeClusterUpgrade::reference()).unwrap();
/// assert_eq!(hook.request_kind(), "BeforeClusterUpgradeRequest");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    hooks: BTreeMap<HookReference, HookDefinition>,
    /// Keyed by [`HookReference::path`].
    paths: BTreeMap<String, HookReference>,
    conversions: Vec<HookConversion>,
}

/// Why a hook or a conversion cannot be registered.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum CatalogError {
    /// A hook with the same names is registered.
    #[error("{0} is registered already")]
    Registered(HookReference),
    /// Two hooks have the same path, in which names are in lower case.
    #[error("{0} has the same path as {1}")]
    SamePath(
        HookReference,
        /// The registered hook.
        HookReference,
    ),
    /// A conversion is only possible between versions of one hook.
    #[error("{0} and {1} are not versions of one hook")]
    NotVersions(
        /// The newer version.
        HookReference,
        /// The older version.
        HookReference,
    ),
    /// The hook is not registered.
    #[error("{0} is not registered")]
    NotRegistered(HookReference),
}

/// Why a body cannot be converted to another version of its hook.
#[derive(Debug, Error)]
#[error("cannot convert {from} to {to}: {problem}")]
pub struct VersionConversionError {
    /// The version of the body.
    pub from: HookReference,
    /// The version to convert to.
    pub to: HookReference,
    /// Why the converted body does not fit the version.
    pub problem: DecodeError,
}

impl Catalog {
    /// Creates a catalog without hooks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a catalog of all hooks of Cluster API.
    pub fn cluster_api() -> Self {
        let mut catalog = Self::new();
        for definition in cluster_api::definitions() {
            catalog.insert(definition);
        }
        catalog
    }

    fn insert(&mut self, definition: HookDefinition) {
        let reference = definition.reference().clone();
        self.paths.insert(reference.path(), reference.clone());
        self.hooks.insert(reference, definition);
    }

    /// Registers a hook.
    ///
    /// # Errors
    ///
    /// When another hook has its names or its path.
    pub fn register<H: Hook>(&mut self) -> Result<&mut Self, CatalogError> {
        let definition = HookDefinition::for_hook::<H>();
        let reference = definition.reference();
        if self.hooks.contains_key(reference) {
            return Err(CatalogError::Registered(reference.clone()));
        }
        if let Some(other) = self.paths.get(&reference.path()) {
            return Err(CatalogError::SamePath(reference.clone(), other.clone()));
        }
        self.insert(definition);
        Ok(self)
    }

    /// Registers the conversion between two versions, so that callers of `Newer` can call handlers that
    /// answer `Older`: `request` converts to the older version, `response` to the newer. Conversions are
    /// chained for versions that are further apart.
    ///
    /// # Errors
    ///
    /// When `Newer` and `Older` are not versions of one hook, or one of them is not registered.
    pub fn convert<Newer: Hook, Older: Hook>(
        &mut self,
        request: fn(Newer::Request) -> Older::Request,
        response: fn(Older::Response) -> Newer::Response,
    ) -> Result<&mut Self, CatalogError> {
        let (newer, older) = (Newer::reference(), Older::reference());
        if newer == older || !newer.is_same_hook(&older) {
            return Err(CatalogError::NotVersions(newer, older));
        }
        for hook in [&newer, &older] {
            if !self.hooks.contains_key(hook) {
                return Err(CatalogError::NotRegistered(hook.clone()));
            }
        }
        self.conversions
            .push(HookConversion::new::<Newer, Older>(request, response));
        Ok(self)
    }

    /// Returns a hook in exactly this version.
    pub fn get(&self, hook: &HookReference) -> Option<&HookDefinition> {
        self.hooks.get(hook)
    }

    /// Returns the hook of `path`, and the name of the handler if the path has one: the inverse of
    /// [`HookReference::handler_path`]. The path is matched literally, without decoding or normalization.
    ///
    /// ```
    /// let catalog = runtime_hooks::Catalog::cluster_api();
    /// let path = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/generatepatches/first";
    /// let (hook, handler) = catalog.at_path(path).unwrap();
    /// assert_eq!((&*hook.reference().hook, handler), ("GeneratePatches", Some("first")));
    /// ```
    pub fn at_path<'a>(&self, path: &'a str) -> Option<(&HookDefinition, Option<&'a str>)> {
        let at = |path: &str| self.hooks.get(self.paths.get(path)?);
        if let Some(hook) = at(path).filter(|hook| hook.metadata().singleton) {
            return Some((hook, None));
        }
        let (path, handler) = path.rsplit_once('/')?;
        let hook = at(path).filter(|hook| !hook.metadata().singleton)?;
        is_label(handler).then_some((hook, Some(handler)))
    }

    /// Returns all hooks, sorted by group, version and name.
    pub fn hooks(&self) -> impl Iterator<Item = &HookDefinition> {
        self.hooks.values()
    }

    /// Returns all hooks called `name`, of any group and version.
    pub fn named(&self, name: &str) -> impl Iterator<Item = &HookDefinition> {
        self.hooks
            .values()
            .filter(move |hook| hook.reference().hook == name)
    }

    /// Returns the conversions for a caller of `newer` to a handler of `older`; [`None`] if they are not
    /// registered.
    pub fn conversion(&self, newer: &HookReference, older: &HookReference) -> Option<ConversionPath> {
        ConversionPath::find(&self.conversions, newer, older)
    }

    /// Checks a JSON request for `hook`.
    ///
    /// # Errors
    ///
    /// When a field is invalid, or `kind` or `apiVersion` is that of another type.
    pub fn check_request(&self, hook: &HookReference, request: &Value) -> Result<(), InvalidRequestError> {
        let definition = self
            .get(hook)
            .ok_or_else(|| CatalogError::NotRegistered(hook.clone()))?;
        definition.check_request(request)
    }
}

/// Why a request is not valid for a hook.
#[derive(Debug, Error)]
pub enum InvalidRequestError {
    /// The hook is not registered.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// `kind` or `apiVersion` is that of another type.
    #[error("{field}: must be {expected:?}, not {found:?}")]
    Kind {
        /// `kind` or `apiVersion`.
        field: &'static str,
        /// The expected value.
        expected: String,
        /// The actual value.
        found: String,
    },
    /// A field is invalid.
    #[error(transparent)]
    Decode(#[from] DecodeError),
}
