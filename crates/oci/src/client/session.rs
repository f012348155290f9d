//! Asking about one repository at one location.

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

/// What is known of a registry while an image is pulled from it or pushed to it.
#[derive(Clone)]
pub(super) struct RegistrySession {
    pub(super) clients: HttpClients,
    pub(super) options: Arc<RegistryOptions>,
    /// The image, as it is called there.
    pub(super) image: ImageReference,
    /// What is done with it, as scopes of tokens call it.
    pub(super) actions: &'static str,
    pub(super) credential: Option<Credential>,
    insecure: bool,
    /// Where the paths of the repository begin.
    base: Url,
    /// Whether TLS is settled: an insecure registry is first asked with it.
    is_tls_known: bool,
    authorization: Option<HeaderValue>,
}

/// What a registry is asked.
pub(super) struct RegistryRequest {
    pub(super) method: Method,
    pub(super) target: RegistryTarget,
    /// What it is called in errors.
    pub(super) what: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// Where it is asked.
pub(super) enum RegistryTarget {
    /// Below the repository.
    Path(String),
    /// Where the registry says.
    Url(Url),
}

/// The head of an answer, with what follows.
pub(super) struct RegistryAnswer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: ResponseBody,
    pub(super) url: Url,
    /// Whether it comes from another server, which is shown no credentials.
    pub(super) is_foreign: bool,
}

/// How many redirects are followed, one after the other.
const REDIRECTS: usize = 5;

// === impl RegistryRequest ===

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

// === impl RegistrySession ===

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

    /// Who is asked.
    pub(super) fn host(&self) -> String {
        host_of(&self.base)
    }

    /// Asks, and shows what the registry wants to be shown.
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

    /// Asks, and expects one of some statuses.
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

    /// Asks with TLS, and an insecure registry that has none without.
    async fn send_allowing_http(&mut self, request: &RegistryRequest) -> Result<RegistryAnswer, RegistryError> {
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
        // Both schemes have a host, so that one may take the other's place.
        let _ = self.base.set_scheme("http");
        let plain = self.send_following_redirects(request).await;
        if plain.is_ok() {
            self.is_tls_known = true;
            return plain;
        }
        self.base = with_tls;
        // Where nobody listens, both fail alike.
        if matches!(plain, Err(RegistryError::Connect { .. })) {
            answer
        } else {
            plain
        }
    }

    /// Asks, and follows where the answer leads. Who is not the registry is not shown what is for the registry, nor is it
    /// after that, should it lead back.
    async fn send_following_redirects(&self, request: &RegistryRequest) -> Result<RegistryAnswer, RegistryError> {
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
        Err(self.redirect(&request.what, "it leads on and on"))
    }

    /// Where `location` leads from `url`.
    pub(super) fn resolve_location(&self, url: &Url, location: &str, what: &str) -> Result<Url, RegistryError> {
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

    /// Whether a server is asked without knowing who it is; only of a registry that may be asked so.
    pub(super) fn is_insecure(&self, url: &Url, what: &str) -> Result<bool, RegistryError> {
        match url.scheme() {
            _ if self.insecure && host_of(url) == self.host() => Ok(true),
            "https" => Ok(false),
            "http" if self.insecure => Ok(true),
            _ => Err(self.redirect(what, "that is without TLS")),
        }
    }

    /// Gets what a registry wants to be shown.
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
                    .ok_or_else(|| self.unsupported("Basic, and the credentials have a token alone"))?,
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
