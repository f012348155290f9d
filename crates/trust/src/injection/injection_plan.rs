//! What is written into a target.

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
    kinds::{TargetKind, TargetKinds},
    managed_elsewhere::ManagedElsewhere,
    place::Encoding,
    reach::Reach,
};
use crate::trust_bundle::TrustBundle;

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

/// What is to be injected: made once, and planned for as many targets as there are.
#[derive(Debug)]
pub struct Injection {
    trust: TrustBundle,
    /// The value of a field of text.
    pem: String,
    /// The value of a field of bytes.
    base64: String,
    reach: Reach,
    /// What was found last that differs from it, and whether clients find the trust bundle in it: most targets carry the same.
    differing: Mutex<Option<(String, bool)>>,
}

// === impl Injection ===

impl Injection {
    /// Of a trust bundle without what has expired, for the places in its reach.
    pub fn new(trust: TrustBundle, reach: Reach) -> Self {
        Self {
            pem: trust.to_pem(),
            base64: CaBundle::encode(&trust),
            trust,
            reach,
            differing: Mutex::default(),
        }
    }

    /// The patch that brings `target` to carry the trust bundle; `None` where it does already, or calls nothing that could
    /// use it. A bundle of the same certificates in other bytes is left as it is: every change makes the API server rebuild
    /// what depends on it. The patch is guarded: the API server answers 422 where the target has changed in between.
    ///
    /// # Errors
    ///
    /// When the target must be left alone.
    pub fn plan(&self, target: &Value) -> Result<Option<Patch>, InjectionError> {
        let lacking = self.lacking(target)?;
        let operations: Vec<_> = lacking.iter().flat_map(|holder| self.replace(holder)).collect();
        Ok((!operations.is_empty()).then_some(Patch(operations)))
    }

    /// Whether there is something to [plan](Self::plan) for `target`.
    ///
    /// # Errors
    ///
    /// When the target must be left alone.
    pub fn is_needed(&self, target: &Value) -> Result<bool, InjectionError> {
        Ok(!self.lacking(target)?.is_empty())
    }

    /// The places of `target` that lack the trust bundle.
    fn lacking<'t>(&'t self, target: &'t Value) -> Result<Vec<Holder<'t>>, InjectionError> {
        if self.reach.kinds().of(target).is_none() {
            let key = ObjectKey::of(target).map(|key| key.to_string());
            return Err(InjectionError::UnknownKind(
                key.unwrap_or_else(|| "unnamed object".into()),
            ));
        }
        ManagedElsewhere::check(target, self.reach.kinds())?;
        let holders = self.holders(target);
        Ok(holders.filter(|holder| !self.is_in(holder)).collect())
    }

    fn is_in(&self, holder: &Holder<'_>) -> bool {
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

    /// What is written into a place.
    fn value(&self, holder: &Holder<'_>) -> &str {
        match holder.place.encoding {
            Encoding::Base64 => &self.base64,
            Encoding::Pem => &self.pem,
        }
    }

    /// Puts the trust bundle into one place, if that is still as it was: its name, what it calls, and what it trusts.
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

    /// Whether both are for the same places.
    pub fn is_for_the_same_as(&self, other: &Self) -> bool {
        self.reach == other.reach
    }

    /// Whether what a target carries is the same in both of its states, in the same places.
    pub fn is_as_before(&self, before: &Value, after: &Value) -> bool {
        let is_same = |(before, after): (Holder<'_>, Holder<'_>)| {
            before.pointer == after.pointer && before.carries_the_same_as(&after)
        };
        let (before, after): (Vec<_>, Vec<_>) =
            (self.holders(before).collect(), self.holders(after).collect());
        before.len() == after.len() && before.into_iter().zip(after).all(is_same)
    }

    /// The places of `target` that this injection is for, as they are.
    pub fn holders<'t>(&'t self, target: &'t Value) -> impl Iterator<Item = Holder<'t>> {
        self.reach.holders(target)
    }
}

impl Eq for Injection {}

impl PartialEq for Injection {
    fn eq(&self, other: &Self) -> bool {
        (&self.base64, &self.reach) == (&other.base64, &other.reach)
    }
}

/// Whether two states of an object differ in nothing but the trust bundles that it carries, and in who wrote it when.
pub fn differs_in_trust_only(before: &Value, after: &Value, kinds: &TargetKinds) -> bool {
    let kind = kinds.of(after);
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
