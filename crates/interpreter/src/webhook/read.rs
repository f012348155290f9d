//! From objects, whatever is in them, to webhooks.

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

/// The kind of objects that hold webhooks.
pub(crate) const CONFIGURATION_KIND: &str = "ResourceInterpreterWebhookConfiguration";

/// The only version of what is sent.
const CONTEXT_VERSION: &str = "v1alpha1";

/// How long a call may take where nothing is said, in seconds.
const DEFAULT_TIMEOUT: u64 = 10;

/// The port of a Service where none is given.
const DEFAULT_PORT: i64 = 443;

/// An object that holds webhooks, as far as it could be read.
#[derive(Debug)]
pub(crate) struct WebhookConfiguration {
    pub(crate) webhooks: Vec<ConfiguredWebhook>,
    pub(crate) problems: Vec<CustomizationProblem>,
}

/// A webhook that is asked.
#[derive(Debug)]
pub(crate) struct ConfiguredWebhook {
    /// `<configuration>/<webhook>`, among all webhooks. They count in the order of these.
    pub(crate) uid: String,
    /// The name of the object.
    pub(crate) configuration: String,
    /// Its own.
    pub(crate) name: String,
    pub(crate) rules: Vec<RuleMatcher>,
    pub(crate) policy: InterpreterFailurePolicy,
    /// The Service that its configuration names.
    pub(crate) service: Option<InterpreterService>,
    /// How it is called, or why it cannot be.
    pub(crate) called: Result<WebhookCall, Vec<CustomizationProblem>>,
}

/// How a webhook is called.
#[derive(Debug)]
pub(crate) struct WebhookCall {
    pub(crate) server: ServerReference,
    pub(crate) timeout: Duration,
}

// === impl WebhookConfiguration ===

impl WebhookConfiguration {
    /// The name of an object that holds webhooks.
    ///
    /// # Errors
    ///
    /// When it is of another kind or has no name.
    pub(crate) fn name(object: &Value) -> Result<&str, Vec<CustomizationProblem>> {
        let mut problems = FieldProblems::default();
        let text = |pointer| object::text(object, pointer).unwrap_or_default();
        if (text("/apiVersion"), text("/kind")) != (KARMADA_API_VERSION, CONFIGURATION_KIND) {
            let message = format!("must be {CONFIGURATION_KIND} of {KARMADA_API_VERSION}");
            problems.note("kind", message);
        }
        let name = text("/metadata/name");
        if name.is_empty() {
            problems.note("metadata.name", "must not be empty");
        }
        problems.or(|| Some(name))
    }

    /// Reads the webhooks of the object `configuration`. One that cannot be called, whose rules can be read, is there too.
    pub(crate) fn read(configuration: &str, object: &Value) -> Self {
        let mut problems = FieldProblems::default();
        let mut webhooks: Vec<ConfiguredWebhook> = Vec::new();
        let items = match object.get("webhooks") {
            Some(Value::Array(items)) => items.as_slice(),
            None | Some(Value::Null) => &[],
            Some(_) => {
                problems.note("webhooks", "must be a list");
                &[]
            }
        };
        for (index, item) in items.iter().enumerate() {
            let mut item = item.clone();
            // What is null is absent to an API server.
            drop_nulls(&mut item);
            let mut own = FieldProblems::below(format!("webhooks[{index}]"));
            let webhook = read_webhook(configuration, item, &mut own);
            if let Some(webhook) = &webhook
                && webhooks.iter().any(|earlier| earlier.name == webhook.name)
            {
                own.note("name", format_args!("duplicate {:?}", webhook.name));
            }
            let own = own.into_problems();
            problems.extend(own.clone());
            webhooks.extend(webhook.map(|webhook| webhook.unless(own)));
        }
        Self {
            webhooks,
            problems: problems.into_problems(),
        }
    }
}

// === impl ConfiguredWebhook ===

impl ConfiguredWebhook {
    /// Is not called if anything is wrong with it.
    fn unless(self, problems: Vec<CustomizationProblem>) -> Self {
        match problems.is_empty() {
            true => self,
            false => Self {
                called: Err(problems),
                ..self
            },
        }
    }
}

