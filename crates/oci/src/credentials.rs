//! Credentials of registries: `auths` of docker's config.json, of containers-auth.json(5) and of Secrets of
//! type `kubernetes.io/dockerconfigjson`.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use std::{collections::BTreeMap, fmt};

use crate::reference::{DOCKER_HUB, ImageReference};

/// A credential for a registry.
#[derive(Clone)]
pub enum Credential {
    /// A user and a password.
    Password {
        /// The user.
        username: String,
        /// The password.
        password: SecretString,
    },
    /// A refresh token, which is exchanged for a token at the registry's token server.
    IdentityToken(SecretString),
    /// A token that is sent unchanged.
    RegistryToken(SecretString),
}

/// The credentials of several files or Secrets: the first with a matching entry applies.
#[derive(Clone, Default)]
pub struct RegistryCredentials {
    /// The entries of each file, by scope.
    files: Vec<Vec<(Scope, Credential)>>,
    /// Credential helpers, in the order of the files.
    helpers: Vec<Helpers>,
}

/// The credential helpers (docker-credential-helpers) that a file names.
#[derive(Clone, Debug, Default)]
struct Helpers {
    /// Helpers for specific registries.
    of_registries: Vec<(Scope, String)>,
    /// The helper for all other registries.
    of_others: Option<String>,
}

/// The images of a credential: a registry, and a prefix of the repository.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Scope {
    host: String,
    path: String,
}

/// The problems of a credentials file, without its contents.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {}", problems.join("; "))]
pub struct CredentialsError {
    /// The file or Secret.
    pub file: String,
    /// Every problem, with its field.
    pub problems: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConfigFile {
    #[serde(default)]
    auths: BTreeMap<String, AuthEntry>,
    cred_helpers: Option<BTreeMap<String, String>>,
    creds_store: Option<String>,
}

#[derive(Deserialize)]
struct AuthEntry {
    auth: Option<String>,
    username: Option<String>,
    password: Option<String>,
    identitytoken: Option<String>,
    registrytoken: Option<String>,
}

impl RegistryCredentials {
    /// Adds the entries of a file; files that were added before take precedence.
    ///
    /// # Errors
    ///
    /// Every problem in the file.
    pub fn add(&mut self, file: &str, content: &[u8]) -> Result<(), CredentialsError> {
        let failed = |problems| CredentialsError {
            file: file.to_owned(),
            problems,
        };
        // Messages of serde may contain the value.
        let config: ConfigFile = serde_json::from_slice(content).map_err(|error| {
            let place = format!("line {}, column {}", error.line(), error.column());
            failed(vec![format!("is not a JSON object with auths: see {place}")])
        })?;
        let (mut entries, mut problems) = (Vec::new(), Vec::new());
        for (key, entry) in config.auths {
            match entry.credential() {
                Ok(Some(credential)) => entries.push((Scope::parse(&key), credential)),
                // Docker writes such entries when a helper stores the secret.
                Ok(None) => {}
                Err(problem) => problems.push(format!("auths[{key:?}]{problem}")),
            }
        }
        if problems.is_empty() {
            self.files.push(entries);
            let of_registries = config.cred_helpers.into_iter().flatten();
            self.helpers.push(Helpers {
                of_registries: of_registries
                    .map(|(key, helper)| (Scope::parse(&key), helper))
                    .collect(),
                of_others: config.creds_store,
            });
            Ok(())
        } else {
            Err(failed(problems))
        }
    }

    /// Adds the credentials of `others` with the lowest precedence.
    pub fn extend(&mut self, others: Self) {
        self.files.extend(others.files);
        self.helpers.extend(others.helpers);
    }

    /// The name of the helper that may have a credential for an image, `docker-credential-…`; it is not run.
    pub fn helper(&self, image: &ImageReference) -> Option<String> {
        let helper = self.helpers.iter().find_map(|helpers| {
            let mut of_registries = helpers.of_registries.iter();
            let of_registry = of_registries.find(|(scope, _)| scope.contains(image));
            let helper = of_registry
                .map(|(_, helper)| helper)
                .or(helpers.of_others.as_ref());
            helper.filter(|helper| !helper.is_empty())
        });
        helper.map(|helper| format!("docker-credential-{helper}"))
    }

