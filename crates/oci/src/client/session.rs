//! A session with one repository at one location.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use secrecy::{ExposeSecret as _, SecretString};
use url::Url;

use super::{
    RegistryError, RegistryOptions,
    challenge::AuthChallenge,
    http_clients::{HttpClients, host_of},
    response_body::ResponseBody,
};
use crate::{
    credentials::{Credential, RegistryCredentials},
    reference::{DOCKER_HUB, ImageReference},
    registries::ImageLocation,
};

/// The state of a registry during the pull or push of an image.
#[derive(Clone)]
pub(super) struct RegistrySession {
    pub(super) clients: HttpClients,
    pub(super) options: Arc<RegistryOptions>,
    /// The name of the image at this location.
    pub(super) image: ImageReference,
    /// The actions for the scope of tokens.
    pub(super) actions: &'static str,
    pub(super) credential: Option<Credential>,
    insecure: bool,
    /// The base URL of the repository.
    base: Url,
    /// Whether the use of TLS is settled: an insecure registry is tried with TLS first.
    is_tls_known: bool,
    authorization: Option<HeaderValue>,
}

pub(super) struct RegistryRequest {
    pub(super) method: Method,
    pub(super) target: RegistryTarget,
    /// Its name in errors.
    pub(super) what: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// The URL of a request.
pub(super) enum RegistryTarget {
    /// Relative to the repository.
    Path(String),
    /// A URL from the registry.
    Url(Url),
}

/// The head of a response, and its body.
pub(super) struct RegistryAnswer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: ResponseBody,
    pub(super) url: Url,
    /// Whether it comes from another server, which gets no credentials.
    pub(super) is_foreign: bool,
}

/// The maximum number of consecutive redirects.
const REDIRECTS: usize = 5;

impl RegistryRequest {
    pub(super) fn new(method: Method, path: String, what: String) -> Self {
        Self {
            method,
            target: RegistryTarget::Path(path),
            what,
            headers: HeaderMap::new(),
            body: Bytes::new(),
        }
    }
}

impl RegistrySession {
    pub(super) fn new(
        clients: HttpClients,
        options: Arc<RegistryOptions>,
        location: ImageLocation,
        credentials: &RegistryCredentials,
        actions: &'static str,
    ) -> Result<Self, RegistryError> {
        let ImageLocation { image, insecure } = location;
        let host = match image.registry.as_str() {
            DOCKER_HUB => "registry-1.docker.io",
            host => host,
        };
        let base = Url::parse(&format!("https://{host}/v2/{}/", image.repository));
        let base = base.map_err(|_| RegistryError::Connect {
            host: image.registry.clone(),
            cause: "is not a host".to_owned(),
        })?;
        Ok(Self {
            clients,
            options,
            actions,
            credential: credentials.find(&image).cloned(),
            image,
            insecure,
            base,
            is_tls_known: false,
            authorization: None,
        })
    }

    pub(super) fn host(&self) -> String {
        host_of(&self.base)
    }

    /// Sends a request, and authenticates if the registry requires it.
    pub(super) async fn send(&mut self, request: &RegistryRequest) -> Result<RegistryAnswer, RegistryError> {
        let mut is_challenged = false;
        loop {
            let answer = self.send_allowing_http(request).await?;
            let is_challenge = answer.status == StatusCode::UNAUTHORIZED && !answer.is_foreign;
            if !is_challenge || is_challenged {
                return Ok(answer);
            }
            is_challenged = true;
            self.authorize(&answer.headers).await?;
        }
    }

    /// Sends a request and returns an error for any other status than `expected`.
    pub(super) async fn expect(
        &mut self,
        request: &RegistryRequest,
        expected: &[StatusCode],
    ) -> Result<RegistryAnswer, RegistryError> {
        let answer = self.send(request).await?;
        if expected.contains(&answer.status) {
            return Ok(answer);
        }
        Err(answer
            .refusal(&self.image, self.credential.is_some(), &request.what)
            .await)
    }

    /// Sends a request with TLS; retries without TLS if the registry is insecure and has none.
    async fn send_allowing_http(
        &mut self,
        request: &RegistryRequest,
    ) -> Result<RegistryAnswer, RegistryError> {
        let answer = self.send_following_redirects(request).await;
        let is_without_tls = match &answer {
            Err(RegistryError::Connect { host, .. }) => {
                self.insecure && !self.is_tls_known && *host == self.host()
            }
            Err(_) => false,
            Ok(_) => {
                self.is_tls_known = true;
                false
            }
        };
        if !is_without_tls {
            return answer;
        }
        let with_tls = self.base.clone();
        // Both schemes require a host, so the change cannot fail.
        let _ = self.base.set_scheme("http");
        let plain = self.send_following_redirects(request).await;
        if plain.is_ok() {
            self.is_tls_known = true;
            return plain;
        }
        self.base = with_tls;
        // If no server listens, both attempts fail with the same error.
        if matches!(plain, Err(RegistryError::Connect { .. })) {
            answer
        } else {
            plain
        }
    }

