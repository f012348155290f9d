//! The HTTP endpoints.

use std::sync::Arc;

use axum::{
    Router,
    extract::State,
    response::{IntoResponse, Redirect, Response},
    routing::get,
};
use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode,
    header::{
        CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, WWW_AUTHENTICATE,
        X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
    },
};
use kube::Client;
use tracing::warn;
use windlass_cluster::{Cluster, telemetry::chain};

use crate::{
    access::{AccessDecision, PATH, PageAccess},
    bearer_token::BearerToken,
    page::CachedPage,
};

/// The state of the handlers.
struct Ui {
    access: PageAccess,
    page: CachedPage,
}

/// Nothing is loaded or executed, the page cannot be framed, and no cache stores it.
const HEADERS: [(HeaderName, &str); 6] = [
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (X_FRAME_OPTIONS, "DENY"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (CACHE_CONTROL, "no-store"),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
];

/// Makes browsers prompt for user and password; the password is the token.
const CHALLENGE: &str =
    r#"Basic realm="Windlass: any user, and a token of the cluster as the password", charset="UTF-8""#;

/// Serves the page of `cluster` at [`PATH`] to users whom the API server allows, checked with `client`; also
/// `/livez` and `/readyz`.
pub fn router(client: Client, cluster: Cluster) -> Router {
    let ui = Ui {
        access: PageAccess::new(client),
        page: CachedPage::new(cluster),
    };
    Router::new()
        .route(PATH, get(page))
        .route("/", get(async || Redirect::permanent(PATH)))
        .route("/livez", get(async || "ok"))
        .route("/readyz", get(async || "ok"))
        .with_state(Arc::new(ui))
}

async fn page(State(ui): State<Arc<Ui>>, headers: HeaderMap) -> Response {
    let mut response = ui.answer(&headers).await;
    for (name, value) in HEADERS {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    response
}

impl Ui {
    async fn answer(&self, headers: &HeaderMap) -> Response {
        let Some(token) = BearerToken::from_headers(headers) else {
            return unauthorized("a token of the cluster is required: kubectl create token ACCOUNT");
        };
        match self.access.decide(&token).await {
            Ok(AccessDecision::Allowed) => {}
            Ok(AccessDecision::Unknown) => {
                return unauthorized("the cluster does not know this token: kubectl create token ACCOUNT");
            }
            Ok(AccessDecision::Forbidden(user)) => {
                let text = format!(
                    "{user} is not allowed to get {PATH}: bind the ClusterRole windlass-ui-viewer to it"
                );
                return text_response(StatusCode::FORBIDDEN, text);
            }
            Err(error) => {
                warn!(error = chain(&error), "Cannot check who may see the page");
                return text_response(StatusCode::SERVICE_UNAVAILABLE, error.to_string());
            }
        }
        match self.page.current().await {
            Ok(page) => {
                let html = HeaderValue::from_static("text/html; charset=utf-8");
                ([(CONTENT_TYPE, html)], page.to_string()).into_response()
            }
            Err(error) => {
                warn!(error = chain(&error), "Cannot create the page");
                text_response(StatusCode::SERVICE_UNAVAILABLE, chain(&error))
            }
        }
    }
}

fn unauthorized(text: &str) -> Response {
    let mut response = text_response(StatusCode::UNAUTHORIZED, text.to_owned());
    let challenge = HeaderValue::from_static(CHALLENGE);
    response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    response
}

fn text_response(status: StatusCode, text: String) -> Response {
    (status, text + "\n").into_response()
}
