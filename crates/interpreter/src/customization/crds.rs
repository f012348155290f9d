//! The CustomResourceDefinitions of both kinds.

use serde_json::{Value, json};
use windlass_object::custom_resource::{ResourceScope, column, crd, schema};

use super::{
    INTERPRETATION_API_VERSION, KARMADA_API_VERSION, ResourceInterpretationSpec,
    ResourceInterpreterCustomizationSpec,
};

/// Returns the CustomResourceDefinitions of ResourceInterpreterCustomization, for clusters without Karmada's
/// own, and of ResourceInterpretation.
pub fn crds() -> Vec<Value> {
    vec![
        crd(
            KARMADA_API_VERSION,
            ResourceScope::Cluster,
            &json!({
                "kind": "ResourceInterpreterCustomization",
                "listKind": "ResourceInterpreterCustomizationList",
                "plural": "resourceinterpretercustomizations",
                "singular": "resourceinterpretercustomization",
                "shortNames": ["ric"],
                "categories": ["karmada-io"],
            }),
            &[
                column("TARGET-API-VERSION", ".spec.target.apiVersion"),
                column("TARGET-KIND", ".spec.target.kind"),
            ],
            "ResourceInterpreterCustomization defines how objects of one kind are interpreted.",
            vec![("spec", schema::<ResourceInterpreterCustomizationSpec>())],
        ),
        crd(
            INTERPRETATION_API_VERSION,
            ResourceScope::Cluster,
            &json!({
                "kind": "ResourceInterpretation",
                "listKind": "ResourceInterpretationList",
                "plural": "resourceinterpretations",
                "singular": "resourceinterpretation",
            }),
            &[
                column("Target", ".spec.targets[*].kind"),
                column("Mode", ".spec.mode"),
            ],
            "ResourceInterpretation defines how objects of several kinds, or single objects, are interpreted.",
            vec![("spec", schema::<ResourceInterpretationSpec>())],
        ),
    ]
}
