//! Tokens: a registry names a server that issues them (Docker Registry v2 authentication via central service;
//! OAuth2).

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use url::{Url, form_urlencoded};

use super::{
    RegistryError,
    challenge::AuthChallenge,
    http_clients::host_of,
    response_body::ResponseBody,
    session::{RegistryAnswer, RegistrySession},
};
use crate::credentials::Credential;

/// The response of a token server, which uses one of two field names.
#[derive(Deserialize)]
struct TokenAnswer {
    token: Option<String>,
    access_token: Option<String>,
}

/// The maximum size of a response in bytes.
const TOKEN_BYTES: u64 = 1 << 20;

impl RegistrySession {
    /// Requests the token for a challenge with the session's credential.
    pub(super) async fn token(&self, challenge: &AuthChallenge) -> Result<SecretString, RegistryError> {
        let realm = challenge.parameters.get("realm");
        let realm = realm
            .and_then(|realm| Url::parse(realm).ok())
            .filter(Url::has_host);
        let mut url = realm.ok_or_else(|| self.unsupported("Bearer, without the URL of a token server"))?;
        let is_insecure = self
            .is_insecure(&url, "tokens")
            .map_err(|_| self.unsupported("Bearer, with tokens from a server without TLS"))?;
        let fields = self.fields(challenge);
        let mut headers = HeaderMap::new();
        let (method, body) = if let Some(Credential::IdentityToken(token)) = &self.credential {
            let form = HeaderValue::from_static("application/x-www-form-urlencoded");
            headers.insert(header::CONTENT_TYPE, form);
            (Method::POST, refresh_form(&fields, token))
        } else {
            for (name, value) in &fields {
                if *name == "scope" {
                    // Docker sends each scope separately.
                    for scope in value.split_ascii_whitespace() {
                        url.query_pairs_mut().append_pair(name, scope);
                    }
                } else {
                    url.query_pairs_mut().append_pair(name, value);
                }
            }
            if let Some(basic) = self.credential.as_ref().and_then(Credential::basic) {
                let value = HeaderValue::from_str(basic.expose_secret());
                let mut value = value.map_err(|_| self.unsupported("the password cannot be sent"))?;
                value.set_sensitive(true);
                headers.insert(header::AUTHORIZATION, value);
            }
            (Method::GET, Bytes::new())
        };
        let response = self
            .clients
            .request(is_insecure, &method, &url, headers, body)
            .await?;
        let (head, body) = response.into_parts();
        let host = host_of(&url);
        let body = ResponseBody {
            host: host.clone(),
            body,
            idle_timeout: self.options.idle_timeout,
        };
        let what = format!("a token for {}", self.image.repository);
        if head.status != StatusCode::OK {
            let answer = RegistryAnswer {
                status: head.status,
                headers: head.headers,
                body,
                url,
                is_foreign: false,
            };
            return Err(answer
                .refusal(&self.image, self.credential.is_some(), &what)
                .await);
        }
        let content = body.read(&what, TOKEN_BYTES).await?;
        let answer: Option<TokenAnswer> = serde_json::from_slice(&content).ok();
        let token = answer.and_then(|answer| answer.token.or(answer.access_token));
        let token = token.filter(|token| !token.is_empty()).map(SecretString::from);
        // Do not quote the response: it may contain a token.
        token.ok_or_else(|| RegistryError::Answer {
            host,
            what,
            problem: "something other than JSON with a token".to_owned(),
        })
    }

    fn fields(&self, challenge: &AuthChallenge) -> BTreeMap<&'static str, String> {
        let mut fields = BTreeMap::new();
        if let Some(service) = challenge.parameters.get("service") {
            fields.insert("service", service.clone());
        }
        let scope = challenge
            .parameters
            .get("scope")
            .filter(|scope| !scope.is_empty());
        let scope = scope
            .cloned()
            .unwrap_or_else(|| format!("repository:{}:{}", self.image.repository, self.actions));
        fields.insert("scope", scope);
        if let Some(Credential::Password { username, .. }) = &self.credential {
            fields.insert("account", username.clone());
        }
        fields
    }
}

fn refresh_form(fields: &BTreeMap<&'static str, String>, token: &SecretString) -> Bytes {
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.append_pair("grant_type", "refresh_token");
    form.append_pair("client_id", "oci");
    form.append_pair("refresh_token", token.expose_secret());
    form.extend_pairs(fields);
    form.finish().into()
}
