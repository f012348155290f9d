//! The goal of applying an object, derived from its live state.

use std::sync::Arc;

use serde_json::Value;
use windlass_object::{ObjectKey, names, object};

use super::{
    kept_values::{AnswerError, KeptValues},
    sent_body::{SentBody, body_to_send},
};
use crate::apply::{
    body::{owned_body, with_marks_of},
    difference::body_hash,
    field_owner::FieldOwner,
    replicas::{are_left_to_owner, are_owned_by_windlass, leave_to_owner},
};

/// The path of a Deployment's replicas.
const REPLICAS: &str = "/spec/replicas";

/// The goal of an object.
pub(in crate::apply) struct ApplyGoal {
    /// The body without retained values.
    pub(in crate::apply) body: Value,
    /// The goal with retained values; `None` if there are none.
    pub(in crate::apply) retained: Option<Arc<RetainedGoal>>,
}

/// The goal of an object with retained values.
pub(in crate::apply) struct RetainedGoal {
    body: Value,
    hash: String,
    /// The hash of the body without replicas that another manager owns.
    hash_without_replicas: String,
    answer: Value,
    kept: KeptValues,
    /// The body, plus values of the answer that are neither desired nor live.
    pub(in crate::apply) expected: Value,
}

impl ApplyGoal {
    /// Creates a goal without retention.
    pub(in crate::apply) fn plain(desired: &Value, owner: &FieldOwner, live: &Value) -> Self {
        Self {
            body: owned_body(desired, owner, live),
            retained: None,
        }
    }

    /// Creates a goal from an `answer` to `body`, the body for `desired` if the object does not exist.
    ///
    /// # Errors
    ///
    /// When the answer is invalid.
    pub(in crate::apply) fn answered(
        body: Value,
        answer: Value,
        desired: &Value,
        owner: &FieldOwner,
        live: &Value,
    ) -> Result<Self, AnswerError> {
        let (asked, answered) = (ObjectKey::from_object(&body), ObjectKey::from_object(&answer));
        if answered != asked {
            let answered = answered.map_or_else(|| "one without a name".to_owned(), |key| key.to_string());
            return Err(AnswerError::AnotherObject(answered));
        }
        let mut answer = with_marks_of(&body, answer);
        let is_left = are_left_to_owner(&body, live);
        if is_left
            && let (Some(answered), Some(kept)) = (answer.pointer_mut(REPLICAS), live.pointer(REPLICAS))
        {
            *answered = kept.clone();
        }
        if answer == body && !is_left && !others_write(live) {
            return Ok(Self::plain(desired, owner, live));
        }
        let found = KeptValues::find(&body, &answer, live)?;
        let retained = RetainedGoal {
            hash: body_hash(&body),
            hash_without_replicas: body_hash(&owned_body(desired, owner, live)),
            answer,
            kept: found.kept,
            expected: found.expected.unwrap_or_default(),
            body: body.clone(),
        };
        Ok(Self {
            body,
            retained: Some(Arc::new(retained)),
        })
    }
}

impl RetainedGoal {
    /// Reports whether the goal is for this body.
    pub(in crate::apply) fn is_for(&self, body: &Value) -> bool {
        self.hash == body_hash(body)
    }

    /// Reports whether the goal was the last one applied to `live`, with no ownership left to give up.
    pub(in crate::apply) fn was_applied(&self, live: &Value) -> bool {
        let Some(hash) = object::annotation(live, names::APPLIED_HASH) else {
            return false;
        };
        let gives_up = are_left_to_owner(&self.body, live) && are_owned_by_windlass(live);
        hash == self.hash_without_replicas || hash == self.hash && !gives_up
    }

    /// Returns `live` with every retained value replaced by the expected one.
    pub(in crate::apply) fn masked(&self, live: &Value) -> Value {
        self.kept.masked(&self.expected, live)
    }

    /// Returns the body to apply to `live`, the complete object that the goal was computed for.
    pub(in crate::apply) fn sent(&self, live: &Value) -> SentBody {
        let mut sent = body_to_send(&self.body, &self.answer, live);
        if are_left_to_owner(&self.body, live) {
            // Replicas of another manager are left out even if they equal the desired ones.
            leave_to_owner(&mut sent.body, live);
            sent.guarded |= are_owned_by_windlass(live);
        }
        sent
    }
}

/// Reports whether other managers write more than the status of a live object: their next value may have to
/// be retained, although the current one equals the desired one.
fn others_write(live: &Value) -> bool {
    let mut entries = object::items(live, "/metadata/managedFields").iter();
    entries.any(|entry| {
        object::text(entry, "/manager") != Some(names::INSTALL)
            && object::text(entry, "/subresource") != Some("status")
    })
}
