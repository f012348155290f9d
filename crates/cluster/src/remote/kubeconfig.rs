//! Kubeconfigs in Secrets. They are untrusted: users who can write the Secret must not be able to run
//! programs in this process's container, or to send its files anywhere. So a kubeconfig must be
//! self-contained.

use base64::{Engine, engine::general_purpose::STANDARD};
use http::Uri;
use kube::{
    Config,
    config::{AuthInfo, Cluster, Kubeconfig},
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use secrecy::ExposeSecret;
use serde_json::Value;
use thiserror::Error;
use windlass_object::object;

/// The keys of a Secret that may hold a kubeconfig: the usual one, and Karmada's.
pub const KEYS: [&str; 2] = ["kubeconfig", "karmada.config"];

/// Why a kubeconfig cannot be used. Messages contain field names only, never values.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "the message explains each field")]
pub enum InvalidKubeconfig {
    /// The Secret holds no kubeconfig.
    #[error("none of the keys {} exists", KEYS.join(", "))]
    Missing,
    /// The Secret holds two kubeconfigs.
    #[error("both keys {} exist: remove one", KEYS.join(", "))]
    Ambiguous,
    /// The value is not a kubeconfig.
    #[error("{key}: not a kubeconfig in YAML or JSON")]
    Unreadable {
        /// The key of the Secret.
        key: &'static str,
    },
    /// A field is invalid.
    #[error("{key}: {field}: {fault}")]
    Field {
        /// The key of the Secret.
        key: &'static str,
        /// The field, for example `users[0].user.exec`.
        field: String,
        fault: FieldFault,
    },
}

/// Why a field of a kubeconfig is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FieldFault {
    /// The field, or the entry that it names, is missing.
    #[error("not found")]
    NotFound,
    /// The field would run a program.
    #[error("not allowed: a Secret must not run programs in the operator's container")]
    Program,
    /// The field names a file.
    #[error("not allowed: a Secret must not read files of the operator's container; use {0}")]
    File(
        /// The equivalent field with inline data.
        &'static str,
    ),
    /// The field redirects connections.
    #[error("not supported")]
    Unsupported,
    /// The server would not be authenticated.
    #[error("not allowed: the API server must show a certificate")]
    Insecure,
    /// The field is not the URL of an API server.
    #[error("must be a URL that begins with https://")]
    NotHttps,
    /// The field is not base64 of PEM.
    #[error("must be {0} in PEM, in base64")]
    NotPem(
        /// The expected content.
        &'static str,
    ),
    /// The field requires another one.
    #[error("must be set together with {0}")]
    Alone(
        /// The other field.
        &'static str,
    ),
}

/// Why a field cannot be used.
type Fault = (String, FieldFault);

/// Returns the configuration for the API server of the kubeconfig's current context in a Secret.
///
/// # Errors
///
/// When there is no kubeconfig, or it contains fields that are not allowed in a Secret.
pub fn read_kubeconfig(secret: &Value) -> Result<Config, InvalidKubeconfig> {
    let mut found = KEYS.into_iter().filter(|key| {
        secret
            .pointer("/data")
            .is_some_and(|data| data.get(key).is_some())
    });
    let key = found.next().ok_or(InvalidKubeconfig::Missing)?;
    if found.next().is_some() {
        return Err(InvalidKubeconfig::Ambiguous);
    }
    let text = object::data(secret, key).and_then(|text| String::from_utf8(text).ok());
    let kubeconfig = text.and_then(|text| Kubeconfig::from_yaml(&text).ok());
    let kubeconfig = kubeconfig.ok_or(InvalidKubeconfig::Unreadable { key })?;
    configure(&kubeconfig).map_err(|(field, fault)| InvalidKubeconfig::Field { key, field, fault })
}

