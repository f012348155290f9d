//! Conversion between the versions of a hook.

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

/// Converts a JSON body from one version to another.
type Step = Arc<dyn Fn(Value) -> Result<Value, DecodeError> + Send + Sync>;

/// The conversions between two versions of a hook.
#[derive(Clone)]
pub(super) struct HookConversion {
    newer: HookReference,
    older: HookReference,
    request: Step,
    response: Step,
}

/// The conversions from one version of a hook to another; empty if both are the same.
#[derive(Clone, Debug)]
pub struct ConversionPath {
    newer: HookReference,
    older: HookReference,
    steps: Vec<HookConversion>,
}

impl HookConversion {
    pub(super) fn new<Newer: Hook, Older: Hook>(
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

impl ConversionPath {
    /// Finds the shortest path from `newer` to `older`.
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

    /// Reports whether nothing has to be converted.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Converts a request of the newer version to the older.
    ///
    /// # Errors
    ///
    /// When the request is not valid in the newer version.
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

    /// Converts a response of the older version to the newer.
    ///
    /// # Errors
    ///
    /// When the response is not valid in the older version.
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