    /// Finds the credential for an image: in the first file with a match, the entry with the longest path.
    pub fn find(&self, image: &ImageReference) -> Option<&Credential> {
        self.files.iter().find_map(|file| {
            file.iter()
                .filter(|(scope, _)| scope.contains(image))
                // A literal host takes precedence over a pattern.
                .max_by_key(|(scope, _)| (scope.path.len(), !scope.host.contains('*')))
                .map(|(_, credential)| credential)
        })
    }
}

impl fmt::Debug for RegistryCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegistryCredentials").finish_non_exhaustive()
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Password { .. } => "Password",
            Self::IdentityToken(_) => "IdentityToken",
            Self::RegistryToken(_) => "RegistryToken",
        })
    }
}

impl Credential {
    /// The value of an `Authorization` header with user and password (RFC 7617).
    pub fn basic(&self) -> Option<SecretString> {
        let Self::Password { username, password } = self else {
            return None;
        };
        let pair = format!("{username}:{}", password.expose_secret());
        Some(format!("Basic {}", STANDARD.encode(pair)).into())
    }
}

impl AuthEntry {
    fn credential(self) -> Result<Option<Credential>, &'static str> {
        let given = |text: Option<String>| text.filter(|text| !text.is_empty());
        if let Some(token) = given(self.registrytoken) {
            return Ok(Some(Credential::RegistryToken(token.into())));
        }
        if let Some(token) = given(self.identitytoken) {
            return Ok(Some(Credential::IdentityToken(token.into())));
        }
        if let Some(auth) = given(self.auth) {
            let decoded = STANDARD.decode(auth.trim()).ok();
            let pair = decoded.and_then(|pair| String::from_utf8(pair).ok());
            let pair = pair.ok_or(".auth: must be base64 of USER:PASSWORD")?;
            let (username, password) = pair
                .split_once(':')
                .ok_or(".auth: must be base64 of USER:PASSWORD")?;
            return Ok(Some(Credential::Password {
                username: username.to_owned(),
                // Old versions of docker pad it with zeros.
                password: password.trim_end_matches('\0').into(),
            }));
        }
        match (given(self.username), given(self.password)) {
            (Some(username), Some(password)) => Ok(Some(Credential::Password {
                username,
                password: password.into(),
            })),
            (None, None) => Ok(None),
            (Some(_), None) => Err(".password: must be set with username"),
            (None, Some(_)) => Err(".username: must be set with password"),
        }
    }
}

impl Scope {
    /// Parses a key of `auths`, which docker also writes as a URL.
    fn parse(key: &str) -> Self {
        let key = ["https://", "http://"]
            .iter()
            .find_map(|scheme| key.strip_prefix(scheme))
            .unwrap_or(key);
        let (host, path) = key.split_once('/').unwrap_or((key, ""));
        let host = match host {
            "index.docker.io" | "registry-1.docker.io" => DOCKER_HUB,
            host => host,
        };
        let path = match path.trim_end_matches('/') {
            // The path of the registry API, as `docker login` writes it.
            "v1" | "v2" => "",
            path => path,
        };
        Self {
            host: host.to_owned(),
            path: path.to_owned(),
        }
    }

    fn contains(&self, image: &ImageReference) -> bool {
        let is_below = match image.repository.strip_prefix(&self.path) {
            Some(rest) => self.path.is_empty() || rest.is_empty() || rest.starts_with('/'),
            None => false,
        };
        is_below && matches_host(&self.host, &image.registry)
    }
}

/// Reports whether a host with its port matches a pattern. A `*` matches a part of one label (Kubernetes,
/// "Pull an Image from a Private Registry": Interpretation of config.json).
fn matches_host(pattern: &str, host: &str) -> bool {
    let divided = |text: &str| match text.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
            (name.to_ascii_lowercase(), Some(port.to_owned()))
        }
        _ => (text.to_ascii_lowercase(), None),
    };
    let ((pattern, pattern_port), (host, port)) = (divided(pattern), divided(host));
    let (patterns, labels) = (pattern.split('.'), host.split('.'));
    pattern_port == port
        && patterns.clone().count() == labels.clone().count()
        && patterns
            .zip(labels)
            .all(|(pattern, label)| matches_label(pattern, label))
}