    /// Sends a request and follows redirects. Other servers do not get the registry's credentials, nor does
    /// the registry itself after a redirect back.
    async fn send_following_redirects(
        &self,
        request: &RegistryRequest,
    ) -> Result<RegistryAnswer, RegistryError> {
        let mut url = match &request.target {
            RegistryTarget::Path(path) => self.resolve_location(&self.base, path, &request.what)?,
            RegistryTarget::Url(url) => url.clone(),
        };
        let mut is_foreign = url.origin() != self.base.origin();
        for _ in 0..=REDIRECTS {
            let is_insecure = self.is_insecure(&url, &request.what)?;
            let mut headers = request.headers.clone();
            if let (false, Some(authorization)) = (is_foreign, &self.authorization) {
                headers.insert(header::AUTHORIZATION, authorization.clone());
            }
            let response = self
                .clients
                .request(is_insecure, &request.method, &url, headers, request.body.clone())
                .await?;
            let (head, body) = response.into_parts();
            let may_lead_on = matches!(request.method, Method::GET | Method::HEAD)
                && matches!(head.status.as_u16(), 301 | 302 | 303 | 307 | 308);
            if may_lead_on && let Some(location) = head.headers.get(header::LOCATION) {
                url = self.resolve_location(&url, location.to_str().unwrap_or_default(), &request.what)?;
                is_foreign |= url.origin() != self.base.origin();
                continue;
            }
            let body = ResponseBody {
                host: host_of(&url),
                body,
                idle_timeout: self.options.idle_timeout,
            };
            return Ok(RegistryAnswer {
                status: head.status,
                headers: head.headers,
                body,
                url,
                is_foreign,
            });
        }
        Err(self.redirect(&request.what, "too many redirects"))
    }

    /// Resolves `location` relative to `url`.
    pub(super) fn resolve_location(
        &self,
        url: &Url,
        location: &str,
        what: &str,
    ) -> Result<Url, RegistryError> {
        let joined = url.join(location).ok().filter(Url::has_host);
        let joined = joined.ok_or_else(|| self.redirect(what, "that is not a URL"))?;
        if !joined.username().is_empty() || joined.password().is_some() {
            return Err(self.redirect(what, "the URL has a user"));
        }
        Ok(joined)
    }

    fn redirect(&self, what: &str, problem: &str) -> RegistryError {
        RegistryError::Redirect {
            host: self.host(),
            what: what.to_owned(),
            problem: problem.to_owned(),
        }
    }

    /// Reports whether to skip verification of a server; only allowed for an insecure registry.
    pub(super) fn is_insecure(&self, url: &Url, what: &str) -> Result<bool, RegistryError> {
        match url.scheme() {
            _ if self.insecure && host_of(url) == self.host() => Ok(true),
            "https" => Ok(false),
            "http" if self.insecure => Ok(true),
            _ => Err(self.redirect(what, "that is without TLS")),
        }
    }

    /// Obtains the authorization that a registry requires.
    async fn authorize(&mut self, headers: &HeaderMap) -> Result<(), RegistryError> {
        let headers = headers.get_all(header::WWW_AUTHENTICATE).iter();
        let challenges: Vec<_> = headers
            .filter_map(|header| header.to_str().ok())
            .flat_map(AuthChallenge::parse)
            .collect();
        let of = |scheme: &str| challenges.iter().find(|challenge| challenge.scheme == scheme);
        let shown: SecretString = if let Some(bearer) = of("bearer") {
            let token = match &self.credential {
                Some(Credential::RegistryToken(token)) => token.clone(),
                _ => self.token(bearer).await?,
            };
            format!("Bearer {}", token.expose_secret()).into()
        } else if of("basic").is_some() {
            match &self.credential {
                Some(credential) => credential
                    .basic()
                    .ok_or_else(|| self.unsupported("Basic, but the credentials contain only a token"))?,
                None => {
                    return Err(RegistryError::CredentialsMissing {
                        host: self.image.registry.clone(),
                        repository: self.image.repository.clone(),
                    });
                }
            }
        } else {
            return Err(self.unsupported("neither Basic nor Bearer"));
        };
        let mut authorization = HeaderValue::from_str(shown.expose_secret())
            .map_err(|_| self.unsupported("the token has characters that no header may have"))?;
        authorization.set_sensitive(true);
        self.authorization = Some(authorization);
        Ok(())
    }

    pub(super) fn unsupported(&self, problem: &str) -> RegistryError {
        RegistryError::Challenge {
            host: self.host(),
            problem: problem.to_owned(),
        }
    }
}
