//! Routes paths to health checks and webhooks.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use http_body_util::{BodyExt, Full};
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::CONTENT_TYPE,
};
use interpreter::webhook::server::InterpreterServer;
use runtime_hooks::{
    Catalog,
    cluster_api::{BeforeClusterCreate, BeforeClusterCreateRequest, BeforeClusterCreateResponse},
    server::{HandlerOptions, HookServer},
};

use crate::{
    args::{AdmissionFault, Args, Misbehavior},
    conversion::Converter,
    review::{self, SampleWebhook},
    workloads::{self, WORKLOADS},
};

/// The handlers of all paths.
#[derive(Debug)]
pub(crate) struct Service {
    stand_in: bool,
    faults: Vec<Misbehavior>,
    converter: Converter,
    started: Instant,
    ready_after: Duration,
    config: Option<PathBuf>,
    webhooks: [(String, SampleWebhook); 3],
    hooks: HookServer,
    interpreter: InterpreterServer,
}

/// The path prefix of runtime hooks.
const HOOKS: &str = "/hooks/";

/// The setting that the runtime hook returns as its message.
const GREETING: &str = "greeting";

impl Service {
    /// Creates the service. Fails when the variable with the mounts cannot be read.
    pub(crate) fn new(args: &Args) -> anyhow::Result<Self> {
        let converter = Converter {
            versions: args.versions.clone(),
            wrong_version: args.has(&Misbehavior::WrongVersion),
            lose_field: args.has(&Misbehavior::LoseField),
        };
        Ok(Self {
            stand_in: args.stand_in,
            faults: args.faults.clone(),
            converter,
            started: Instant::now(),
            ready_after: args.ready_after,
            config: args.config_file()?,
            webhooks: [
                (args.mutate_path.clone(), SampleWebhook::Mutate),
                (args.validate_path.clone(), SampleWebhook::Validate),
                (args.convert_path.clone(), SampleWebhook::Convert),
            ],
            hooks: hooks()?,
            interpreter: workloads::interpreter()?,
        })
    }

    /// Returns the webhook at a path.
    fn webhook_at(&self, path: &str) -> Option<SampleWebhook> {
        let webhook = self.webhooks.iter().find(|(known, _)| known == path)?;
        Some(webhook.1)
    }

    /// Handles one request. Fails only when its body cannot be received.
    pub(crate) async fn answer(
        &self,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, hyper::Error> {
        let path = request.uri().path().to_owned();
        let webhook = match (path.as_str(), request.method()) {
            ("/readyz", _) if self.faults.contains(&Misbehavior::NeverReady) => {
                return Ok(text(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "not ready, as requested by --fault never-ready",
                ));
            }
            ("/readyz", _) if self.started.elapsed() < self.ready_after => {
                return Ok(text(StatusCode::INTERNAL_SERVER_ERROR, "not ready yet"));
            }
            ("/healthz" | "/readyz", _) => return Ok(text(StatusCode::OK, "ok")),
            (_, &Method::POST) if self.stand_in => SampleWebhook::StandIn,
            // A stand-in does not know the probe paths of the operator that it replaces.
            _ if self.stand_in => return Ok(text(StatusCode::OK, "ok")),
            (WORKLOADS, _) => return Ok(self.interpreter.answer(request).await),
            (path, _) if path.starts_with(HOOKS) => return Ok(self.hooks.answer(request).await),
            (path, method) => match self.webhook_at(path) {
                Some(webhook) if method == Method::POST => webhook,
                _ => return Ok(text(StatusCode::NOT_FOUND, "no such path")),
            },
        };
        if let Some(delay) = self.delay() {
            tokio::time::sleep(delay).await;
        }
        if let Some(config) = self.config.as_ref().filter(|config| !config.exists()) {
            let missing = format!(
                "{} is missing: this release reads its configuration from it",
                config.display()
            );
            return Ok(text(StatusCode::INTERNAL_SERVER_ERROR, &missing));
        }
        if self.faults.contains(&Misbehavior::NotFound) {
            return Ok(text(
                StatusCode::NOT_FOUND,
                "no such path, as requested by --fault not-found",
            ));
        }
        if self.faults.contains(&Misbehavior::Error) {
            return Ok(text(
                StatusCode::INTERNAL_SERVER_ERROR,
                "failing, as requested by --fault error",
            ));
        }
        if matches!(webhook, SampleWebhook::Mutate | SampleWebhook::Validate)
            && let Some(fault) = self.admission_fault()
        {
            return Ok(admission_fault_response(fault).await);
        }
        if matches!(webhook, SampleWebhook::Convert) && self.faults.contains(&Misbehavior::RefuseConversion) {
            let body = request.into_body().collect().await?.to_bytes();
            let refused = review::failed_conversion(&body);
            return Ok(respond(StatusCode::OK, "application/json", refused.to_string()));
        }
        let body = request.into_body().collect().await?.to_bytes();
        Ok(match review::answer(&body, webhook, &self.converter) {
            Ok(answer) => respond(StatusCode::OK, "application/json", answer.to_string()),
            Err(error) => {
                tracing::warn!(path, %error, "Rejected a request");
                text(StatusCode::BAD_REQUEST, &error.to_string())
            }
        })
    }

    fn admission_fault(&self) -> Option<AdmissionFault> {
        self.faults.iter().find_map(|fault| match fault {
            Misbehavior::Admission(fault) => Some(*fault),
            _ => None,
        })
    }

    fn delay(&self) -> Option<Duration> {
        self.faults.iter().find_map(|fault| {
            if let Misbehavior::Slow(delay) = fault {
                Some(*delay)
            } else {
                None
            }
        })
    }
}

/// Returns a server for one runtime hook, as an example.
fn hooks() -> anyhow::Result<HookServer> {
    let server = HookServer::new(Catalog::cluster_api()).with_path_prefix(HOOKS);
    let handled = server.handle::<BeforeClusterCreate, _>(
        "sample",
        HandlerOptions::default(),
        async |request: BeforeClusterCreateRequest, _| BeforeClusterCreateResponse {
            message: request.settings.get(GREETING).cloned().unwrap_or_default(),
            ..BeforeClusterCreateResponse::default()
        },
    );
    Ok(handled?)
}

/// Returns the faulty response to an AdmissionReview; never returns for a silent fault.
async fn admission_fault_response(fault: AdmissionFault) -> Response<Full<Bytes>> {
    match fault {
        AdmissionFault::NotFound => text(
            StatusCode::NOT_FOUND,
            "no such path, as requested by --fault admission-not-found",
        ),
        AdmissionFault::Error => text(
            StatusCode::INTERNAL_SERVER_ERROR,
            "failing, as requested by --fault admission-error",
        ),
        AdmissionFault::Garbage => text(StatusCode::OK, "<html>no review</html>"),
        AdmissionFault::Silent => std::future::pending().await,
    }
}

fn text(status: StatusCode, message: &str) -> Response<Full<Bytes>> {
    respond(status, "text/plain; charset=utf-8", message.to_owned())
}

fn respond(status: StatusCode, content_type: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(
        CONTENT_TYPE,
        hyper::header::HeaderValue::from_static(content_type),
    );
    response
}
