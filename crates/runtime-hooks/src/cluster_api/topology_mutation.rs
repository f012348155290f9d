//! Hooks with which the templates of a ClusterClass are made to fit a Cluster.

use serde_json::Value;

use super::{
    PatchType,
    macros::{hooks, object, requests, responses},
};
use crate::{Base64Bytes, EmbeddedObject};

hooks! {
    "Topology Mutation Hook":

    /// How the templates of a Cluster differ from those of its ClusterClass.
    GeneratePatches(GeneratePatchesRequest) -> GeneratePatchesResponse {
        summary: "How the templates of a Cluster differ from its ClusterClass",
        description: "Asked whenever the topology of a Cluster is computed. The same templates and variables must always be answered with \
                      the same patches; they are applied in the order of the answer.",
    }

    /// Whether the templates of a Cluster are as they should be.
    ValidateTopology(ValidateTopologyRequest) -> ValidateTopologyResponse {
        summary: "Whether the templates of a Cluster are valid",
        description: "Asked whenever the topology of a Cluster is computed, after all patches. A failure keeps it from being applied.",
    }

    /// Which variables patches use.
    DiscoverVariables(DiscoverVariablesRequest) -> DiscoverVariablesResponse {
        summary: "Which variables the patches use",
        description: "Asked whenever a ClusterClass that names the handler is reconciled. Clusters of it may set the variables, which \
                      must be as the schemas say.",
    }
}

requests! {
    /// Asks for the patches of templates.
    pub struct GeneratePatchesRequest {
        /// The variables of all templates.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub variables: Vec<Variable>,
        /// The templates.
        pub items: Vec<GeneratePatchesRequestItem>,
    }

    /// Asks whether templates are valid.
    pub struct ValidateTopologyRequest {
        /// The variables of all templates.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub variables: Vec<Variable>,
        /// The templates.
        pub items: Vec<ValidateTopologyRequestItem>,
    }

    /// Asks for variables.
    pub struct DiscoverVariablesRequest {}
}

responses! {
    /// The patches of templates.
    pub struct GeneratePatchesResponse {
        /// The patches, in the order in which they are applied.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub items: Vec<GeneratePatchesResponseItem>,
    }

    /// Whether templates are valid.
    pub struct ValidateTopologyResponse {}

    /// The variables that patches use.
    pub struct DiscoverVariablesResponse {
        /// Each a ClusterClassVariable: its name, whether it is required, and its schema.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub variables: Vec<EmbeddedObject>,
    }
}

object! {
    /// A template to patch.
    pub struct GeneratePatchesRequestItem {
        /// What patches of it name it by.
        pub uid: String,
        /// What uses it.
        pub holder_reference: HolderReference,
        /// The template.
        pub object: EmbeddedObject,
        /// The variables of this template alone.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub variables: Vec<Variable>,
    }
}

object! {
    /// A patch of a template.
    pub struct GeneratePatchesResponseItem {
        /// The template, by what the request names it by.
        pub uid: String,
        /// JSONPatch or JSONMergePatch.
        #[schemars(with = "String")]
        pub patch_type: PatchType,
        /// The patch.
        pub patch: Base64Bytes,
    }
}

object! {
    /// A template to validate.
    pub struct ValidateTopologyRequestItem {
        /// What uses it.
        pub holder_reference: HolderReference,
        /// The template.
        pub object: EmbeddedObject,
        /// The variables of this template alone.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub variables: Vec<Variable>,
    }
}

object! {
    /// A variable.
    pub struct Variable {
        /// Its name.
        pub name: String,
        /// Its value, of any type.
        pub value: Value,
    }
}

object! {
    /// An object that uses a template.
    pub struct HolderReference {
        /// Its group and version.
        pub api_version: String,
        /// Its kind.
        pub kind: String,
        /// Its namespace.
        pub namespace: String,
        /// Its name.
        pub name: String,
        /// The field that refers to the template.
        pub field_path: String,
    }
}
