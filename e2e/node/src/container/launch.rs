//! Which program a container is, and with what it starts.

use std::{
    collections::BTreeMap,
    net::Ipv4Addr,
    path::{Path, PathBuf},
};

use k8s_openapi::api::core::v1::{Container, Pod};
use kube::ResourceExt;

use super::{state::Role, task::Task};
use crate::{
    NodeOptions,
    environment::{self, Variables},
    fields::PodFields,
    log_path,
    options::Program,
    process::{Launch, LaunchError, Process},
    stand_in,
    volume::{
        WriteError,
        content::{Ingredients, Missing},
    },
};

/// Why a container cannot start yet.
#[derive(Debug, thiserror::Error)]
pub(super) enum PrepareError {
    /// Its variables cannot be made.
    #[error(transparent)]
    Variables(#[from] Missing),
    /// Its mounts cannot be made.
    #[error(transparent)]
    Mounts(#[from] WriteError),
    /// Its pod is gone.
    #[error("the pod is gone")]
    Gone,
}

/// A container that can start.
pub(super) struct Prepared {
    kind: Kind,
    pub(super) variables: Variables,
    mounts: BTreeMap<String, PathBuf>,
    arguments: Vec<String>,
    pub(super) log: PathBuf,
}

/// What a container runs as.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// A program of this machine.
    Program { program: Program, reads_variable: bool },
    /// A server in its place.
    StandIn(Program),
    /// Nothing: what it would do is taken as done.
    Done,
}

impl Prepared {
    /// Whether the container's own program is not there.
    pub(super) fn stood_in(&self) -> bool {
        !matches!(self.kind, Kind::Program { .. })
    }

    /// The mounts that must be at their mount paths.
    pub(super) fn visible_mounts(&self) -> Option<&BTreeMap<String, PathBuf>> {
        matches!(
            self.kind,
            Kind::Program {
                reads_variable: false,
                ..
            }
        )
        .then_some(&self.mounts)
    }
}

impl Task {
    /// What the container starts with, as of now.
    pub(super) fn prepared(&self) -> Result<Prepared, PrepareError> {
        let pod = self.pod().ok_or(PrepareError::Gone)?;
        let spec = pod.spec.as_ref().ok_or(PrepareError::Gone)?;
        let (namespace, options) = (pod.namespace().unwrap_or_default(), &self.context.options);
        let fields = PodFields {
            pod: &pod,
            address: Some(self.address),
            host: self.context.host,
            node: &options.name,
        };
        let tokens = BTreeMap::new();
        let ingredients = Ingredients {
            fields,
            namespace: &namespace,
            sources: &self.context.objects,
            tokens: &tokens,
        };
        let mut variables = environment::variables(&self.container, self.given(&pod), &ingredients)?;
        let expand = |text: &str| environment::expand(text, &variables);
        let mounts = self.volumes.mounts(spec, &self.container, expand)?;
        let kind = kind(&self.container, self.role, options);
        let arguments = match &kind {
            Kind::Program { program, .. } => {
                let own = self
                    .container
                    .command
                    .iter()
                    .flatten()
                    .skip(1)
                    .chain(self.container.args.iter().flatten());
                let own = own.map(|word| on_own_address(&expand(word), self.address));
                program.arguments.iter().cloned().chain(own).collect()
            }
            Kind::StandIn(program) => {
                let services = self.context.objects.services(&namespace);
                let stood_in = |other: &Container| matches!(kind_of(other, &pod, options), Kind::StandIn(_));
                let ports = stand_in::ports(&pod, &self.container.name, &services, stood_in);
                stand_in_arguments(program, &ports, stand_in::certificate_folder(&mounts))
            }
            Kind::Done => Vec::new(),
        };
        variables.insert("WINDLASS_MOUNTS".to_owned(), mounts_variable(&mounts));
        let log = log_path(
            &options.directory,
            &namespace,
            &pod.name_any(),
            &self.container.name,
        );
        Ok(Prepared {
            kind,
            variables,
            mounts,
            arguments,
            log,
        })
    }

    /// Starts the container's process; `None` where none is needed.
    pub(super) async fn start_process(&self, prepared: &Prepared) -> Result<Option<Process>, LaunchError> {
        let (Kind::Program { program, .. } | Kind::StandIn(program)) = &prepared.kind else {
            return Ok(None);
        };
        let launch = Launch {
            program: &program.path,
            arguments: prepared.arguments.clone(),
            variables: prepared.variables.clone(),
            mounts: prepared.visible_mounts(),
            log: Some(&prepared.log),
        };
        Ok(Some(self.context.launcher.start(launch).await?))
    }

    /// The variables that every container has.
    fn given(&self, pod: &Pod) -> Variables {
        let mut variables = Variables::from([
            ("HOSTNAME".to_owned(), pod.name_any()),
            ("POD_IP".to_owned(), self.address.to_string()),
        ]);
        if let Some((host, port)) = self.context.api_server() {
            variables.insert("KUBERNETES_SERVICE_HOST".to_owned(), host);
            variables.insert("KUBERNETES_SERVICE_PORT".to_owned(), port.clone());
            variables.insert("KUBERNETES_SERVICE_PORT_HTTPS".to_owned(), port);
        }
        variables
    }
}

/// An argument that has a program listen on the pod's address where it says all addresses: pods share those of the machine.
fn on_own_address(word: &str, address: Ipv4Addr) -> String {
    word.replace("0.0.0.0:", &format!("{address}:"))
}

fn kind(container: &Container, role: Role, options: &NodeOptions) -> Kind {
    match options.images.get(container.image.as_deref().unwrap_or_default()) {
        // The stand-in's own executable knows WINDLASS_MOUNTS: it needs no view of its own, which takes a while to make.
        Some(program) => {
            let reads_variable = program.path == options.stand_in.path;
            Kind::Program {
                program: program.clone(),
                reads_variable,
            }
        }
        None if role.ends() => Kind::Done,
        None => Kind::StandIn(options.stand_in.clone()),
    }
}

fn kind_of(container: &Container, pod: &Pod, options: &NodeOptions) -> Kind {
    let policy = pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref());
    kind(container, Role::of_container(policy), options)
}

fn stand_in_arguments(
    program: &Program,
    ports: &std::collections::BTreeSet<u16>,
    certificate_folder: Option<&Path>,
) -> Vec<String> {
    let mut arguments = program.arguments.clone();
    arguments.extend(ports.iter().map(|port| format!("--port={port}")));
    arguments.extend(certificate_folder.map(|folder| format!("--cert-dir={}", folder.display())));
    arguments
}

/// Where a program finds its mounts, as the variable `WINDLASS_MOUNTS` says it.
fn mounts_variable(mounts: &BTreeMap<String, PathBuf>) -> String {
    serde_json::json!(mounts).to_string()
}
