//! The arguments and the output of `windlass doctor`.

use std::{process::ExitCode, sync::Arc, time::Duration};

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use windlass_cluster::{ApiServerClock, Clock as _, Cluster};
use windlass_doctor::{Diagnosis, DoctorCheck};

use super::{examination::Examination, text};
use crate::{
    commands::{
        cluster::{ClusterArgs, OperatorArgs, explain_error},
        connect::connect,
    },
    terminal::{Format, print, yaml},
};

const AFTER_HELP: &str =
    "Checks versions, rights, reachability, trust, clocks and other controllers, before an install, before
an upgrade, or on call. It needs no rights; what the user may not read is reported. Exits 1 if there
is an error, 0 if there are only warnings.";

/// Checks a cluster and reports what fails or will fail, without writing anything.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(in crate::commands) struct Args {
    /// Print every check and its purpose, and exit.
    #[arg(long, exclusive = true)]
    checks: bool,

    /// Print only roles and bindings that grant missing rights.
    #[arg(long, conflicts_with = "output")]
    missing_rights: bool,

    /// Make the API server call admission webhooks in dry runs.
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

/// The findings, for structured output.
#[derive(Debug, Serialize)]
struct Entry<'a> {
    windlass: &'static str,
    kubernetes: &'a str,
    /// The time of the API server's clock.
    at: Timestamp,
    #[serde(flatten)]
    diagnosis: &'a Diagnosis,
    /// Roles and bindings that grant the missing rights.
    #[serde(skip_serializing_if = "<[Value]>::is_empty")]
    grants: &'a [Value],
}

/// Timeout of a request, including all retries: longer than the 30 s for which a webhook may delay the API
/// server.
const REQUEST: Duration = Duration::from_secs(15);

impl Args {
    /// Checks the cluster, and prints the findings.
    ///
    /// # Errors
    ///
    /// When the cluster cannot be reached; objects that the user may not read are findings.
    pub(crate) async fn run(self) -> anyhow::Result<ExitCode> {
        if self.checks {
            let lines = DoctorCheck::ALL
                .iter()
                .map(|check| format!("{} ({}): {}\n", check.name(), check.group(), check.description()));
            print!("{}", lines.collect::<String>());
            return Ok(ExitCode::SUCCESS);
        }
        let clock = Arc::new(ApiServerClock::new());
        let client = connect(self.cluster.kubeconfig()).await?;
        let cluster = Cluster::new(clock.observe_responses(client), REQUEST);
        // An API server that does not report its version cannot be reached.
        let kubernetes = cluster.kube_version().await.map_err(explain_error)?;
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
                text::format_diagnosis(&diagnosis, &kubernetes, !grants.is_empty())
            })?;
        }
        Ok(match diagnosis.errors {
            0 => ExitCode::SUCCESS,
            _ => ExitCode::FAILURE,
        })
    }
}
