//! Credentials for servers: tokens and passwords, from policies and from Secrets. They are cached in memory
//! only.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderValue, Method, Uri, header};
use jiff::{SignedDuration, Timestamp};
use moka::sync::Cache;
use policy::api::{HttpAuth, SecretReference};
use serde_json::Value;
use tokio::sync::Mutex;
use windlass_cluster::{Clock, Cluster, kinds};
use windlass_object::{GoDuration, object};

use super::{
    allowed_hosts::AllowedHosts,
    reference_client::{ReferenceClient, ServerCall},
};

/// Fetches tokens, and caches them while they are valid.
pub(super) struct ReferenceTokens {
    cluster: Cluster,
    clock: Arc<dyn Clock>,
    fetched: Cache<HttpAuth, Arc<Mutex<Option<FetchedToken>>>>,
}

/// A token from authUrl.
#[derive(Clone)]
struct FetchedToken {
    value: String,
    /// Hash of the user name and password with which the token was fetched.
    credentials: u64,
    renewal: Timestamp,
    end: Timestamp,
}

/// The credentials of a request.
pub(super) enum ServerCredentials {
    Bearer(String),
    Basic(String, String),
}

/// The lifetime of a token if neither the answer nor the policy states one, as in kinitiras.
const LIFETIME: SignedDuration = SignedDuration::from_mins(5);

/// The longest time that a token is cached.
const LONGEST_LIFETIME: SignedDuration = SignedDuration::from_hours(24);

/// The most cached tokens.
const TOKENS: u64 = 1024;

/// How long an unused token is cached.
const IDLE: Duration = Duration::from_secs(3600);

impl ReferenceTokens {
    pub(super) fn new(cluster: Cluster, clock: Arc<dyn Clock>) -> Self {
        Self {
            cluster,
            clock,
            fetched: Cache::builder().max_capacity(TOKENS).time_to_idle(IDLE).build(),
        }
    }

    /// Returns the credentials of a request. Errors name missing fields, never values.
    pub(super) async fn credentials(
        &self,
        auth: &HttpAuth,
        client: &ReferenceClient,
        hosts: &AllowedHosts,
    ) -> Result<ServerCredentials, String> {
        let (token, username, password) = match &auth.secret_ref {
            Some(secret) => self.read_secret(secret).await?,
            None => (
                auth.static_token.clone(),
                auth.username.clone(),
                auth.password.clone(),
            ),
        };
        if !token.is_empty() {
            return Ok(ServerCredentials::Bearer(token));
        }
        if auth.auth_url.is_empty() {
            return Ok(ServerCredentials::Basic(username, password));
        }
        let slot = self.fetched.get_with(auth.clone(), Arc::default);
        // Concurrent requests wait for the same token.
        let mut cached = slot.lock().await;
        let now = self.clock.now();
        let credentials = digest(&username, &password);
        if let Some(token) = cached.as_ref().filter(|token| token.credentials == credentials)
            && now < token.renewal
        {
            return Ok(ServerCredentials::Bearer(token.value.clone()));
        }
        match fetch_token(auth, (username, password), client, hosts).await {
            Ok(answer) => {
                let token = FetchedToken::parse(&answer, auth, credentials, self.clock.now())?;
                let value = token.value.clone();
                *cached = Some(token);
                Ok(ServerCredentials::Bearer(value))
            }
            Err(error) => {
                let still = cached.as_ref();
                let still = still.filter(|token| token.credentials == credentials && now < token.end);
                let still = still.map(|token| ServerCredentials::Bearer(token.value.clone()));
                still.ok_or(error)
            }
        }
    }

    /// Drops a token that the server rejected. Returns whether the next request can fetch another one.
    pub(super) async fn invalidate(&self, auth: &HttpAuth, refused: &ServerCredentials) -> bool {
        let (Some(slot), ServerCredentials::Bearer(refused)) = (self.fetched.get(auth), refused) else {
            return false;
        };
        let mut cached = slot.lock().await;
        cached.take_if(|token| token.value == *refused);
        true
    }

