//! The ways in which a rule says what is done.

use std::fmt;

use crate::{
    api::OriginOverrider,
    engine::{Engines, RuleProgram, RuleSource},
    patch::JsonPatch,
};

/// A way in which a rule says what is done, in the order in which they are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RuleStep {
    /// What a template was rendered to.
    RenderedCue,
    /// A program in CUE.
    Cue,
    /// Expressions in CEL.
    Cel,
    /// Typed overrides.
    Origin,
    /// Operations of a JSON patch.
    Plaintext,
}

/// What a step does.
#[derive(Debug)]
pub(crate) enum StepAction {
    Program(Box<dyn RuleProgram>, InputKind),
    Origin(Vec<OriginOverrider>),
    Plaintext(JsonPatch),
}

/// What a program gets.
#[derive(Debug)]
pub(crate) enum InputKind {
    /// `data`.
    Rendered,
    /// `object`, in an update `oldObject` where a validation or the program itself asks for it, and of `request` and `namespaceObject`
    /// those that it asks for: a field of an older program may have the same name.
    Cue {
        has_old_object: bool,
        has_request: bool,
        has_namespace_object: bool,
        /// What gives the request that the program describes itself.
        processing: Option<Box<dyn RuleProgram>>,
    },
    /// What ValidatingAdmissionPolicy gives.
    Cel,
}

// === impl RuleStep ===

/// As the field of the rule is named.
impl fmt::Display for RuleStep {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::RenderedCue => "renderedCue",
            Self::Cue => "cue",
            Self::Cel => "cel",
            Self::Origin => "origin",
            Self::Plaintext => "plaintext",
        })
    }
}

// === impl InputKind ===

impl InputKind {
    /// What a program in CUE asks for by attributes: `request: _ @tag(request)`.
    pub(crate) fn from_cue(source: &str, is_validation: bool, engines: &Engines) -> Self {
        let asks_for = |name: &str| source.contains(&format!("@tag({name}"));
        Self::Cue {
            has_old_object: is_validation || asks_for("oldObject"),
            has_request: asks_for("request"),
            has_namespace_object: asks_for("namespaceObject"),
            processing: source
                .contains("processing")
                .then(|| engines.compile(RuleSource::CueProcessing(source)).ok())
                .flatten(),
        }
    }
}
