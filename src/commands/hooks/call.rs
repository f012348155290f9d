//! `windlass hooks call`: sends a request to handlers, as a controller does.

use std::{
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use futures::{FutureExt, future::BoxFuture};
use kube::Client;
use runtime_hooks::{
    Catalog, HookReference,
    catalog::HookDefinition,
    client::{CallOptions, HookCallError, HookClient},
    in_cluster::ClusterNamespaces,
    registry::RegisteredHandler,
};
use serde::Serialize;
use serde_json::{Map, Value};
use webhook_transport::client::{Resolve, Transport, TransportOptions};
use windlass_object::text::OneLine;

use super::{known_configs::KnownConfigs, port_forward::PortForward};
use crate::{
    commands::{cluster::ClusterArgs, connect::connect, documents},
    terminal::{Format, print, yaml},
};

const AFTER_HELP: &str =
    "Handlers are really called, with all their effects. The request is JSON or YAML with the fields of
the hook's request: see windlass hooks describe HOOK. Outside of the cluster, servers behind
Services are reached by port forwarding.";

/// Calls the handlers of a hook one after another, and prints responses and durations.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    /// Hook, such as BeforeClusterCreate.
    #[arg(value_name = "HOOK")]
    hook: String,

    /// File with the request; - is standard input.
    #[arg(long, value_name = "FILE")]
    request: PathBuf,

    /// Call only the handlers of this ExtensionConfig.
    #[arg(long, value_name = "NAME")]
    config: Option<String>,

    /// Namespace of the object [default: that of the request's cluster, or "default"].
    #[arg(short, long)]
    namespace: Option<String>,

    /// Connect to this address instead; certificates are still verified.
    #[arg(long, value_name = "ADDRESS:PORT")]
    via: Option<SocketAddr>,

    /// Only show the handlers and their requests.
    #[arg(long)]
    dry_run: bool,

    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,

    #[command(flatten)]
    cluster: ClusterArgs,
}

/// One call, for structured output.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct HandlerCall {
    handler: String,
    url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    milliseconds: Option<u128>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// A resolver that returns the same address for every name.
struct FixedAddress(SocketAddr);

/// Maximum size of a request in bytes, as on servers.
const LARGEST_REQUEST: u64 = 20 << 20;

/// Time limit for all handlers together.
const BUDGET: Duration = Duration::from_secs(600);

impl Args {
    /// Calls the handlers.
    ///
    /// # Errors
    ///
    /// When no handler can be called. A failed handler sets the exit code.
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let catalog = Arc::new(Catalog::cluster_api());
        let definition = definition(&catalog, &self.hook)?;
        let request = read(&self.request)?;
        let shown = self.request.display();
        let checked = definition.check_request(&Value::Object(request.clone()));
        checked.with_context(|| format!("{shown} is not a request of {}", self.hook))?;
        let client = connect(self.cluster.kubeconfig()).await?;
        let known = KnownConfigs::read(&client).await?;
        let handlers = self.handlers(&known, definition.reference())?;
        let namespace = self.namespace(&request);
        let transport = Transport::new(TransportOptions {
            system_roots: true,
            user_agent: concat!("windlass/", env!("CARGO_PKG_VERSION")).to_owned(),
            ..self.options(&client, &handlers)
        });
        let hooks = HookClient::new(catalog.clone(), Arc::new(known.registry), transport)
            .with_namespaces(Arc::new(ClusterNamespaces::new(client)))
            .with_circuit_breaker(None);
        let mut all = Vec::new();
        let started = Instant::now();
        for handler in handlers {
            let mut called = HandlerCall::new(&handler);
            if self.dry_run {
                let request = Value::Object(request.clone());
                called.request = Some(hooks.request_json(definition.reference(), &handler, &request)?);
                all.push(called);
                continue;
            }
            if self.output == Format::Table {
                eprintln!("Calling {} at {}", OneLine(&called.handler), OneLine(&called.url));
            }
            let begun = Instant::now();
            let options = CallOptions {
                budget: Some(BUDGET.saturating_sub(started.elapsed())),
                ..CallOptions::default()
            };
            let request = Value::Object(request.clone());
            let answered = hooks
                .call_json(
                    definition.reference(),
                    &handler.name,
                    &namespace,
                    request,
                    options,
                )
                .await;
            called.milliseconds = Some(begun.elapsed().as_millis());
            match answered {
                Ok(response) => called.response = Some(response),
                Err(error) => called.error = Some(problem(error)),
            }
            all.push(called);
        }
        let has_failed = all.iter().any(|called| called.error.is_some());
        let text = format_calls(&all)?;
        print(self.output, &all, || text)?;
        Ok(if has_failed {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        })
    }

    fn handlers(
        &self,
        known: &KnownConfigs,
        hook: &HookReference,
    ) -> anyhow::Result<Vec<Arc<RegisteredHandler>>> {
        if let Some(config) = &self.config
            && known.find(config).is_none()
        {
            bail!("ExtensionConfig {config:?} not found: to list all, run windlass hooks list");
        }
        let mut handlers = known.registry.list(hook)?;
        handlers.retain(|handler| {
            self.config
                .as_ref()
                .is_none_or(|config| *config == handler.config.name)
        });
        if handlers.is_empty() {
            let problem = self.config.as_ref().and_then(|config| known.problem(config));
            match problem {
                Some(problem) => bail!("no handler of {} is registered: {}", self.hook, OneLine(&problem)),
                None => bail!(
                    "no handler of {} is registered: to list all, run windlass hooks list",
                    self.hook
                ),
            }
        }
        Ok(handlers)
    }

    /// Returns the namespace of the request's object.
    fn namespace(&self, request: &Map<String, Value>) -> String {
        let cluster = || request.get("cluster")?.pointer("/metadata/namespace")?.as_str();
        let named = self.namespace.as_deref().or_else(cluster);
        named.unwrap_or("default").to_owned()
    }

    fn options(&self, client: &Client, handlers: &[Arc<RegisteredHandler>]) -> TransportOptions {
        let mut servers = handlers.iter().map(|handler| &handler.config.server);
        let resolver: Arc<dyn Resolve> = match self.via {
            Some(address) => Arc::new(FixedAddress(address)),
            None if PortForward::is_needed()
                && servers.any(|server| PortForward::is_service_host(server.host())) =>
            {
                Arc::new(PortForward::new(client.clone()))
            }
            None => return TransportOptions::default(),
        };
        TransportOptions {
            resolver,
            proxies: false,
            ..TransportOptions::default()
        }
    }
}