/// A webhook whose rules can be read, and what is wrong with it.
fn read_webhook(configuration: &str, item: Value, problems: &mut FieldProblems) -> Option<ConfiguredWebhook> {
    let rules = item.get("rules").cloned();
    let name = object::text(&item, "/name").unwrap_or_default().to_owned();
    let uid = format!("{configuration}/{name}");
    let Some(webhook) = typed::<ResourceInterpreterWebhook>(item, problems) else {
        // Who is asked about what is known: not to be called is not to have said nothing.
        let rules = serde_json::from_value::<Vec<RuleWithOperations>>(rules?).ok()?;
        return Some(ConfiguredWebhook {
            uid,
            configuration: configuration.to_owned(),
            name,
            rules: rules.iter().map(RuleMatcher::of).collect(),
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
        problems.note("timeoutSeconds", "must be 1 to 30");
    }
    check_versions(&webhook.interpreter_context_versions, problems);
    for (index, rule) in webhook.rules.iter().enumerate() {
        problems.within(format_args!("rules[{index}]"), |problems| rule.check(problems));
    }
    let mut server = None;
    problems.within("clientConfig", |problems| {
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
        rules: webhook.rules.iter().map(RuleMatcher::of).collect(),
        policy: webhook.failure_policy,
        service: webhook.client_config.service,
        called: server
            .map(|server| WebhookCall { server, timeout })
            .ok_or_else(Vec::new),
    })
}

fn typed<T: DeserializeOwned>(item: Value, problems: &mut FieldProblems) -> Option<T> {
    let read = serde_path_to_error::deserialize(item);
    read.map_err(|error: serde_path_to_error::Error<serde_json::Error>| {
        let path = error.path().to_string();
        problems.note(if path == "." { "" } else { &path }, error.inner());
    })
    .ok()
}

fn check_name(name: &str, problems: &mut FieldProblems) {
    if name.is_empty() {
        problems.note("name", "must not be empty");
    } else if !is_subdomain(name) || !name.contains('.') {
        problems.note(
            "name",
            "must be a DNS name of at least two labels, for example workloads.example.com",
        );
    }
}

fn check_versions(versions: &[String], problems: &mut FieldProblems) {
    const FIELD: &str = "interpreterContextVersions";
    if versions.is_empty() {
        problems.note(FIELD, format_args!("must not be empty; use {CONTEXT_VERSION}"));
        return;
    }
    for (index, version) in versions.iter().enumerate() {
        let field = format!("{FIELD}[{index}]");
        if versions[..index].contains(version) {
            problems.note(&field, format_args!("duplicate {version:?}"));
        }
        // RFC 1035 has labels begin with a letter.
        if !is_label(version) || !version.starts_with(|first: char| first.is_ascii_lowercase()) {
            problems.note(&field, "must be a DNS label that begins with a letter");
        }
    }
    if !versions.iter().any(|version| version == CONTEXT_VERSION) {
        problems.note(
            FIELD,
            format_args!("must have {CONTEXT_VERSION}, the only version there is"),
        );
    }
}

// === impl InterpreterClientConfig ===

impl InterpreterClientConfig {
    /// Who is called, or what speaks against it (`ValidateWebhookURL` and `ValidateWebhookService` of `k8s.io/apiserver`).
    fn server(&self, problems: &mut FieldProblems) -> Option<ServerReference> {
        let bundle = self.ca_bundle(problems);
        match (&self.url, &self.service) {
            (Some(_), Some(_)) => problems.note("", "must have one of url and service"),
            (None, None) => problems.note("", "must have url or service"),
            (Some(url), None) => match ServerReference::url(url, bundle?) {
                Ok(server) => return Some(server),
                Err(error) => problems.note("url", error),
            },
            (None, Some(service)) => {
                let mut is_right = true;
                problems.within("service", |problems| is_right = service.check(problems));
                let port = service.port.unwrap_or(DEFAULT_PORT);
                let path = service.path.as_deref().unwrap_or_default();
                if is_right {
                    match ServerReference::service(&service.namespace, &service.name, port, path, bundle?) {
                        Ok(server) => return Some(server),
                        Err(error) => problems.note("service", error),
                    }
                }
            }
        }
        None
    }

    /// Certificates, PEM; empty where there are none.
    fn ca_bundle(&self, problems: &mut FieldProblems) -> Option<Vec<u8>> {
        let mut encoded = self.ca_bundle.clone().unwrap_or_default();
        // Go's decoder skips line breaks.
        encoded.retain(|letter| !matches!(letter, '\r' | '\n'));
        let Ok(bundle) = STANDARD.decode(encoded) else {
            problems.note("caBundle", "must be base64");
            return None;
        };
        if !bundle.is_empty()
            && let Err(error) = check_ca_bundle(&bundle)
        {
            problems.note("caBundle", error);
            return None;
        }
        Some(bundle)
    }
}

// === impl InterpreterService ===

impl InterpreterService {
    /// Notes what speaks against it, and whether there was nothing.
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
            problems.note(field, problem);
        }
        wrong.is_empty()
    }
}

/// What speaks against the path of a Service.
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

/// What is shared by those who are asked.
pub(crate) type SharedWebhook = Arc<ConfiguredWebhook>;
