//! What an object is to become, seen from what it is.

use std::sync::Arc;

use serde_json::Value;
use windlass_object::{ObjectKey, names, object};

use super::{
    kept_values::{AnswerError, KeptValues},
    sent_body::{SentBody, what_is_sent},
};
use crate::apply::{
    body::{marked_like, owned},
    difference::body_hash,
    field_owner::FieldOwner,
    replicas::{are_left_to_owner, are_ours, leave_to_owner},
};

/// Where the replicas of a Deployment are.
const REPLICAS: &str = "/spec/replicas";

/// What an object is to become.
pub(in crate::apply) struct ApplyGoal {
    /// What is applied where nothing is kept.
    pub(in crate::apply) body: Value,
    /// What is kept; `None` where nothing is.
    pub(in crate::apply) retained: Option<Arc<RetainedGoal>>,
}

/// What an object is to become of which something is kept.
pub(in crate::apply) struct RetainedGoal {
    body: Value,
    hash: String,
    /// The hash of the body that leaves the replicas to whoever owns them.
    hash_without_replicas: String,
    answer: Value,
    kept: KeptValues,
    /// The body, with what is answered and neither desired nor there.
    pub(in crate::apply) expected: Value,
}

// === impl ApplyGoal ===

impl ApplyGoal {
    /// Where nobody answers.
    pub(in crate::apply) fn plain(desired: &Value, owner: &FieldOwner, live: &Value) -> Self {
        Self {
            body: owned(desired, owner, live),
            retained: None,
        }
    }

    /// Where `answer` was given to `body`, which is applied of `desired` where nothing is there yet.
    ///
    /// # Errors
    ///
    /// When the answer is none.
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
        let mut answer = marked_like(&body, answer);
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
            hash_without_replicas: body_hash(&owned(desired, owner, live)),
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

// === impl RetainedGoal ===

impl RetainedGoal {
    /// Whether it is about this body.
    pub(in crate::apply) fn is_of(&self, body: &Value) -> bool {
        self.hash == body_hash(body)
    }

    /// Whether it was the last that was applied to `live`, with nothing of it to be given up.
    pub(in crate::apply) fn was_applied(&self, live: &Value) -> bool {
        let Some(hash) = object::annotation(live, names::APPLIED_HASH) else {
            return false;
        };
        let gives_up = are_left_to_owner(&self.body, live) && are_ours(live);
        hash == self.hash_without_replicas || hash == self.hash && !gives_up
    }

    /// `live`, in which every kept value is the expected one.
    pub(in crate::apply) fn hidden(&self, live: &Value) -> Value {
        self.kept.hidden(&self.expected, live)
    }

    /// What is applied to `live`, which is whole and for which this was made.
    pub(in crate::apply) fn sent(&self, live: &Value) -> SentBody {
        let mut sent = what_is_sent(&self.body, &self.answer, live);
        if are_left_to_owner(&self.body, live) {
            // They are left even where they are what is desired.
            leave_to_owner(&mut sent.body, live);
            sent.guarded |= are_ours(live);
        }
        sent
    }
}

/// Whether anybody else writes more than the status of a live object: what they write next may be kept, though it is what is desired
/// now.
fn others_write(live: &Value) -> bool {
    let mut entries = object::items(live, "/metadata/managedFields").iter();
    entries.any(|entry| {
        object::text(entry, "/manager") != Some(names::INSTALL)
            && object::text(entry, "/subresource") != Some("status")
    })
}