/// Returns the newest version of a hook.
fn definition<'c>(catalog: &'c Catalog, name: &str) -> anyhow::Result<&'c HookDefinition> {
    let found = catalog.named(name).last();
    if let Some(found) = found.filter(|hook| !hook.metadata().singleton) {
        return Ok(found);
    }
    let all: Vec<_> = catalog
        .hooks()
        .filter(|hook| !hook.metadata().singleton)
        .map(|hook| hook.reference().hook.as_str())
        .collect();
    bail!(
        "{name:?} is not a hook with handlers: use one of {}",
        all.join(", ")
    )
}

/// Reads a request from a JSON or YAML file.
fn read(path: &Path) -> anyhow::Result<Map<String, Value>> {
    match <[Value; 1]>::try_from(documents::read(path, LARGEST_REQUEST)?) {
        Ok([Value::Object(request)]) => Ok(request),
        _ => bail!(
            "{} must contain one object: the fields of a request",
            path.display()
        ),
    }
}

/// Describes an error without the name of the handler, which is the heading.
fn problem(error: HookCallError) -> String {
    match error {
        HookCallError::Handler { source, .. } => source.to_string(),
        error => error.to_string(),
    }
}

fn format_calls(all: &[HandlerCall]) -> anyhow::Result<String> {
    let mut text = String::new();
    for called in all {
        let took = called
            .milliseconds
            .map_or_else(String::new, |took| format!(", {took} ms"));
        text.push_str(&format!(
            "# {} ({}{took})\n",
            OneLine(&called.handler),
            OneLine(&called.url)
        ));
        match (
            &called.error,
            called.response.as_ref().or(called.request.as_ref()),
        ) {
            (Some(error), _) => text.push_str(&format!("error: {}\n", OneLine(error))),
            (None, Some(body)) => text.push_str(&yaml::document(body)?),
            (None, None) => {}
        }
    }
    Ok(text)
}

impl HandlerCall {
    fn new(handler: &RegisteredHandler) -> Self {
        Self {
            handler: handler.name.clone(),
            url: format!("https://{}{}", handler.config.server.authority(), handler.path()),
            milliseconds: None,
            request: None,
            response: None,
            error: None,
        }
    }
}

impl Resolve for FixedAddress {
    fn resolve(&self, _: String, _: u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
        let addresses = vec![self.0];
        async move { Ok(addresses) }.boxed()
    }
}
