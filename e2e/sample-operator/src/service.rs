//! Paths: health, and webhooks.

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
    review::{self, Duty},
    workloads::{self, WORKLOADS},
};

/// What is answered at which path.
#[derive(Debug)]
pub(crate) struct Service {
    stand_in: bool,
    faults: Vec<Misbehavior>,
    converter: Converter,
    started: Instant,
    ready_after: Duration,
    config: Option<PathBuf>,
    webhooks: [(String, Duty); 3],
    hooks: HookServer,
    interpreter: InterpreterServer,
}

/// Below which runtime hooks are answered.
const HOOKS: &str = "/hooks/";

/// The setting whose value the handler of runtime hooks says.
const GREETING: &str = "greeting";

// === impl Service ===

impl Service {
    /// A service as the command line wants it. Fails when the variable that names the mounts cannot be read.
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
                (args.mutate_path.clone(), Duty::Mutate),
                (args.validate_path.clone(), Duty::Validate),
                (args.convert_path.clone(), Duty::Convert),
            ],
            hooks: hooks()?,
            interpreter: workloads::interpreter()?,
        })
    }

    /// What the path of a webhook is for.
    fn duty(&self, path: &str) -> Option<Duty> {
        let webhook = self.webhooks.iter().find(|(known, _)| known == path)?;
        Some(webhook.1)
    }

    /// Answers one request. Fails only when its body cannot be received.
    pub(crate) async fn answer(
        &self,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, hyper::Error> {
        let path = request.uri().path().to_owned();
        let duty = match (path.as_str(), request.method()) {
            ("/readyz", _) if self.faults.contains(&Misbehavior::NeverReady) => {
                return Ok(text(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "not ready, as --fault never-ready asks",
                ));
            }
            ("/readyz", _) if self.started.elapsed() < self.ready_after => {
                return Ok(text(StatusCode::INTERNAL_SERVER_ERROR, "not ready yet"));
            }
            ("/healthz" | "/readyz", _) => return Ok(text(StatusCode::OK, "ok")),
            (_, &Method::POST) if self.stand_in => Duty::StandIn,
            // A probe of the operator that is stood in for may ask for any path.
            _ if self.stand_in => return Ok(text(StatusCode::OK, "ok")),
            (WORKLOADS, _) => return Ok(self.interpreter.answer(request).await),
            (path, _) if path.starts_with(HOOKS) => return Ok(self.hooks.answer(request).await),
            (path, method) => match self.duty(path) {
                Some(duty) if method == Method::POST => duty,
                _ => return Ok(text(StatusCode::NOT_FOUND, "no such path")),
            },
        };
        if let Some(delay) = self.delay() {
            tokio::time::sleep(delay).await;
        }
        if let Some(config) = self.config.as_ref().filter(|config| !config.exists()) {
            let missing = format!("{} is gone, which this release reads", config.display());
            return Ok(text(StatusCode::INTERNAL_SERVER_ERROR, &missing));
        }
        if self.faults.contains(&Misbehavior::NotFound) {
            return Ok(text(
                StatusCode::NOT_FOUND,
                "no such path, as --fault not-found asks",
            ));
        }
        if self.faults.contains(&Misbehavior::Error) {
            return Ok(text(
                StatusCode::INTERNAL_SERVER_ERROR,
                "failing, as --fault error asks",
            ));
        }
        if matches!(duty, Duty::Mutate | Duty::Validate)
            && let Some(fault) = self.admission_fault()
        {
            return Ok(misjudged(fault).await);
        }
        if matches!(duty, Duty::Convert) && self.faults.contains(&Misbehavior::RefuseConversion) {
            let body = request.into_body().collect().await?.to_bytes();
            let refused = review::refuse_to_convert(&body);
            return Ok(respond(StatusCode::OK, "application/json", refused.to_string()));
        }
        let body = request.into_body().collect().await?.to_bytes();
        Ok(match review::answer(&body, duty, &self.converter) {
            Ok(answer) => respond(StatusCode::OK, "application/json", answer.to_string()),
            Err(error) => {
                tracing::warn!(path, %error, "Refused a request");
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

/// The runtime hooks that are answered: one, for an example.
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

/// What is answered instead of an AdmissionReview, if anything.
async fn misjudged(fault: AdmissionFault) -> Response<Full<Bytes>> {
    match fault {
        AdmissionFault::NotFound => text(
            StatusCode::NOT_FOUND,
            "no such path, as --fault admission-not-found asks",
        ),
        AdmissionFault::Error => text(
            StatusCode::INTERNAL_SERVER_ERROR,
            "failing, as --fault admission-error asks",
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
