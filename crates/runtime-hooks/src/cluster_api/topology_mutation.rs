//! Hooks that adapt the templates of a ClusterClass to a Cluster.

use serde_json::Value;

use super::{
    PatchType,
    macros::{hooks, object, requests, responses},
};
use crate::{Base64Bytes, EmbeddedObject};

hooks! {
    "Topology Mutation Hook":

    /// Generates patches for the templates of a Cluster.
    GeneratePatches(GeneratePatchesRequest) -> GeneratePatchesResponse {
        summary: "Generates patches for the templates of a Cluster",
        description: "Called whenever the topology of a Cluster is computed. The same templates and variables must always result in the same patches; they are applied in the order of the response.",
    }

    /// Validates the patched templates of a Cluster.
    ValidateTopology(ValidateTopologyRequest) -> ValidateTopologyResponse {
        summary: "Validates the templates of a Cluster",
        description: "Called whenever the topology of a Cluster is computed, after all patches. The topology is not applied if a handler fails.",
    }

    /// Lists the variables that patches use.
    DiscoverVariables(DiscoverVariablesRequest) -> DiscoverVariablesResponse {
        summary: "Lists the variables that patches use",
        description: "Called whenever a ClusterClass that names the handler is reconciled. Clusters of that class may set the variables, validated by their schemas.",
    }
}

requests! {
    /// Requests patches for templates.
    pub struct GeneratePatchesRequest {
        /// Variables for all templates.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub variables: Vec<Variable>,
        /// The templates.
        pub items: Vec<GeneratePatchesRequestItem>,
    }

    /// Asks whether templates are valid.
    pub struct ValidateTopologyRequest {
        /// Variables for all templates.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub variables: Vec<Variable>,
        /// The templates.
        pub items: Vec<ValidateTopologyRequestItem>,
    }

    /// Requests the variables.
    pub struct DiscoverVariablesRequest {}
}

responses! {
    /// Patches for templates.
    pub struct GeneratePatchesResponse {
        /// The patches, in the order in which they are applied.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub items: Vec<GeneratePatchesResponseItem>,
    }

    /// The result of a validation.
    pub struct ValidateTopologyResponse {}

    /// The variables that patches use.
    pub struct DiscoverVariablesResponse {
        /// The variables, each a ClusterClassVariable: its name, whether it is required, and its schema.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub variables: Vec<EmbeddedObject>,
    }
}

object! {
    /// A template to patch.
    pub struct GeneratePatchesRequestItem {
        /// Identifies the template in the response.
        pub uid: String,
        /// The object that uses the template.
        pub holder_reference: HolderReference,
        /// The template.
        pub object: EmbeddedObject,
        /// Variables for only this template.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub variables: Vec<Variable>,
    }
}

object! {
    /// A patch of a template.
    pub struct GeneratePatchesResponseItem {
        /// Identifies the template by the UID in the request.
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
        /// The object that uses the template.
        pub holder_reference: HolderReference,
        /// The template.
        pub object: EmbeddedObject,
        /// Variables for only this template.
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