fn matches_label(pattern: &str, label: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == label;
    };
    let Some(label) = label.strip_prefix(first) else {
        return false;
    };
    let ends = label.char_indices().map(|(end, _)| end).chain([label.len()]);
    ends.into_iter().any(|end| matches_label(rest, &label[end..]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn password(user: &str) -> serde_json::Value {
        json!({"auth": STANDARD.encode(format!("{user}:secret"))})
    }

    fn credentials(auths: serde_json::Value) -> RegistryCredentials {
        let mut credentials = RegistryCredentials::default();
        let file = json!({ "auths": auths, "credsStore": "desktop" }).to_string();
        credentials.add("config.json", file.as_bytes()).unwrap();
        credentials
    }

    fn user(credentials: &RegistryCredentials, image: &str) -> Option<String> {
        match credentials.find(&image.parse().unwrap())? {
            Credential::Password { username, .. } => Some(username.clone()),
            other => Some(format!("{other:?}")),
        }
    }

    #[test]
    fn the_helper_for_a_registry_is_found() {
        let mut credentials = RegistryCredentials::default();
        let helper = |credentials: &RegistryCredentials, image: &str| {
            let image = image.parse().unwrap();
            credentials.helper(&image)
        };
        assert_eq!(helper(&credentials, "quay.io/a"), None);
        for file in [
            json!({"credHelpers": {"quay.io": "pass"}, "credsStore": ""}),
            json!({"credHelpers": {"gcr.io": "gcloud"}, "credsStore": "desktop"}),
        ] {
            credentials
                .add("config.json", file.to_string().as_bytes())
                .unwrap();
        }
        for (image, expected) in [
            ("quay.io/a", "docker-credential-pass"),
            ("gcr.io/a/b", "docker-credential-gcloud"),
            ("ghcr.io/a", "docker-credential-desktop"),
        ] {
            assert_eq!(helper(&credentials, image).as_deref(), Some(expected), "{image}");
        }
    }

    #[test]
    fn the_longest_matching_path_applies() {
        let credentials = credentials(json!({
            "quay.io": password("host"),
            "quay.io/a": password("folder"),
            "quay.io/a/b": password("repository"),
            "quay.io:8443": password("port"),
            "https://index.docker.io/v1/": password("hub"),
            "http://old.example.com/v2/": password("url"),
            "*.example.com": password("pattern"),
            "reg-*.test": password("part"),
            "token.test": {"identitytoken": "t"},
            "direct.test": {"registrytoken": "t", "auth": ""},
            "plain.test": {"username": "plain", "password": "p"},
            "helped.test": {},
        }));
        for (image, expected) in [
            ("quay.io/x", Some("host")),
            ("quay.io/a/c", Some("folder")),
            ("quay.io/ab", Some("host")),
            ("quay.io/a/b:tag", Some("repository")),
            ("quay.io/a/b/c", Some("repository")),
            ("quay.io:8443/a/b", Some("port")),
            ("quay.io:9443/a/b", None),
            ("busybox", Some("hub")),
            ("old.example.com/a", Some("url")),
            ("new.example.com/a", Some("pattern")),
            ("a.new.example.com/a", None),
            ("example.com/a", None),
            ("reg-1.test/a", Some("part")),
            ("token.test/a", Some("IdentityToken")),
            ("direct.test/a", Some("RegistryToken")),
            ("plain.test/a", Some("plain")),
            ("helped.test/a", None),
        ] {
            assert_eq!(user(&credentials, image).as_deref(), expected, "{image}");
        }
    }

    #[test]
    fn the_first_file_with_a_match_applies() {
        let mut first = credentials(json!({"quay.io": password("first")}));
        first.extend(credentials(
            json!({"quay.io/a": password("second"), "b.test": password("b")}),
        ));
        assert_eq!(user(&first, "quay.io/a").as_deref(), Some("first"));
        assert_eq!(user(&first, "b.test/a").as_deref(), Some("b"));
    }

    #[test]
    fn all_problems_are_reported_without_secrets() {
        let file = json!({"auths": {
            "a.test": {"auth": "cGFzc3dvcmQ="},
            "b.test": {"auth": "hunter2!"},
            "c.test": {"username": "hunter2"},
        }});
        let error = RegistryCredentials::default()
            .add("Secret windlass-system/pull", file.to_string().as_bytes())
            .unwrap_err();
        assert_eq!(error.problems.len(), 3);
        assert_eq!(
            error.to_string(),
            "Secret windlass-system/pull: auths[\"a.test\"].auth: must be base64 of USER:PASSWORD; \
             auths[\"b.test\"].auth: must be base64 of USER:PASSWORD; \
             auths[\"c.test\"].password: must be set with username"
        );
        let error = RegistryCredentials::default()
            .add("f", br#"{"auths": "hunter2"}"#)
            .unwrap_err();
        assert!(!error.to_string().contains("hunter2"), "{error}");
        let known = credentials(json!({"a.test": {"username": "u", "password": "hunter2"}}));
        let found = known.find(&"a.test/a".parse().unwrap()).unwrap();
        assert!(!format!("{known:?} {found:?}").contains("hunter2"));
        assert_eq!(found.basic().unwrap().expose_secret(), "Basic dTpodW50ZXIy");
    }
}
