//! The patch that writes a trust bundle into a target.

use json_patch::{Patch, PatchOperation};
use parking_lot::Mutex;
use serde_json::{Value, json};
use thiserror::Error;
use windlass_object::{
    ObjectKey,
    patch::{put, test},
};

use super::{
    holder::{CaBundle, Holder},
    injection_scope::InjectionScope,
    kinds::{TargetKind, TargetKinds},
    managed_elsewhere::ManagedElsewhere,
    place::Encoding,
};
use crate::trust_bundle::TrustBundle;

/// Why a target is not written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InjectionError {
    /// The fields of this kind that hold a CA bundle are unknown.
    #[error("{0}: this kind has no caBundle field")]
    UnknownKind(
        /// Kind, namespace and name of the object.
        String,
    ),
    /// Another controller writes the CA bundle.
    #[error(transparent)]
    ManagedElsewhere(#[from] ManagedElsewhere),
}

/// A trust bundle and the places to write it to. One value serves any number of targets.
#[derive(Debug)]
pub struct Injection {
    trust: TrustBundle,
    /// The value for text fields.
    pem: String,
    /// The value for base64 fields.
    base64: String,
    scope: InjectionScope,
    /// The last differing value and whether clients read the trust bundle from it. Most targets have the same
    /// value.
    differing: Mutex<Option<(String, bool)>>,
}

impl Injection {
    /// Creates an injection of `trust`, which must have no expired certificates, into the places in `scope`.
    pub fn new(trust: TrustBundle, scope: InjectionScope) -> Self {
        Self {
            pem: trust.to_pem(),
            base64: CaBundle::encode(&trust),
            trust,
            scope,
            differing: Mutex::default(),
        }
    }

    /// Returns the patch that writes the trust bundle into `target`. Returns `None` if `target` has it
    /// already, or calls no server that the bundle verifies. A bundle with the same certificates in another
    /// encoding is not rewritten: each change makes the API server rebuild what depends on it. The patch is
    /// guarded: the API server answers 422 if the target has changed.
    ///
    /// # Errors
    ///
    /// If the target must not be written.
    pub fn plan(&self, target: &Value) -> Result<Option<Patch>, InjectionError> {
        let lacking = self.places_without_trust(target)?;
        let operations: Vec<_> = lacking.iter().flat_map(|holder| self.replace(holder)).collect();
        Ok((!operations.is_empty()).then_some(Patch(operations)))
    }

    /// Reports whether [`plan`](Self::plan) would return a patch for `target`.
    ///
    /// # Errors
    ///
    /// If the target must not be written.
    pub fn is_needed(&self, target: &Value) -> Result<bool, InjectionError> {
        Ok(!self.places_without_trust(target)?.is_empty())
    }

    /// Returns the places of `target` without the trust bundle.
    fn places_without_trust<'t>(&'t self, target: &'t Value) -> Result<Vec<Holder<'t>>, InjectionError> {
        if self.scope.kinds().kind_of(target).is_none() {
            let key = ObjectKey::from_object(target).map(|key| key.to_string());
            return Err(InjectionError::UnknownKind(
                key.unwrap_or_else(|| "unnamed object".into()),
            ));
        }
        ManagedElsewhere::check(target, self.scope.kinds())?;
        let holders = self.holders(target);
        Ok(holders.filter(|holder| !self.has_trust_bundle(holder)).collect())
    }

    fn has_trust_bundle(&self, holder: &Holder<'_>) -> bool {
        let Some(text) = holder.text() else { return false };
        if text == self.value(holder) {
            return true;
        }
        let mut differing = self.differing.lock();
        match &*differing {
            Some((known, is_in)) if known == text => *is_in,
            _ => {
                let is_in = holder.carries(&self.trust);
                *differing = Some((text.to_owned(), is_in));
                is_in
            }
        }
    }

    /// Returns the encoded trust bundle for a place.
    fn value(&self, holder: &Holder<'_>) -> &str {
        match holder.place.encoding {
            Encoding::Base64 => &self.base64,
            Encoding::Pem => &self.pem,
        }
    }

    /// Writes the trust bundle to one place, provided that its name, its server and its CA bundle are
    /// unchanged.
    fn replace(&self, holder: &Holder<'_>) -> Vec<PatchOperation> {
        let guards = holder.guards.iter();
        let mut operations: Vec<_> = guards.map(|(path, value)| test(path, value)).collect();
        let value = self.value(holder);
        operations.push(match holder.is_absent() {
            true => put(&holder.pointer, json!({ &*holder.place.field: value })),
            false => put(&holder.field(), value.into()),
        });
        operations
    }

    /// Reports whether both have the same scope.
    pub fn has_same_scope(&self, other: &Self) -> bool {
        self.scope == other.scope
    }

    /// Reports whether both states of a target have the same CA bundles in the same places.
    pub fn has_same_bundles(&self, before: &Value, after: &Value) -> bool {
        let is_same = |(before, after): (Holder<'_>, Holder<'_>)| {
            before.pointer == after.pointer && before.has_same_bundle_as(&after)
        };
        let (before, after): (Vec<_>, Vec<_>) =
            (self.holders(before).collect(), self.holders(after).collect());
        before.len() == after.len() && before.into_iter().zip(after).all(is_same)
    }

    /// Returns the places of `target` in the scope of this injection.
    pub fn holders<'t>(&'t self, target: &'t Value) -> impl Iterator<Item = Holder<'t>> {
        self.scope.holders(target)
    }
}

impl Eq for Injection {}

impl PartialEq for Injection {
    fn eq(&self, other: &Self) -> bool {
        (&self.base64, &self.scope) == (&other.base64, &other.scope)
    }
}

/// Reports whether two states of an object differ only in their CA bundles and in the metadata of the write.
pub fn differs_in_trust_only(before: &Value, after: &Value, kinds: &TargetKinds) -> bool {
    let kind = kinds.kind_of(after);
    kind.is_some_and(|kind| without_trust(kind, before) == without_trust(kind, after))
}

fn without_trust(kind: &TargetKind, target: &Value) -> Value {
    let mut rest = target.clone();
    for holder in kind.holders(target) {
        if let Some(Value::Object(fields)) = rest.pointer_mut(&holder.pointer) {
            fields.remove(&*holder.place.field);
        }
    }
    if let Some(Value::Object(metadata)) = rest.get_mut("metadata") {
        metadata.retain(|field, _| !["resourceVersion", "generation", "managedFields"].contains(&&**field));
    }
    rest
}
