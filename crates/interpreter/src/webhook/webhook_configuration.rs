//! Reads webhooks from ResourceInterpreterWebhookConfigurations.

use std::{sync::Arc, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::de::DeserializeOwned;
use serde_json::Value;
use webhook_transport::{ServerReference, check_ca_bundle};
use windlass_object::{
    json::drop_nulls,
    object,
    rfc1123::{is_label, is_subdomain},
};

use super::{
    InterpreterClientConfig, InterpreterFailurePolicy, InterpreterService, ResourceInterpreterWebhook,
    RuleWithOperations, rule::RuleMatcher,
};
use crate::customization::{CustomizationProblem, FieldProblems, KARMADA_API_VERSION};

/// The kind of webhook configurations.
pub(crate) const CONFIGURATION_KIND: &str = "ResourceInterpreterWebhookConfiguration";

/// The only supported version of requests.
const CONTEXT_VERSION: &str = "v1alpha1";

/// The default timeout of a call, in seconds.
const DEFAULT_TIMEOUT: u64 = 10;

/// The default port of a Service.
const DEFAULT_PORT: i64 = 443;

/// A webhook configuration with its valid parts.
#[derive(Debug)]
pub(crate) struct WebhookConfiguration {
    pub(crate) webhooks: Vec<ConfiguredWebhook>,
    pub(crate) problems: Vec<CustomizationProblem>,
}

/// A webhook with valid rules.
#[derive(Debug)]
pub(crate) struct ConfiguredWebhook {
    /// `<configuration>/<webhook>`, which is unique. The order of these is the order of precedence.
    pub(crate) uid: String,
    /// The name of the configuration.
    pub(crate) configuration: String,
    /// The name of the webhook.
    pub(crate) name: String,
    pub(crate) rules: Vec<RuleMatcher>,
    pub(crate) policy: InterpreterFailurePolicy,
    /// The Service in the configuration.
    pub(crate) service: Option<InterpreterService>,
    /// How to call the webhook, or why that is impossible.
    pub(crate) called: Result<WebhookCall, Vec<CustomizationProblem>>,
}

/// How to call a webhook.
#[derive(Debug)]
pub(crate) struct WebhookCall {
    pub(crate) server: ServerReference,
    pub(crate) timeout: Duration,
}

impl WebhookConfiguration {
    /// Returns the name of a webhook configuration.
    ///
    /// # Errors
    ///
    /// When the object is of another kind or has no name.
    pub(crate) fn name(object: &Value) -> Result<&str, Vec<CustomizationProblem>> {
        let mut problems = FieldProblems::default();
        let text = |pointer| object::text(object, pointer).unwrap_or_default();
        if (text("/apiVersion"), text("/kind")) != (KARMADA_API_VERSION, CONFIGURATION_KIND) {
            let message = format!("must be {CONFIGURATION_KIND} of {KARMADA_API_VERSION}");
            problems.add("kind", message);
        }
        let name = text("/metadata/name");
        if name.is_empty() {
            problems.add("metadata.name", "must not be empty");
        }
        problems.into_result(|| Some(name))
    }

    /// Reads the webhooks of the object `configuration`. Those with valid rules that cannot be called are
    /// included.
    pub(crate) fn read(configuration: &str, object: &Value) -> Self {
        let mut problems = FieldProblems::default();
        let mut webhooks: Vec<ConfiguredWebhook> = Vec::new();
        let items = match object.get("webhooks") {
            Some(Value::Array(items)) => items.as_slice(),
            None | Some(Value::Null) => &[],
            Some(_) => {
                problems.add("webhooks", "must be a list");
                &[]
            }
        };
        for (index, item) in items.iter().enumerate() {
            let mut item = item.clone();
            // API servers treat null as absent.
            drop_nulls(&mut item);
            let mut own = FieldProblems::under(format!("webhooks[{index}]"));
            let webhook = read_webhook(configuration, item, &mut own);
            if let Some(webhook) = &webhook
                && webhooks.iter().any(|earlier| earlier.name == webhook.name)
            {
                own.add("name", format_args!("duplicate {:?}", webhook.name));
            }
            let own = own.into_problems();
            problems.extend(own.clone());
            webhooks.extend(webhook.map(|webhook| webhook.with_problems(own)));
        }
        Self {
            webhooks,
            problems: problems.into_problems(),
        }
    }
}

impl ConfiguredWebhook {
    /// Marks the webhook as not callable if there are problems.
    fn with_problems(self, problems: Vec<CustomizationProblem>) -> Self {
        match problems.is_empty() {
            true => self,
            false => Self {
                called: Err(problems),
                ..self
            },
        }
    }
}

/// Reads a webhook if its rules are valid, and adds its problems.
fn read_webhook(configuration: &str, item: Value, problems: &mut FieldProblems) -> Option<ConfiguredWebhook> {
    let rules = item.get("rules").cloned();
    let name = object::text(&item, "/name").unwrap_or_default().to_owned();
    let uid = format!("{configuration}/{name}");
    let Some(webhook) = decode::<ResourceInterpreterWebhook>(item, problems) else {
        // A webhook that cannot be called still has its rules, so that its questions fail instead of going to
        // the next interpreter.
        let rules = serde_json::from_value::<Vec<RuleWithOperations>>(rules?).ok()?;
        return Some(ConfiguredWebhook {
            uid,
            configuration: configuration.to_owned(),
            name,
            rules: rules.iter().map(RuleMatcher::from_rule).collect(),
            policy: InterpreterFailurePolicy::Fail,
            service: None,
            called: Err(Vec::new()),
        });
    };
    check_name(&name, problems);
    if webhook
        .timeout_seconds
        .is_some_and(|seconds| !(1..=30).contains(&seconds))
    {
        problems.add("timeoutSeconds", "must be 1 to 30");
    }
    check_versions(&webhook.interpreter_context_versions, problems);
    for (index, rule) in webhook.rules.iter().enumerate() {
        problems.in_field(format_args!("rules[{index}]"), |problems| rule.check(problems));
    }
    let mut server = None;
    problems.in_field("clientConfig", |problems| {
        server = webhook.client_config.server(problems);
    });
    let seconds = webhook
        .timeout_seconds
        .and_then(|seconds| u64::try_from(seconds).ok());
    let timeout = Duration::from_secs(seconds.unwrap_or(DEFAULT_TIMEOUT));
    Some(ConfiguredWebhook {
        uid,
        configuration: configuration.to_owned(),
        name,
        rules: webhook.rules.iter().map(RuleMatcher::from_rule).collect(),
        policy: webhook.failure_policy,
        service: webhook.client_config.service,
        called: server
            .map(|server| WebhookCall { server, timeout })
            .ok_or_else(Vec::new),
    })
}

fn decode<T: DeserializeOwned>(item: Value, problems: &mut FieldProblems) -> Option<T> {
    let read = serde_path_to_error::deserialize(item);
    read.map_err(|error: serde_path_to_error::Error<serde_json::Error>| {
        let path = error.path().to_string();
        problems.add(if path == "." { "" } else { &path }, error.inner());
    })
    .ok()
}

fn check_name(name: &str, problems: &mut FieldProblems) {
    if name.is_empty() {
        problems.add("name", "must not be empty");
    } else if !is_subdomain(name) || !name.contains('.') {
        problems.add(
            "name",
            "must be a DNS name of at least two labels, for example workloads.example.com",
        );
    }
}

fn check_versions(versions: &[String], problems: &mut FieldProblems) {
    const FIELD: &str = "interpreterContextVersions";
    if versions.is_empty() {
        problems.add(FIELD, format_args!("must not be empty; use {CONTEXT_VERSION}"));
        return;
    }
    for (index, version) in versions.iter().enumerate() {
        let field = format!("{FIELD}[{index}]");
        if versions[..index].contains(version) {
            problems.add(&field, format_args!("duplicate {version:?}"));
        }
        // Labels of RFC 1035 begin with a letter.
        if !is_label(version) || !version.starts_with(|first: char| first.is_ascii_lowercase()) {
            problems.add(&field, "must be a DNS label that begins with a letter");
        }
    }
    if !versions.iter().any(|version| version == CONTEXT_VERSION) {
        problems.add(
            FIELD,
            format_args!("must have {CONTEXT_VERSION}, the only supported version"),
        );
    }
}

impl InterpreterClientConfig {
    /// Returns the server, or adds problems (`ValidateWebhookURL` and `ValidateWebhookService` of
    /// `k8s.io/apiserver`).
    fn server(&self, problems: &mut FieldProblems) -> Option<ServerReference> {
        let bundle = self.ca_bundle(problems);
        match (&self.url, &self.service) {
            (Some(_), Some(_)) => problems.add("", "must not have both url and service"),
            (None, None) => problems.add("", "must have url or service"),
            (Some(url), None) => match ServerReference::url(url, bundle?) {
                Ok(server) => return Some(server),
                Err(error) => problems.add("url", error),
            },
            (None, Some(service)) => {
                let mut is_right = true;
                problems.in_field("service", |problems| is_right = service.check(problems));
                let port = service.port.unwrap_or(DEFAULT_PORT);
                let path = service.path.as_deref().unwrap_or_default();
                if is_right {
                    match ServerReference::service(&service.namespace, &service.name, port, path, bundle?) {
                        Ok(server) => return Some(server),
                        Err(error) => problems.add("service", error),
                    }
                }
            }
        }
        None
    }

    /// Returns the CA certificates in PEM; empty if there are none.
    fn ca_bundle(&self, problems: &mut FieldProblems) -> Option<Vec<u8>> {
        let mut encoded = self.ca_bundle.clone().unwrap_or_default();
        // Go's decoder skips line breaks.
        encoded.retain(|letter| !matches!(letter, '\r' | '\n'));
        let Ok(bundle) = STANDARD.decode(encoded) else {
            problems.add("caBundle", "must be base64");
            return None;
        };
        if !bundle.is_empty()
            && let Err(error) = check_ca_bundle(&bundle)
        {
            problems.add("caBundle", error);
            return None;
        }
        Some(bundle)
    }
}

impl InterpreterService {
    /// Adds problems; returns whether there were none.
    fn check(&self, problems: &mut FieldProblems) -> bool {
        let mut wrong = Vec::new();
        for (field, name) in [("namespace", &self.namespace), ("name", &self.name)] {
            if name.is_empty() {
                wrong.push((field, "must not be empty".to_owned()));
            } else if !is_label(name) {
                wrong.push((field, "must be a DNS label".to_owned()));
            }
        }
        if self.port.is_some_and(|port| !(1..=65_535).contains(&port)) {
            wrong.push(("port", "must be 1 to 65535".to_owned()));
        }
        if let Some(problem) = self.path.as_deref().and_then(path_problem) {
            wrong.push(("path", problem));
        }
        for (field, problem) in &wrong {
            problems.add(field, problem);
        }
        wrong.is_empty()
    }
}

/// Returns the problem of a Service's path, if any.
fn path_problem(path: &str) -> Option<String> {
    if path.is_empty() || path == "/" {
        return None;
    }
    let Some(path) = path.strip_prefix('/') else {
        return Some("must begin with /".to_owned());
    };
    let path = path.strip_suffix('/').unwrap_or(path);
    let segments = path.split('/').enumerate();
    segments.into_iter().find_map(|(index, segment)| match segment {
        "" => Some(format!("segment {} must not be empty", index + 1)),
        segment if is_subdomain(segment) => None,
        segment => Some(format!("segment {segment:?} must be a DNS name")),
    })
}

/// A webhook, shared by its interpreters.
pub(crate) type SharedWebhook = Arc<ConfiguredWebhook>;
