//! The steps of a rule.

use std::fmt;

use crate::{
    api::OriginOverrider,
    engine::{Engines, RuleProgram, RuleSource},
    patch::JsonPatch,
};

/// The form of a step, in the order of evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RuleStep {
    /// A rendered template.
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

/// The compiled form of a step.
#[derive(Debug)]
pub(crate) enum StepAction {
    Program(Box<dyn RuleProgram>, InputKind),
    Origin(Vec<OriginOverrider>),
    Plaintext(JsonPatch),
}

/// The inputs of a program.
#[derive(Debug)]
pub(crate) enum InputKind {
    /// `data`.
    Rendered,
    /// `object`; `oldObject` in updates if a validation or the program itself declares it; `request` and
    /// `namespaceObject` if the program declares them, since older programs may have fields of these names.
    Cue {
        has_old_object: bool,
        has_request: bool,
        has_namespace_object: bool,
        /// The inputs of the program that describes a request.
        processing: Option<Box<dyn RuleProgram>>,
    },
    /// The variables of ValidatingAdmissionPolicy.
    Cel,
}

/// The name of the rule's field.
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

impl InputKind {
    /// Detects the inputs that a CUE program declares by attributes: `request: _ @tag(request)`.
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