    /// Reads the token, the user name and the password of a Secret.
    async fn read_secret(&self, reference: &SecretReference) -> Result<(String, String, String), String> {
        let SecretReference { name, namespace } = reference;
        let key = kinds::SECRET.object(Some(namespace), name);
        let secret = self.cluster.read(&key).await.map_err(|error| error.to_string())?;
        let secret = secret.ok_or_else(|| format!("Secret {namespace}/{name} not found"))?;
        let text = |field: &str| {
            let encoded = object::text(&secret, &format!("/data/{field}")).unwrap_or_default();
            let decoded = STANDARD
                .decode(encoded)
                .ok()
                .and_then(|bytes| String::from_utf8(bytes).ok());
            decoded
                .unwrap_or_default()
                .trim_end_matches(['\r', '\n'])
                .to_owned()
        };
        let (token, username, password) = (text("token"), text("username"), text("password"));
        if token.is_empty() && (username.is_empty() || password.is_empty()) {
            return Err(format!(
                "Secret {namespace}/{name} must have token, or username and password"
            ));
        }
        Ok((token, username, password))
    }
}

/// Hashes a user name and password.
fn digest(username: &str, password: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (username, password).hash(&mut hasher);
    hasher.finish()
}

async fn fetch_token(
    auth: &HttpAuth,
    (username, password): (String, String),
    client: &ReferenceClient,
    hosts: &AllowedHosts,
) -> Result<Value, String> {
    let failed = |error: String| format!("auth.authUrl gives no token: {error}");
    hosts.check(&auth.auth_url).map_err(failed)?;
    let uri: Uri = auth
        .auth_url
        .parse()
        .map_err(|_| failed("it is not a URL".into()))?;
    let mut headers = HeaderMap::new();
    ServerCredentials::Basic(username, password)
        .add(&mut headers)
        .map_err(failed)?;
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    let call = ServerCall {
        method: Method::POST,
        uri,
        headers,
        body: bytes::Bytes::new(),
    };
    let answer = client
        .send(call)
        .await
        .map_err(|error| failed(error.to_string()))?;
    serde_json::from_slice(&answer).map_err(|_| failed("the answer is not JSON".into()))
}

impl FetchedToken {
    /// Parses the answer of authUrl: `{"token": …, "expireAt": milliseconds}`.
    fn parse(answer: &Value, auth: &HttpAuth, credentials: u64, now: Timestamp) -> Result<Self, String> {
        let value = object::text(answer, "/token").filter(|token| !token.is_empty());
        let value = value.ok_or("auth.authUrl gives no token: the answer has none")?;
        let expiry = answer.get("expireAt").and_then(|end| match end {
            Value::String(text) => text.parse().ok(),
            end => end.as_i64(),
        });
        let expiry = expiry
            .filter(|end| *end > 0)
            .and_then(|end| Timestamp::from_millisecond(end).ok());
        let lifetime = match expiry {
            Some(end) => end.duration_since(now),
            None => auth
                .expire_duration
                .parse()
                .map_or(LIFETIME, |GoDuration(duration)| duration),
        };
        let lifetime = lifetime.clamp(SignedDuration::ZERO, LONGEST_LIFETIME);
        Ok(Self {
            value: value.to_owned(),
            credentials,
            // Renewed early, since the server's clock may be ahead.
            renewal: now
                .saturating_add(lifetime * 4 / 5)
                .map_err(|error| error.to_string())?,
            end: now.saturating_add(lifetime).map_err(|error| error.to_string())?,
        })
    }
}

impl ServerCredentials {
    /// Adds the credentials to the headers of a request.
    pub(super) fn add(&self, headers: &mut HeaderMap) -> Result<(), String> {
        let value = match self {
            Self::Bearer(token) => format!("Bearer {token}"),
            Self::Basic(username, password) => {
                format!("Basic {}", STANDARD.encode(format!("{username}:{password}")))
            }
        };
        let value = HeaderValue::try_from(value);
        let mut value =
            value.map_err(|_| "the credentials have characters that are not valid in a header")?;
        value.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, value);
        Ok(())
    }
}
