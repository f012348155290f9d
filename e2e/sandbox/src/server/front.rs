//! The HTTP front: HTTPS on loopback, client certificates and bearer tokens.

use std::{convert::Infallible, net::SocketAddr, sync::Arc};

use futures::StreamExt;
use http::{HeaderMap, HeaderValue, Request, Response, header};
use http_body_util::{BodyExt, Full, Limited, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    body::{Bytes, Frame, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::pki_types::CertificateDer;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use x509_parser::{certificate::X509Certificate, prelude::FromDer};

use super::{
    api_server::ApiServer,
    authentication::User,
    call::{Call, Reply, decode},
};
use crate::StatusError;

/// The largest request body in bytes, as on the real server.
const MAXIMUM_BODY: usize = 3 << 20;

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Accepts connections until it is cancelled.
pub(crate) async fn serve(
    server: ApiServer,
    listener: TcpListener,
    tls: Arc<rustls::ServerConfig>,
    stop: CancellationToken,
) {
    let acceptor = TlsAcceptor::from(tls);
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        // Errors of a failed handshake are reported to the client only.
        let Ok((stream, _)) = accepted else { continue };
        let connection = connection(server.clone(), acceptor.clone(), stream);
        let stop = stop.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = connection => {}
            }
        });
    }
}

async fn connection(server: ApiServer, acceptor: TlsAcceptor, stream: TcpStream) {
    // Small responses must not wait for acknowledgements of earlier ones.
    let _ = stream.set_nodelay(true);
    let Ok(stream) = acceptor.accept(stream).await else {
        return;
    };
    let certificate = stream
        .get_ref()
        .1
        .peer_certificates()
        .and_then(|chain| chain.first())
        .and_then(subject);
    let service = service_fn(move |request| {
        let server = server.clone();
        let certificate = certificate.clone();
        async move { Ok::<_, Infallible>(respond(&server, certificate, request).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .keep_alive(true)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::trace!(%error, "connection ended");
    }
}

/// Returns the user of a client certificate: the common name, with the organizations as groups.
fn subject(certificate: &CertificateDer<'_>) -> Option<User> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let subject = certificate.subject();
    let name = subject.iter_common_name().next()?.as_str().ok()?.to_owned();
    let groups = subject
        .iter_organization()
        .filter_map(|group| group.as_str().ok())
        .map(str::to_owned)
        .collect();
    Some(User { name, groups })
}

async fn respond(
    server: &ApiServer,
    certificate: Option<User>,
    request: Request<Incoming>,
) -> Response<Body> {
    let answered = match call(server, certificate, request).await {
        Ok(call) => server.handle(call).await,
        Err(error) => Err(error),
    };
    match answered {
        Ok(reply) => reply_response(reply),
        Err(error) => error_response(&error),
    }
}

async fn call(
    server: &ApiServer,
    certificate: Option<User>,
    request: Request<Incoming>,
) -> Result<Call, StatusError> {
    let (parts, body) = request.into_parts();
    let user = match (bearer(&parts.headers), certificate) {
        (_, Some(user)) => user,
        (Some(token), None) => server
            .user_by_token(token)
            .ok_or_else(|| StatusError::new(401, "Unauthorized", "Unauthorized"))?,
        (None, None) => User::anonymous(),
    };
    let text = |name: header::HeaderName| {
        let values: Vec<&str> = parts
            .headers
            .get_all(name)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .collect();
        values.join(",")
    };
    let body = Limited::new(body, MAXIMUM_BODY)
        .collect()
        .await
        .map_err(|error| {
            let limit = format!("limit is {MAXIMUM_BODY}");
            match error.downcast_ref::<http_body_util::LengthLimitError>() {
                Some(_) => StatusError::new(
                    413,
                    "RequestEntityTooLarge",
                    format!("Request entity too large: {limit}"),
                ),
                None => StatusError::bad_request(format!("the body could not be read: {error}")),
            }
        })?;
    let content_type = text(header::CONTENT_TYPE);
    let agent = text(header::USER_AGENT);
    let query = parts.uri.query().unwrap_or_default();
    let pairs = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decode(&name.replace('+', " ")), decode(&value.replace('+', " ")))
    });
    Ok(Call {
        user,
        method: parts.method,
        path: parts.uri.path().to_owned(),
        query: pairs.collect(),
        content_type: content_type
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_owned(),
        accept: text(header::ACCEPT),
        user_agent: agent.split('/').next().unwrap_or_default().to_owned(),
        body: body.to_bytes().to_vec(),
    })
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    headers
        .get(header::AUTHORIZATION)?
        .to_str()
        .ok()?
        .strip_prefix("Bearer ")
}

fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).boxed_unsync()
}

fn reply_response(reply: Reply) -> Response<Body> {
    let code = reply.code();
    let (content_type, warnings, body) = match reply {
        Reply::Json { body, warnings, .. } => (media_type(&body), warnings, full(body.to_string())),
        Reply::Text(text) => ("text/plain; charset=utf-8", Vec::new(), full(text)),
        Reply::Watch(events) => {
            let lines = events.map(|event| {
                let mut line = event.to_string();
                line.push('\n');
                Ok(Frame::data(Bytes::from(line)))
            });
            (
                "application/json",
                Vec::new(),
                StreamBody::new(lines).boxed_unsync(),
            )
        }
    };
    let mut response = Response::new(body);
    *response.status_mut() = http::StatusCode::from_u16(code).unwrap_or(http::StatusCode::OK);
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    for warning in warnings {
        let text = format!("299 - \"{}\"", warning.replace('\\', "\\\\").replace('"', "\\\""));
        if let Ok(value) = HeaderValue::from_str(&text) {
            response.headers_mut().append(header::WARNING, value);
        }
    }
    response
}

/// Clients distinguish aggregated from plain discovery by the media type alone.
fn media_type(body: &Value) -> &'static str {
    match (body["kind"].as_str(), body["apiVersion"].as_str()) {
        (Some("APIGroupDiscoveryList"), Some("apidiscovery.k8s.io/v2")) => {
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        }
        (Some("APIGroupDiscoveryList"), _) => {
            "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
        }
        _ => "application/json",
    }
}

fn error_response(error: &StatusError) -> Response<Body> {
    let mut response = reply_response(Reply::Json {
        code: error.code,
        body: error.to_status(),
        warnings: Vec::new(),
    });
    if let Some(seconds) = error.retry_after {
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// Binds a loopback port; 0 selects a free one.
pub(crate) async fn bind(port: u16) -> std::io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}
