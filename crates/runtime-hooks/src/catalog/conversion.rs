//! From one version of a hook to another.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    sync::Arc,
};

use serde_json::Value;

use super::VersionConversionError;
use crate::{
    Hook, HookReference,
    go_json::{self, DecodeError},
};

/// Changes a body, which is JSON of one version, to JSON of another.
type Step = Arc<dyn Fn(Value) -> Result<Value, DecodeError> + Send + Sync>;

/// One step between two versions of a hook.
#[derive(Clone)]
pub(super) struct HookConversion {
    newer: HookReference,
    older: HookReference,
    request: Step,
    response: Step,
}

/// The steps from one version of a hook to another, none where they are one.
#[derive(Clone, Debug)]
pub struct ConversionPath {
    newer: HookReference,
    older: HookReference,
    steps: Vec<HookConversion>,
}

// === impl HookConversion ===

impl HookConversion {
    pub(super) fn of<Newer: Hook, Older: Hook>(
        request: fn(Newer::Request) -> Older::Request,
        response: fn(Older::Response) -> Newer::Response,
    ) -> Self {
        let written = |written: serde_json::Result<Value>| written.map_err(DecodeError::Syntax);
        Self {
            newer: Newer::reference(),
            older: Older::reference(),
            request: Arc::new(move |body| written(serde_json::to_value(request(go_json::read_value(body)?)))),
            response: Arc::new(move |body| {
                written(serde_json::to_value(response(go_json::read_value(body)?)))
            }),
        }
    }
}

impl fmt::Debug for HookConversion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} -> {}", self.newer, self.older)
    }
}

// === impl ConversionPath ===

impl ConversionPath {
    /// The fewest steps from `newer` to `older`.
    pub(super) fn find(
        conversions: &[HookConversion],
        newer: &HookReference,
        older: &HookReference,
    ) -> Option<Self> {
        if newer == older {
            return Some(Self {
                newer: newer.clone(),
                older: older.clone(),
                steps: Vec::new(),
            });
        }
        let mut reached: BTreeMap<&HookReference, Vec<HookConversion>> =
            BTreeMap::from([(newer, Vec::new())]);
        let mut next = VecDeque::from([newer]);
        while let Some(version) = next.pop_front() {
            let steps = reached.get(version).cloned().unwrap_or_default();
            if version == older {
                return Some(Self {
                    newer: newer.clone(),
                    older: older.clone(),
                    steps,
                });
            }
            for step in conversions.iter().filter(|step| &step.newer == version) {
                if !reached.contains_key(&step.older) {
                    let steps = steps.iter().cloned().chain([step.clone()]).collect();
                    reached.insert(&step.older, steps);
                    next.push_back(&step.older);
                }
            }
        }
        None
    }

    /// Whether nothing has to be converted.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// A request of the newer version as one of the older.
    ///
    /// # Errors
    ///
    /// When it is not one of the newer version.
    pub fn request(&self, request: Value) -> Result<Value, VersionConversionError> {
        let steps = self.steps.iter();
        let mut converted = steps.map(|step| &step.request);
        converted
            .try_fold(request, |request, step| step(request))
            .map_err(|problem| VersionConversionError {
                from: self.newer.clone(),
                to: self.older.clone(),
                problem,
            })
    }

    /// A response of the older version as one of the newer.
    ///
    /// # Errors
    ///
    /// When it is not one of the older version.
    pub fn response(&self, response: Value) -> Result<Value, VersionConversionError> {
        let steps = self.steps.iter().rev();
        let mut converted = steps.map(|step| &step.response);
        converted
            .try_fold(response, |response, step| step(response))
            .map_err(|problem| VersionConversionError {
                from: self.older.clone(),
                to: self.newer.clone(),
                problem,
            })
    }
}