fn configure(kubeconfig: &Kubeconfig) -> Result<Config, Fault> {
    let missing = |field: &str| (field.to_owned(), FieldFault::NotFound);
    let current = kubeconfig.current_context.as_ref();
    let current = current.ok_or_else(|| missing("current-context"))?;
    let mut contexts = kubeconfig.contexts.iter();
    let context = contexts.position(|named| named.name == *current);
    let context = context.ok_or_else(|| missing("current-context"))?;
    let field = format!("contexts[{context}].context");
    let context = kubeconfig.contexts[context].context.as_ref();
    let context = context.ok_or_else(|| missing(&field))?;

    let mut clusters = kubeconfig.clusters.iter();
    let index = clusters.position(|named| named.name == context.cluster);
    let index = index.ok_or_else(|| missing(&format!("{field}.cluster")))?;
    let cluster_field = format!("clusters[{index}].cluster");
    let cluster = kubeconfig.clusters[index].cluster.as_ref();
    let mut config = server_config(cluster.ok_or_else(|| missing(&cluster_field))?)
        .map_err(|(field, fault)| (format!("{cluster_field}.{field}"), fault))?;

    let Some(user) = context.user.as_ref().filter(|user| !user.is_empty()) else {
        return Ok(config);
    };
    let mut users = kubeconfig.auth_infos.iter();
    let index = users.position(|named| named.name == *user);
    let index = index.ok_or_else(|| missing(&format!("{field}.user")))?;
    let user_field = format!("users[{index}].user");
    let user = kubeconfig.auth_infos[index].auth_info.as_ref();
    config.auth_info = inline_credentials(user.ok_or_else(|| missing(&user_field))?)
        .map_err(|(field, fault)| (format!("{user_field}.{field}"), fault))?;
    Ok(config)
}

/// Returns the configuration without credentials.
fn server_config(cluster: &Cluster) -> Result<Config, Fault> {
    let fault = |field: &str, fault| Err((field.to_owned(), fault));
    if is_set(cluster.certificate_authority.as_ref()) {
        return fault(
            "certificate-authority",
            FieldFault::File("certificate-authority-data"),
        );
    }
    if is_set(cluster.proxy_url.as_ref()) {
        return fault("proxy-url", FieldFault::Unsupported);
    }
    if cluster.insecure_skip_tls_verify == Some(true) {
        return fault("insecure-skip-tls-verify", FieldFault::Insecure);
    }
    let server = cluster.server.as_deref().unwrap_or_default();
    let server = server
        .parse()
        .ok()
        .filter(|server: &Uri| server.scheme_str() == Some("https") && server.host().is_some());
    let Some(server) = server else {
        return fault("server", FieldFault::NotHttps);
    };
    let mut config = Config::new(server);
    if let Some(encoded) = &cluster.certificate_authority_data {
        let pem = STANDARD.decode(encoded).unwrap_or_default();
        let roots: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
        let Some(roots) = roots.ok().filter(|roots| !roots.is_empty()) else {
            return fault(
                "certificate-authority-data",
                FieldFault::NotPem("CA certificates"),
            );
        };
        config.root_cert = Some(roots.iter().map(|root| root.to_vec()).collect());
    }
    config.tls_server_name = cluster.tls_server_name.clone().filter(|name| !name.is_empty());
    Ok(config)
}

fn inline_credentials(user: &AuthInfo) -> Result<AuthInfo, Fault> {
    let fault = |field: &str, fault| Err((field.to_owned(), fault));
    if user.exec.is_some() {
        return fault("exec", FieldFault::Program);
    }
    if user.auth_provider.is_some() {
        return fault("auth-provider", FieldFault::Program);
    }
    for (field, file, inline) in [
        ("tokenFile", &user.token_file, "token"),
        (
            "client-certificate",
            &user.client_certificate,
            "client-certificate-data",
        ),
        ("client-key", &user.client_key, "client-key-data"),
    ] {
        if is_set(file.as_ref()) {
            return fault(field, FieldFault::File(inline));
        }
    }
    let decoded = |encoded: &str| STANDARD.decode(encoded).unwrap_or_default();
    if let Some(encoded) = &user.client_certificate_data {
        let pem = decoded(encoded);
        let mut chain = CertificateDer::pem_slice_iter(&pem).peekable();
        if chain.peek().is_none() || chain.any(|certificate| certificate.is_err()) {
            return fault(
                "client-certificate-data",
                FieldFault::NotPem("client certificates"),
            );
        }
    }
    let key = user.client_key_data.as_ref();
    if key.is_some_and(|key| PrivateKeyDer::from_pem_slice(&decoded(key.expose_secret())).is_err()) {
        return fault("client-key-data", FieldFault::NotPem("a private key"));
    }
    match (&user.client_certificate_data, key) {
        (Some(_), None) => return fault("client-certificate-data", FieldFault::Alone("client-key-data")),
        (None, Some(_)) => return fault("client-key-data", FieldFault::Alone("client-certificate-data")),
        _ => {}
    }
    Ok(AuthInfo {
        token: user.token.clone(),
        client_certificate_data: user.client_certificate_data.clone(),
        client_key_data: user.client_key_data.clone(),
        impersonate: user.impersonate.clone(),
        impersonate_uid: user.impersonate_uid.clone(),
        impersonate_groups: user.impersonate_groups.clone(),
        impersonate_user_extra: user.impersonate_user_extra.clone(),
        ..AuthInfo::default()
    })
}

