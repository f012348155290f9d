//! Flags for the export of traces.

use std::{convert::Infallible, path::PathBuf};

use anyhow::Context as _;
use clap::Args;
use windlass_cluster::telemetry::traces::{CollectorUrl, TraceOptions};

/// Export of traces.
#[derive(Clone, Debug, Default, Args)]
pub struct TraceExport {
    /// OTLP/HTTP collector [default: none].
    #[arg(
        long,
        env = "OTEL_EXPORTER_OTLP_ENDPOINT",
        value_name = "URL",
        help_heading = "Logs and traces"
    )]
    pub otlp_endpoint: Option<String>,
    /// CA certificates (PEM) of the collector, instead of the system's.
    #[arg(long, env = "OTEL_EXPORTER_OTLP_CERTIFICATE", value_name = "FILE", value_parser = path, help_heading = "Logs and traces")]
    pub otlp_ca: Option<PathBuf>,
}

impl TraceExport {
    /// Returns the options of the export; `None` if it is off.
    ///
    /// # Errors
    ///
    /// When the URL is invalid, or the file cannot be read.
    pub fn options(&self) -> anyhow::Result<Option<TraceOptions>> {
        // As in OpenTelemetry, an empty variable counts as unset.
        let ca = self.otlp_ca.as_ref().filter(|path| !path.as_os_str().is_empty());
        let Some(url) = self.otlp_endpoint.as_deref().filter(|url| !url.is_empty()) else {
            return Ok(None);
        };
        let collector: CollectorUrl = url.parse().context("--otlp-endpoint")?;
        let ca = ca.map(|path| {
            std::fs::read(path).with_context(|| format!("cannot read --otlp-ca {}", path.display()))
        });
        Ok(Some(TraceOptions {
            collector,
            ca: ca.transpose()?,
        }))
    }
}

/// Parses a path, which is empty if its variable is.
fn path(text: &str) -> Result<PathBuf, Infallible> {
    Ok(text.into())
}
