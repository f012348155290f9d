//! Which hooks there are, in which versions, and how one version becomes another.

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

/// The hooks that a program knows.
///
/// ```
/// use runtime_hooks::{Catalog, Hook, cluster_api::BeforeClusterUpgrade};
///
/// let catalog = Catalog::of_cluster_api();
/// let hook = catalog.get(&BeforeClusterUpgrade::reference()).unwrap();
/// assert_eq!(hook.request_kind(), "BeforeClusterUpgradeRequest");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    hooks: BTreeMap<HookReference, HookDefinition>,
    /// By [`HookReference::path`].
    paths: BTreeMap<String, HookReference>,
    conversions: Vec<HookConversion>,
}

/// Why a hook or a conversion is not taken.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum CatalogError {
    /// Another type is known by the same names.
    #[error("{0} is registered already")]
    Registered(
        /// The hook.
        HookReference,
    ),
    /// Two hooks would be answered at one path, in which names are in lower case.
    #[error("{0} would be answered where {1} is")]
    SamePath(
        /// The hook.
        HookReference,
        /// The one that is registered.
        HookReference,
    ),
    /// Versions of one hook are converted, not hooks.
    #[error("{0} and {1} are not versions of one hook")]
    NotVersions(
        /// The newer one.
        HookReference,
        /// The older one.
        HookReference,
    ),
    /// Nobody knows the hook.
    #[error("{0} is not registered")]
    NotRegistered(
        /// The hook.
        HookReference,
    ),
}

/// Why a body cannot be converted to another version of its hook.
#[derive(Debug, Error)]
#[error("cannot convert {from} to {to}: {problem}")]
pub struct VersionConversionError {
    /// What the body is of.
    pub from: HookReference,
    /// What it was to become.
    pub to: HookReference,
    /// What is wrong with it.
    pub problem: DecodeError,
}

// === impl Catalog ===

impl Catalog {
    /// Without any hook.
    pub fn new() -> Self {
        Self::default()
    }

    /// With all of Cluster API's own hooks.
    pub fn of_cluster_api() -> Self {
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

    /// Takes a hook in.
    ///
    /// # Errors
    ///
    /// When its names, or its path, are another's.
    pub fn register<H: Hook>(&mut self) -> Result<&mut Self, CatalogError> {
        let definition = HookDefinition::of::<H>();
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

    /// Says how handlers that answer `Older` are called by those who know `Newer`: a request goes down, its response comes up.
    /// Versions further apart are reached step by step.
    ///
    /// # Errors
    ///
    /// When they are not two versions of one hook, or one of them is not registered.
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
            .push(HookConversion::of::<Newer, Older>(request, response));
        Ok(self)
    }

    /// A hook in exactly this version.
    pub fn get(&self, hook: &HookReference) -> Option<&HookDefinition> {
        self.hooks.get(hook)
    }

    /// The hook that a server answers at `path`, and the name of its handler where it has one: the other way round from
    /// [`HookReference::handler_path`]. Nothing is decoded or tidied: what is written otherwise is not found.
    ///
    /// ```
    /// let catalog = runtime_hooks::Catalog::of_cluster_api();
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

    /// All hooks, by group, version and name.
    pub fn hooks(&self) -> impl Iterator<Item = &HookDefinition> {
        self.hooks.values()
    }

    /// All versions of the hook `name`, whatever its group.
    pub fn named(&self, name: &str) -> impl Iterator<Item = &HookDefinition> {
        self.hooks
            .values()
            .filter(move |hook| hook.reference().hook == name)
    }

    /// How somebody who speaks `newer` calls a handler that speaks `older`; [`None`] where nobody has said how.
    pub fn conversion(&self, newer: &HookReference, older: &HookReference) -> Option<ConversionPath> {
        ConversionPath::find(&self.conversions, newer, older)
    }

    /// What is wrong with a request as JSON, read as `hook` would.
    ///
    /// # Errors
    ///
    /// When a field is not as it must be, or `kind` or `apiVersion` is another's.
    pub fn check_request(&self, hook: &HookReference, request: &Value) -> Result<(), InvalidRequestError> {
        let definition = self
            .get(hook)
            .ok_or_else(|| CatalogError::NotRegistered(hook.clone()))?;
        definition.check_request(request)
    }
}

/// Why a request is not one of a hook.
#[derive(Debug, Error)]
pub enum InvalidRequestError {
    /// Nobody knows the hook.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// It says that it is something else.
    #[error("{field}: must be {expected:?}, not {found:?}")]
    Kind {
        /// `kind` or `apiVersion`.
        field: &'static str,
        /// What it must be.
        expected: String,
        /// What it is.
        found: String,
    },
    /// A field is not as it must be.
    #[error(transparent)]
    Decode(#[from] DecodeError),
}