fn is_set(field: Option<&String>) -> bool {
    field.is_some_and(|field| !field.is_empty())
}

#[cfg(test)]
mod tests {
    use kube::Client;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// A CA, a certificate and its key, in PEM and base64.
    fn identity() -> [String; 3] {
        let mut parameters = rcgen::CertificateParams::default();
        parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = rcgen::KeyPair::generate().unwrap();
        let root = parameters.self_signed(&key).unwrap();
        [root.pem(), root.pem(), key.serialize_pem()].map(|pem| STANDARD.encode(pem))
    }

    /// A valid kubeconfig with unused contexts, clusters and users.
    fn kubeconfig() -> Value {
        let [root, certificate, key] = identity();
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "karmada",
            "contexts": [
                {"name": "other", "context": {"cluster": "none", "user": "other"}},
                {"name": "karmada", "context": {"cluster": "karmada", "user": "admin"}},
            ],
            "clusters": [{"name": "karmada", "cluster": {
                "server": "https://karmada-apiserver.karmada-system.svc:5443", "certificate-authority-data": root,
            }}],
            "users": [
                {"name": "other", "user": {"exec": {"command": "touch", "apiVersion": "v1"}}},
                {"name": "admin", "user": {"client-certificate-data": certificate, "client-key-data": key}},
            ],
        })
    }

    fn secret(key: &str, kubeconfig: &str) -> Value {
        json!({"data": {key: STANDARD.encode(kubeconfig)}})
    }

    #[tokio::test]
    async fn kubeconfigs_of_karmada_are_read() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        for key in KEYS {
            let config = read_kubeconfig(&secret(key, &kubeconfig().to_string())).unwrap();
            assert_eq!(
                config.cluster_url.to_string(),
                "https://karmada-apiserver.karmada-system.svc:5443/"
            );
            assert_eq!(config.root_cert.as_ref().map(Vec::len), Some(1));
            assert!(!config.accept_invalid_certs && config.proxy_url.is_none());
            Client::try_from(config).unwrap();
        }
        let mut token = kubeconfig();
        token["users"][1]["user"] = json!({"token": "t", "tokenFile": "", "as": "alice"});
        let config = read_kubeconfig(&secret("kubeconfig", &token.to_string())).unwrap();
        assert_eq!(config.auth_info.impersonate.as_deref(), Some("alice"));
        assert!(config.auth_info.token.is_some() && config.auth_info.token_file.is_none());
    }

    #[test]
    fn exactly_one_valid_kubeconfig_is_required() {
        let mut both = secret("kubeconfig", "{}");
        both["data"]["karmada.config"] = both["data"]["kubeconfig"].clone();
        for (secret, expected) in [
            (json!({}), "none of the keys kubeconfig, karmada.config exists"),
            (
                secret("value", "{}"),
                "none of the keys kubeconfig, karmada.config exists",
            ),
            (both, "both keys kubeconfig, karmada.config exist: remove one"),
            (
                secret("kubeconfig", "a: [b"),
                "kubeconfig: not a kubeconfig in YAML or JSON",
            ),
            (
                secret("karmada.config", "7"),
                "karmada.config: not a kubeconfig in YAML or JSON",
            ),
            (
                json!({"data": {"kubeconfig": "%"}}),
                "kubeconfig: not a kubeconfig in YAML or JSON",
            ),
        ] {
            assert_eq!(read_kubeconfig(&secret).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn yaml_bombs_are_rejected() {
        let laughs: String = (1..30)
            .map(|level| {
                format!(
                    "a{level}: &a{level} [{}]\n",
                    format!("*a{},", level - 1).repeat(9)
                )
            })
            .collect();
        for text in [
            format!("a0: &a0 [{}]\n{laughs}", "x,".repeat(9)),
            "[".repeat(100_000),
            "{a: ".repeat(100_000),
        ] {
            let read = read_kubeconfig(&secret("kubeconfig", &text));
            assert_eq!(
                read.unwrap_err(),
                InvalidKubeconfig::Unreadable { key: "kubeconfig" }
            );
        }
    }

    #[test]
    fn kubeconfigs_cannot_run_programs_or_read_files() {
        let hidden = "hidden-value";
        for (pointer, value, expected) in [
            (
                "/users/1/user/exec",
                json!({"command": hidden, "apiVersion": "client.authentication.k8s.io/v1"}),
                "users[1].user.exec: not allowed: a Secret must not run programs in the operator's container",
            ),
            (
                "/users/1/user/auth-provider",
                json!({"name": "gcp", "config": {"cmd-path": hidden}}),
                "users[1].user.auth-provider: not allowed: a Secret must not run programs in the operator's container",
            ),
            (
                "/users/1/user/tokenFile",
                json!("/var/run/secrets/kubernetes.io/serviceaccount/token"),
                "users[1].user.tokenFile: not allowed: a Secret must not read files of the operator's container; use token",
            ),
            (
                "/users/1/user/client-certificate",
                json!("/etc/passwd"),
                "users[1].user.client-certificate: not allowed: a Secret must not read files of the operator's container; use \
                 client-certificate-data",
            ),
            (
                "/users/1/user/client-key",
                json!("/etc/shadow"),
                "users[1].user.client-key: not allowed: a Secret must not read files of the operator's container; use \
                 client-key-data",
            ),
            (
                "/clusters/0/cluster/certificate-authority",
                json!("/etc/passwd"),
                "clusters[0].cluster.certificate-authority: not allowed: a Secret must not read files of the operator's \
                 container; use certificate-authority-data",
            ),
            (
                "/clusters/0/cluster/insecure-skip-tls-verify",
                json!(true),
                "clusters[0].cluster.insecure-skip-tls-verify: not allowed: the API server must show a certificate",
            ),
            (
                "/clusters/0/cluster/proxy-url",
                json!("socks5://10.0.0.1"),
                "clusters[0].cluster.proxy-url: not supported",
            ),
            (
                "/clusters/0/cluster/server",
                json!("http://10.0.0.1"),
                "clusters[0].cluster.server: must be a URL that begins with https://",
            ),
            (
                "/clusters/0/cluster/server",
                json!("file:///etc/passwd"),
                "clusters[0].cluster.server: must be a URL that begins with https://",
            ),
            (
                "/clusters/0/cluster/certificate-authority-data",
                json!(STANDARD.encode(hidden)),
                "clusters[0].cluster.certificate-authority-data: must be CA certificates in PEM, in base64",
            ),
            (
                "/users/1/user/client-key-data",
                json!(hidden),
                "users[1].user.client-key-data: must be a private key in PEM, in base64",
            ),
            (
                "/users/1/user/client-certificate-data",
                json!(hidden),
                "users[1].user.client-certificate-data: must be client certificates in PEM, in base64",
            ),
            (
                "/users/1/user/client-key-data",
                Value::Null,
                "users[1].user.client-certificate-data: must be set together with client-key-data",
            ),
            (
                "/users/1/user/client-certificate-data",
                Value::Null,
                "users[1].user.client-key-data: must be set together with client-certificate-data",
            ),
            ("/current-context", Value::Null, "current-context: not found"),
            ("/current-context", json!("none"), "current-context: not found"),
            (
                "/contexts/1/context/cluster",
                json!("none"),
                "contexts[1].context.cluster: not found",
            ),
            (
                "/contexts/1/context/user",
                json!("none"),
                "contexts[1].context.user: not found",
            ),
            (
                "/clusters/0/cluster",
                Value::Null,
                "clusters[0].cluster: not found",
            ),
            ("/users/1/user", Value::Null, "users[1].user: not found"),
        ] {
            let mut kubeconfig = kubeconfig();
            let (parent, field) = pointer.rsplit_once('/').unwrap();
            kubeconfig.pointer_mut(parent).unwrap()[field] = value;
            let error = read_kubeconfig(&secret("kubeconfig", &kubeconfig.to_string()));
            let error = error.unwrap_err().to_string();
            assert_eq!(error, format!("kubeconfig: {expected}"));
            assert!(!error.contains(hidden));
        }
    }

    proptest! {
        #[test]
        fn reading_a_secret_never_panics(key in prop::sample::select(&KEYS[..]), text in ".{0,200}", field in 0_usize..12, value in ".{0,20}") {
            let _ = read_kubeconfig(&secret(key, &text));
            let _ = read_kubeconfig(&json!({"data": {key: text}}));
            let mut kubeconfig = kubeconfig();
            let fields = [
                "/current-context", "/contexts/1/context/cluster", "/contexts/1/context/user", "/contexts/1/context",
                "/clusters/0/cluster/server", "/clusters/0/cluster/certificate-authority-data", "/clusters/0/cluster",
                "/users/1/user/client-certificate-data", "/users/1/user/client-key-data", "/users/1/user", "/users", "/clusters",
            ];
            *kubeconfig.pointer_mut(fields[field]).unwrap() = value.into();
            let read = read_kubeconfig(&secret(key, &kubeconfig.to_string()));
            if let Ok(config) = read {
                prop_assert_eq!(config.cluster_url.scheme_str(), Some("https"));
            }
        }
    }
}
