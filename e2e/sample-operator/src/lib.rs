//! The webhook server that the sample bundles deploy, and the stand-in for images that are not there.
//!
//! ```text
//! connection -> first byte: TLS or plain -> path -> review -> admission | conversion -> answer
//! ```

mod admission;
mod args;
mod certificate;
mod conversion;
mod review;
mod server;
mod service;

use std::{future::Future, process, sync::Arc};

use anyhow::{Context, bail};
use futures::future::BoxFuture;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use self::{
    certificate::{CertificateFiles, ServedCertificate},
    server::WebhookServer,
    service::Service,
};

pub use args::{AdmissionFault, Args, Misbehavior, SampleVersion};

/// Serves until SIGTERM or SIGINT, then lets requests in flight end.
///
/// # Errors
///
/// When a port cannot be had, or the certificate cannot be read at the start.
pub fn run(args: Args) -> BoxFuture<'static, anyhow::Result<()>> {
    // Boxed: the body is compiled here once, not again in every program that runs it.
    Box::pin(async move {
        start_logs();
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        serve(args, async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        })
        .await
    })
}

/// Serves until `stop` is ready, then lets requests in flight end.
///
/// # Errors
///
/// When a port cannot be had, or the certificate cannot be read at the start.
pub async fn serve(args: Args, stop: impl Future<Output = ()>) -> anyhow::Result<()> {
    if args.has(&Misbehavior::Crash) {
        bail!("crashing, as --fault crash asks");
    }
    let ended = CancellationToken::new();
    let _end = ended.clone().drop_guard();
    let certificate = certificate(&args, &ended)?;
    let service = Arc::new(Service::new(&args)?);
    let server = WebhookServer::new(service, certificate, args.linger);
    for port in args.listening_ports() {
        server
            .listen(args.address, port)
            .await
            .with_context(|| format!("cannot listen on {}:{port}", args.address))?;
    }
    tracing::info!(address = %args.address, ports = ?args.listening_ports(), pid = process::id(), "Serving");
    stop.await;
    tracing::info!(linger = ?args.linger, "Draining");
    server.drain().await;
    tracing::info!("Stopped");
    Ok(())
}

/// The certificate to serve. A stand-in may have none: then it speaks plain HTTP only, until there is one.
fn certificate(args: &Args, ended: &CancellationToken) -> anyhow::Result<Option<ServedCertificate>> {
    if args.has(&Misbehavior::WrongCertificate) {
        return Ok(Some(ServedCertificate::wrong()?));
    }
    if args.stand_in && args.cert_dir.is_none() {
        return Ok(None);
    }
    let files = CertificateFiles::new(&args.certificate_folder()?);
    let certificate = match ServedCertificate::load(&files) {
        Ok(certificate) => certificate,
        Err(error) if args.stand_in => {
            tracing::warn!(%error, "No certificate to serve yet");
            ServedCertificate::none()
        }
        Err(error) => return Err(error).context("cannot load the serving certificate"),
    };
    if args.reload {
        certificate.keep_fresh(files, ended.clone());
    }
    Ok(Some(certificate))
}

/// One JSON object a line on standard error. Does nothing where the process logs already.
fn start_logs() {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    let started = tracing_subscriber::fmt()
        .json()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .try_init();
    drop(started);
}
