//! Hooks with which machines are changed without being replaced.

use super::{
    Patch, is_default,
    macros::{hooks, object, requests, responses, retry_responses},
};
use crate::EmbeddedObject;

hooks! {
    "In-Place Update Hooks":

    /// Which changes of a Machine need no other one.
    CanUpdateMachine(CanUpdateMachineRequest) -> CanUpdateMachineResponse {
        summary: "Which changes of a Machine can be made in place",
        description: "Asked while an update is planned. The patches lead from the current objects to what the handler can do; where they do \
                      not lead to the desired ones, the Machine is replaced. Only specs count.",
    }

    /// Which changes of a MachineSet need no other Machines.
    CanUpdateMachineSet(CanUpdateMachineSetRequest) -> CanUpdateMachineSetResponse {
        summary: "Which changes of a MachineSet can be made in place",
        description: "Asked while an update is planned. The patches lead from the current objects to what the handler can do; where they do \
                      not lead to the desired ones, the Machines are replaced. Only the specs of templates count.",
    }

    /// Changes a Machine in place.
    UpdateMachine(UpdateMachineRequest) -> UpdateMachineResponse {
        summary: "Changes a Machine in place",
        description: "Asked again and again until the handler fails or has nothing more to do. It begins the update only where it has not \
                      begun.",
    }
}

requests! {
    /// Asks which changes of a Machine can be made in place.
    #[schemars(extend("required" = ["current", "desired"]))]
    pub struct CanUpdateMachineRequest {
        /// As it is.
        #[serde(skip_serializing_if = "is_default")]
        pub current: MachineObjects,
        /// As it should be.
        #[serde(skip_serializing_if = "is_default")]
        pub desired: MachineObjects,
    }

    /// Asks which changes of a MachineSet can be made in place.
    #[schemars(extend("required" = ["current", "desired"]))]
    pub struct CanUpdateMachineSetRequest {
        /// As it is.
        #[serde(skip_serializing_if = "is_default")]
        pub current: MachineSetObjects,
        /// As it should be.
        #[serde(skip_serializing_if = "is_default")]
        pub desired: MachineSetObjects,
    }

    /// Asks for a Machine to be changed in place.
    #[schemars(extend("required" = ["desired"]))]
    pub struct UpdateMachineRequest {
        /// As it should be.
        #[serde(skip_serializing_if = "is_default")]
        pub desired: MachineObjects,
    }
}

responses! {
    /// Which changes of a Machine can be made in place. A patch that says nothing: none.
    pub struct CanUpdateMachineResponse {
        /// Those of the Machine.
        #[serde(skip_serializing_if = "is_default")]
        pub machine_patch: Patch,
        /// Those of the machine of its infrastructure.
        #[serde(skip_serializing_if = "is_default")]
        pub infrastructure_machine_patch: Patch,
        /// Those of its bootstrap config.
        #[serde(skip_serializing_if = "is_default")]
        pub bootstrap_config_patch: Patch,
    }

    /// Which changes of a MachineSet can be made in place. A patch that says nothing: none.
    pub struct CanUpdateMachineSetResponse {
        /// Those of the MachineSet.
        #[serde(skip_serializing_if = "is_default")]
        pub machine_set_patch: Patch,
        /// Those of the template of its infrastructure.
        #[serde(skip_serializing_if = "is_default")]
        pub infrastructure_machine_template_patch: Patch,
        /// Those of the template of its bootstrap configs.
        #[serde(skip_serializing_if = "is_default")]
        pub bootstrap_config_template_patch: Patch,
    }
}

retry_responses! {
    /// How far the update of a Machine is: under way where there is a time to ask again, else done.
    pub struct UpdateMachineResponse;
}

object! {
    /// A Machine and what it refers to (`CanUpdateMachineRequestObjects` and `UpdateMachineRequestObjects`).
    #[schemars(extend("required" = ["machine", "infrastructureMachine"]))]
    pub struct MachineObjects {
        /// The Machine.
        #[serde(skip_serializing_if = "is_default")]
        pub machine: EmbeddedObject,
        /// The machine of its infrastructure.
        #[serde(skip_serializing_if = "is_default")]
        pub infrastructure_machine: EmbeddedObject,
        /// Its bootstrap config, where it has one.
        #[serde(skip_serializing_if = "is_default")]
        pub bootstrap_config: EmbeddedObject,
    }
}

object! {
    /// A MachineSet and what it refers to (`CanUpdateMachineSetRequestObjects`).
    #[schemars(extend("required" = ["machineSet", "infrastructureMachineTemplate"]))]
    pub struct MachineSetObjects {
        /// The MachineSet.
        #[serde(skip_serializing_if = "is_default")]
        pub machine_set: EmbeddedObject,
        /// The template of its infrastructure.
        #[serde(skip_serializing_if = "is_default")]
        pub infrastructure_machine_template: EmbeddedObject,
        /// The template of its bootstrap configs, where it has one.
        #[serde(skip_serializing_if = "is_default")]
        pub bootstrap_config_template: EmbeddedObject,
    }
}
