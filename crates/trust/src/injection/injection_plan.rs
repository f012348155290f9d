//! The next write to a target.

use json_patch::{Patch, PatchOperation};
use serde_json::Value;
use thiserror::Error;
use windlass_object::{
    ObjectKey, names,
    patch::{put, release, test},
};

use super::{
    holder::{CaBundle, Holder},
    kinds::TargetKind,
    managed_elsewhere::ManagedElsewhere,
};
use crate::{pki::DnsNames, trust_bundle::TrustBundle};

/// The next write to a target.
#[derive(Clone, Debug, PartialEq)]
pub enum TargetPatch {
    /// Put the trust bundle in. Guarded: the API server answers 422 where the target has changed in between.
    Inject(Patch),
    /// Give up the ownership that the injection brought. Touches metadata only, so nothing is rebuilt.
    Release(Patch),
}

/// Why a target is left alone.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InjectionError {
    /// It is not known where the kind keeps a CA bundle.
    #[error("{0}: this kind has no caBundle field")]
    UnknownKind(
        /// Its kind, namespace and name.
        String,
    ),
    /// Somebody else writes the CA bundle.
    #[error(transparent)]
    ManagedElsewhere(#[from] ManagedElsewhere),
}

/// What is to be injected.
#[derive(Clone, Copy, Debug)]
pub struct Injection<'a> {
    /// The trust bundle, without what has expired.
    pub trust: &'a TrustBundle,
    /// The names that its CAs may sign for. What calls other servers is left alone: it could not verify them any more.
    /// `None`: every entry gets the trust bundle.
    pub names: Option<&'a DnsNames>,
}

// === impl Injection ===

impl Injection<'_> {
    /// The next step that brings `target` to carry the trust bundle; `None` where it does already, or calls nothing
    /// that could use it. A bundle of the same certificates in other bytes is left as it is: every change makes the API
    /// server rebuild what depends on it.
    ///
    /// # Errors
    ///
    /// When the target must be left alone.
    pub fn plan(&self, target: &Value) -> Result<Option<TargetPatch>, InjectionError> {
        let kind = TargetKind::of(target).ok_or_else(|| {
            let key = ObjectKey::of(target).map(|key| key.to_string());
            InjectionError::UnknownKind(key.unwrap_or_else(|| "unnamed object".into()))
        })?;
        ManagedElsewhere::check(target)?;
        let operations: Vec<_> = self
            .holders(target)
            .filter(|holder| !holder.carries(self.trust))
            .flat_map(|holder| replace(&holder, self.trust))
            .collect();
        if !operations.is_empty() {
            return Ok(Some(TargetPatch::Inject(Patch(operations))));
        }
        Ok(release_patch(kind, target).map(TargetPatch::Release))
    }

    /// Whether what a target carries is the same in both of its states, in the same places.
    pub fn is_as_before(&self, before: &Value, after: &Value) -> bool {
        let carried = |target| -> Vec<_> {
            let holders = self.holders(target);
            holders
                .map(|holder| (holder.ca_bundle(), holder.pointer))
                .collect()
        };
        carried(before) == carried(after)
    }

    /// The places of `target` that this injection is for, as they are.
    pub fn holders<'t>(&self, target: &'t Value) -> impl Iterator<Item = Holder<'t>> {
        holders(target, self.names)
    }
}

/// Whether an injection has left an ownership in `target` that is to be given up.
pub fn needs_release(target: &Value) -> bool {
    TargetKind::of(target).is_some_and(|kind| release_patch(kind, target).is_some())
}

fn release_patch(kind: &TargetKind, target: &Value) -> Option<Patch> {
    release(target, names::INJECT).filter(|_| kind.needs_release)
}

/// The places of `target` that call one of `names`, or all where there are none.
pub fn holders<'t>(target: &'t Value, names: Option<&DnsNames>) -> impl Iterator<Item = Holder<'t>> {
    TargetKind::of(target)
        .map(|kind| kind.holders(target))
        .unwrap_or_default()
        .into_iter()
        .filter(move |holder| match (names, &holder.host) {
            (Some(names), Some(host)) => names.cover(host),
            (Some(_), None) => false,
            (None, _) => true,
        })
}

/// Puts the trust bundle into one place, if that is still as it was: its name, what it calls, and what it trusts.
pub(super) fn replace(holder: &Holder<'_>, trust: &TrustBundle) -> Vec<PatchOperation> {
    let mut operations: Vec<_> = holder
        .guards
        .iter()
        .map(|(path, value)| test(path, value))
        .collect();
    let path = format!("{}/caBundle", holder.pointer);
    operations.push(put(&path, CaBundle::encode(trust).into()));
    operations
}

/// Whether two states of an object differ in nothing but the trust bundles that it carries, and in who wrote it when.
pub fn differs_in_trust_only(before: &Value, after: &Value) -> bool {
    TargetKind::of(after).is_some_and(|kind| without_trust(kind, before) == without_trust(kind, after))
}

pub(super) fn without_trust(kind: &TargetKind, target: &Value) -> Value {
    let mut rest = target.clone();
    for holder in kind.holders(target) {
        if let Some(Value::Object(fields)) = rest.pointer_mut(&holder.pointer) {
            fields.remove("caBundle");
        }
    }
    if let Some(Value::Object(metadata)) = rest.get_mut("metadata") {
        metadata.retain(|field, _| !["resourceVersion", "generation", "managedFields"].contains(&&**field));
    }
    rest
}
