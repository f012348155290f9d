//! The arguments, and what is printed.

use std::{process::ExitCode, sync::Arc, time::Duration};

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use windlass_cluster::{ApiServerClock, Clock as _, Cluster};
use windlass_doctor::{Diagnosis, DoctorCheck};

use super::{examination::Examination, text};
use crate::{
    commands::{
        cluster::{ClusterArgs, OperatorArgs, explained},
        connect::connect,
    },
    terminal::{Format, print, yaml},
};

/// Looks at a cluster and says what would go wrong: versions, rights, who reaches and trusts whom, clocks, other controllers,
/// and what would make a bad night worse. Before an install, before an upgrade, and on call.
///
/// Writes nothing: it reads, and asks the API server who may do what. It needs no rights of its own; what may not be read is
/// named. Exits 1 if there is an error, 0 if there are only warnings.
#[derive(Debug, clap::Args)]
pub(in crate::commands) struct Args {
    /// Print every check and what it looks for, and exit.
    #[arg(long, exclusive = true)]
    checks: bool,

    /// Print the roles and bindings that give what was found missing, and nothing else.
    #[arg(long, conflicts_with = "output")]
    missing_rights: bool,

    /// Have the API server call the admission webhooks of custom resources: it tries to annotate an object of each kind that they
    /// name, in a dry run.
    #[arg(long)]
    call_webhooks: bool,

    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,

    #[command(flatten)]
    cluster: ClusterArgs,

    #[command(flatten)]
    operator: OperatorArgs,
}

/// What was found, as programs get it.
#[derive(Debug, Serialize)]
struct Entry<'a> {
    windlass: &'static str,
    kubernetes: &'a str,
    /// By the clock of the API server.
    at: Timestamp,
    #[serde(flatten)]
    diagnosis: &'a Diagnosis,
    /// Roles and bindings that give what is missing.
    #[serde(skip_serializing_if = "<[Value]>::is_empty")]
    grants: &'a [Value],
}

/// How long a request may take, with all its retries: a webhook may keep the API server waiting for 30 s, and nobody waits for many.
const REQUEST: Duration = Duration::from_secs(15);

// === impl Args ===

impl Args {
    /// Looks, and prints what was found.
    ///
    /// # Errors
    ///
    /// When the cluster is not reached; what it is not allowed to read is printed.
    pub(crate) async fn run(self) -> anyhow::Result<ExitCode> {
        if self.checks {
            let lines = DoctorCheck::ALL
                .iter()
                .map(|check| format!("{} ({}): {}\n", check.name(), check.group(), check.says()));
            print!("{}", lines.collect::<String>());
            return Ok(ExitCode::SUCCESS);
        }
        let clock = Arc::new(ApiServerClock::new());
        let client = connect(self.cluster.kubeconfig()).await?;
        let cluster = Cluster::new(clock.listening(client), REQUEST);
        // Whoever does not even say its version is not reached.
        let kubernetes = cluster.kube_version().await.map_err(explained)?;
        let mut examination = Examination::new(&cluster, &clock, &self.operator.operator_namespace);
        examination.examine(&kubernetes, self.call_webhooks).await?;
        let (diagnosis, grants) = examination.into_diagnosis();
        if self.missing_rights {
            let documents: anyhow::Result<Vec<_>> = grants.iter().map(yaml::document).collect();
            print!("{}", documents?.join("---\n"));
        } else {
            let entry = Entry {
                windlass: env!("CARGO_PKG_VERSION"),
                kubernetes: &kubernetes,
                at: clock.now(),
                diagnosis: &diagnosis,
                grants: &grants,
            };
            print(self.output, &entry, || {
                text::shown(&diagnosis, &kubernetes, !grants.is_empty())
            })?;
        }
        Ok(match diagnosis.errors {
            0 => ExitCode::SUCCESS,
            _ => ExitCode::FAILURE,
        })
    }
}
