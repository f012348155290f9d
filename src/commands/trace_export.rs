//! Flags that say where traces are sent.

use std::{convert::Infallible, path::PathBuf};

use anyhow::Context as _;
use clap::Args;
use windlass_cluster::telemetry::traces::{CollectorUrl, TraceOptions};

/// Where traces are sent.
#[derive(Clone, Debug, Default, Args)]
pub struct TraceExport {
    /// Collector to send traces of rotations and installs to, by OTLP over HTTP, for example http://collector:4318; by default
    /// nowhere. $OTEL_EXPORTER_OTLP_HEADERS, $OTEL_SERVICE_NAME, $OTEL_RESOURCE_ATTRIBUTES and $OTEL_TRACES_SAMPLER say more.
    #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT", value_name = "URL")]
    pub otlp_endpoint: Option<String>,
    /// File with certificates (PEM) by which the collector is trusted, in the place of those of the system.
    #[arg(long, env = "OTEL_EXPORTER_OTLP_CERTIFICATE", value_name = "FILE", value_parser = path)]
    pub otlp_ca: Option<PathBuf>,
}

// === impl TraceExport ===

impl TraceExport {
    /// How traces are sent; `None` where they are not.
    ///
    /// # Errors
    ///
    /// When the URL is none of a collector, or the file cannot be read.
    pub fn options(&self) -> anyhow::Result<Option<TraceOptions>> {
        // A variable that is empty is not set, as OpenTelemetry has it.
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

/// A path that may be empty, as a variable may.
fn path(text: &str) -> Result<PathBuf, Infallible> {
    Ok(text.into())
}
