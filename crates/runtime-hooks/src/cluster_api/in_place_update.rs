//! Hooks that update machines in place instead of replacing them.

use super::{
    Patch, is_default,
    macros::{hooks, object, requests, responses, retry_responses},
};
use crate::EmbeddedObject;

hooks! {
    "In-Place Update Hooks":

    /// Determines which changes of a Machine can be made in place.
    CanUpdateMachine(CanUpdateMachineRequest) -> CanUpdateMachineResponse {
        summary: "Determines which changes of a Machine can be made in place",
        description: "Called while an update is planned. The patches change the current objects to what the handler can update; if the result differs from the desired objects, the Machine is replaced. Only specs are compared.",
    }

    /// Determines which changes of a MachineSet can be made in place.
    CanUpdateMachineSet(CanUpdateMachineSetRequest) -> CanUpdateMachineSetResponse {
        summary: "Determines which changes of a MachineSet can be made in place",
        description: "Called while an update is planned. The patches change the current objects to what the handler can update; if the result differs from the desired objects, the Machines are replaced. Only the specs of templates are compared.",
    }

    /// Updates a Machine in place.
    UpdateMachine(UpdateMachineRequest) -> UpdateMachineResponse {
        summary: "Updates a Machine in place",
        description: "Called repeatedly until the handler fails or has nothing left to do. The handler starts the update only if it is not already running.",
    }
}

requests! {
    /// Asks which changes of a Machine can be made in place.
    #[schemars(extend("required" = ["current", "desired"]))]
    pub struct CanUpdateMachineRequest {
        /// The current objects.
        #[serde(skip_serializing_if = "is_default")]
        pub current: MachineObjects,
        /// The desired objects.
        #[serde(skip_serializing_if = "is_default")]
        pub desired: MachineObjects,
    }

    /// Asks which changes of a MachineSet can be made in place.
    #[schemars(extend("required" = ["current", "desired"]))]
    pub struct CanUpdateMachineSetRequest {
        /// The current objects.
        #[serde(skip_serializing_if = "is_default")]
        pub current: MachineSetObjects,
        /// The desired objects.
        #[serde(skip_serializing_if = "is_default")]
        pub desired: MachineSetObjects,
    }

    /// Requests an in-place update of a Machine.
    #[schemars(extend("required" = ["desired"]))]
    pub struct UpdateMachineRequest {
        /// The desired objects.
        #[serde(skip_serializing_if = "is_default")]
        pub desired: MachineObjects,
    }
}

responses! {
    /// The changes of a Machine that can be made in place. An empty patch means none.
    pub struct CanUpdateMachineResponse {
        /// Patch of the Machine.
        #[serde(skip_serializing_if = "is_default")]
        pub machine_patch: Patch,
        /// Patch of the infrastructure machine.
        #[serde(skip_serializing_if = "is_default")]
        pub infrastructure_machine_patch: Patch,
        /// Patch of the bootstrap config.
        #[serde(skip_serializing_if = "is_default")]
        pub bootstrap_config_patch: Patch,
    }

    /// The changes of a MachineSet that can be made in place. An empty patch means none.
    pub struct CanUpdateMachineSetResponse {
        /// Patch of the MachineSet.
        #[serde(skip_serializing_if = "is_default")]
        pub machine_set_patch: Patch,
        /// Patch of the infrastructure machine template.
        #[serde(skip_serializing_if = "is_default")]
        pub infrastructure_machine_template_patch: Patch,
        /// Patch of the bootstrap config template.
        #[serde(skip_serializing_if = "is_default")]
        pub bootstrap_config_template_patch: Patch,
    }
}

retry_responses! {
    /// The progress of a Machine's update: running if there is a retry time, else finished.
    pub struct UpdateMachineResponse;
}

object! {
    /// A Machine and the objects that it references (`CanUpdateMachineRequestObjects` and
    /// `UpdateMachineRequestObjects`).
    #[schemars(extend("required" = ["machine", "infrastructureMachine"]))]
    pub struct MachineObjects {
        /// The Machine.
        #[serde(skip_serializing_if = "is_default")]
        pub machine: EmbeddedObject,
        /// The infrastructure machine.
        #[serde(skip_serializing_if = "is_default")]
        pub infrastructure_machine: EmbeddedObject,
        /// The bootstrap config, if there is one.
        #[serde(skip_serializing_if = "is_default")]
        pub bootstrap_config: EmbeddedObject,
    }
}

object! {
    /// A MachineSet and the objects that it references (`CanUpdateMachineSetRequestObjects`).
    #[schemars(extend("required" = ["machineSet", "infrastructureMachineTemplate"]))]
    pub struct MachineSetObjects {
        /// The MachineSet.
        #[serde(skip_serializing_if = "is_default")]
        pub machine_set: EmbeddedObject,
        /// The infrastructure machine template.
        #[serde(skip_serializing_if = "is_default")]
        pub infrastructure_machine_template: EmbeddedObject,
        /// The bootstrap config template, if there is one.
        #[serde(skip_serializing_if = "is_default")]
        pub bootstrap_config_template: EmbeddedObject,
    }
}
