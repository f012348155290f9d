//! Tests our runtime hooks against Cluster API's own server, client and registry, which `e2e/runtime-hooks`
//! runs. Without Go, the tests are skipped with a message.

mod go_program;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, bail};
use base64::{Engine, engine::general_purpose::STANDARD};
use runtime_hooks::{
    Catalog, Hook, HookReference, Registry,
    client::{CallOptions, HookClient},
    cluster_api::{BeforeClusterCreate, Discovery},
    registry::ExtensionConfig,
    server::{HandlerOptions, HookServer},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use test_authority::TestAuthority;
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    net::TcpListener,
    process::{Child, ChildStdout},
    sync::mpsc,
};
use webhook_transport::{
    CertificateFiles, LiveCertificate,
    client::{Transport, TransportOptions},
    server::{HttpVersions, ServerOptions, ServerTls},
};

/// The number of Cluster API's hooks, without Discovery.
const HOOKS: usize = 16;

const PATIENCE: Duration = Duration::from_secs(60);

/// The program with Cluster API's code, and the files of a test.
struct ClusterApi {
    program: PathBuf,
    directory: TempDir,
    ca_bundle: String,
}

/// A request and a response of a hook, with every field set.
struct Example {
    hook: HookReference,
    request: Value,
    response: Value,
}

/// A running program and its output.
struct Running {
    _child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

#[tokio::test]
async fn our_client_works_with_the_server_of_cluster_api() -> anyhow::Result<()> {
    let Some(cluster_api) = ClusterApi::build()? else {
        return Ok(());
    };
    let mut server = cluster_api.serve().await?;
    let address = server.line().await?["address"]
        .as_str()
        .context("no address")?
        .to_owned();
    let mut config = cluster_api.extension_config(&format!("https://{address}"));
    config["spec"]["settings"] = json!({"config": "setting", "key": "theirs"});
    let config = ExtensionConfig::read(&config)?;

    let catalog = Arc::new(Catalog::cluster_api());
    let registry = Arc::new(Registry::listed());
    let transport = Transport::new(TransportOptions {
        proxies: false,
        ..TransportOptions::default()
    });
    let client = HookClient::new(catalog.clone(), registry.clone(), transport);
    let discovered = client.discover(&config).await?;
    anyhow::ensure!(discovered.unknown.is_empty(), "{discovered:?}");
    anyhow::ensure!(discovered.handlers.len() == HOOKS, "{discovered:?}");
    registry.register(config, discovered.handlers)?;

    let mut called = 0;
    for Example {
        hook,
        request,
        response,
    } in cluster_api.examples()?
    {
        if hook == Discovery::reference() {
            continue;
        }
        let handlers = registry.list(&hook)?;
        let [handler] = handlers.as_slice() else {
            bail!("{hook} has {} handlers", handlers.len());
        };
        let answered = client
            .call_json(
                &hook,
                &handler.name,
                "namespace",
                request.clone(),
                CallOptions::default(),
            )
            .await?;
        anyhow::ensure!(
            without_type(answered.clone()) == without_type(response.clone()),
            "{hook}: {answered} instead of {response}"
        );
        catalog.get(&hook).context("unknown")?.check_response(&answered)?;
        let asked = server.line().await?;
        anyhow::ensure!(
            asked["hook"] == *hook.hook && asked["handler"] == handler.short_name(),
            "{asked}"
        );
        let mut expected = request;
        expected["settings"] = json!({"config": "setting", "key": "value"});
        anyhow::ensure!(
            without_type(asked["request"].clone()) == without_type(expected.clone()),
            "{hook}: {asked} instead of {expected}"
        );
        called += 1;
    }
    anyhow::ensure!(called == HOOKS, "{called} hooks were called");

    let all = client
        .call_all::<BeforeClusterCreate>("namespace", &<_>::default(), CallOptions::default())
        .await?;
    anyhow::ensure!(
        (&*all.message, all.retry_after_seconds) == ("message", 1),
        "{all:?}"
    );
    Ok(())
}

#[tokio::test]
async fn the_client_of_cluster_api_works_with_our_server() -> anyhow::Result<()> {
    let Some(cluster_api) = ClusterApi::build()? else {
        return Ok(());
    };
    let examples = cluster_api.examples()?;
    let (sender, mut asked) = mpsc::unbounded_channel();
    let mut server = HookServer::new(Catalog::cluster_api()).with_path_prefix("/hooks");
    for Example { hook, response, .. } in examples
        .iter()
        .filter(|example| example.hook != Discovery::reference())
    {
        let (response, sender) = (response.clone(), sender.clone());
        server = server.handle_json(
            hook,
            &hook.hook.to_lowercase(),
            HandlerOptions::default(),
            move |request, call| {
                let _ = sender.send((call.hook, request));
                std::future::ready(Ok(response.clone()))
            },
        )?;
    }
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("https://{}/hooks", listener.local_addr()?);
    let certificate = LiveCertificate::load(&CertificateFiles::in_folder(cluster_api.directory.path()))?;
    let tls = ServerTls::new(certificate, HttpVersions::Http1And2)?;
    tokio::spawn(server.serve(listener, tls, ServerOptions::default(), std::future::pending()));

    let mut config = cluster_api.extension_config(&url);
    config["spec"]["settings"] = json!({"config": "setting"});
    let output = cluster_api.call(&config).await?;
    let (first, calls) = output.split_first().context("the program printed nothing")?;
    let handlers = first["handlers"].as_array().context("no handlers")?;
    anyhow::ensure!(handlers.len() == HOOKS && first.get("error").is_none(), "{first}");
    let find_example = |name: &Value| examples.iter().find(|example| example.hook.hook == *name);
    let mut named = 0;
    for call in calls {
        let Example { response, .. } = find_example(&call["hook"]).context("an unknown hook")?;
        anyhow::ensure!(call.get("error").is_none(), "{call}");
        let answered = &call["response"];
        if call.get("handler").is_some() {
            named += 1;
            anyhow::ensure!(
                without_type(answered.clone()) == without_type(response.clone()),
                "{call} instead of {response}"
            );
        } else {
            anyhow::ensure!(answered["message"] == "message", "{call}");
        }
        let (hook, request) = asked.recv().await.context("no hook was called")?;
        anyhow::ensure!(call["hook"] == *hook.hook, "{hook} was called instead of {call}");
        let mut expected = call["request"].clone();
        expected["settings"]["config"] = "setting".into();
        anyhow::ensure!(
            without_type(request.clone()) == without_type(expected.clone()),
            "{request} instead of {expected}"
        );
    }
    anyhow::ensure!(named == HOOKS, "{named} handlers were called by name");
    Ok(())
}

/// Removes the type from a request or response: Go's server leaves it empty.
fn without_type(mut value: Value) -> Value {
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|name, _| name != "kind" && name != "apiVersion");
    }
    value
}

impl ClusterApi {
    /// Builds the program; returns [`None`] without Go.
    fn build() -> anyhow::Result<Option<Self>> {
        let Some(program) = go_program::build("runtime-hooks", "Cluster API's server and client")? else {
            return Ok(None);
        };
        let directory = TempDir::new()?;
        let authority = TestAuthority::new("test");
        let certificate = authority.server(&["127.0.0.1", "localhost"]);
        certificate.write(directory.path());
        Ok(Some(Self {
            program,
            directory,
            ca_bundle: STANDARD.encode(authority.pem()),
        }))
    }

    /// Returns an ExtensionConfig for a server with our certificate.
    fn extension_config(&self, url: &str) -> Value {
        json!({
            "apiVersion": "runtime.cluster.x-k8s.io/v1beta2", "kind": "ExtensionConfig",
            "metadata": {"name": "ext1"},
            "spec": {"clientConfig": {"url": url, "caBundle": self.ca_bundle}, "namespaceSelector": {}},
        })
    }

    /// Returns an example of each hook from Cluster API's catalog.
    fn examples(&self) -> anyhow::Result<Vec<Example>> {
        let output = Command::new(&self.program).arg("catalog").output()?;
        anyhow::ensure!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let lines =
            serde_json::Deserializer::from_slice(&output.stdout).into_iter::<BTreeMap<String, Value>>();
        lines
            .map(|line| {
                let mut line = line?;
                let text = |field: &str| {
                    line.get(field)
                        .and_then(Value::as_str)
                        .unwrap_or_default()
                        .to_owned()
                };
                Ok(Example {
                    hook: HookReference {
                        api_version: text("apiVersion"),
                        hook: text("hook"),
                    },
                    request: line.remove("request").context("no request")?,
                    response: line.remove("response").context("no response")?,
                })
            })
            .collect()
    }

    /// Calls all handlers of an ExtensionConfig with Cluster API's client, and returns its output.
    async fn call(&self, config: &Value) -> anyhow::Result<Vec<Value>> {
        let file = self.directory.path().join("extension-config.json");
        std::fs::write(&file, config.to_string())?;
        let mut command = tokio::process::Command::new(&self.program);
        let called = command.arg("call").arg("--extension-config").arg(file).output();
        let output = tokio::time::timeout(PATIENCE, called).await??;
        anyhow::ensure!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let lines = serde_json::Deserializer::from_slice(&output.stdout).into_iter();
        Ok(lines.collect::<Result<_, _>>()?)
    }

    /// Starts Cluster API's server.
    async fn serve(&self) -> anyhow::Result<Running> {
        let file = |name: &str| self.directory.path().join(name);
        let mut child = tokio::process::Command::new(&self.program)
            .arg("serve")
            .arg("--cert-file")
            .arg(file("tls.crt"))
            .arg("--key-file")
            .arg(file("tls.key"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let stdout = child.stdout.take().context("no output")?;
        Ok(Running {
            _child: child,
            lines: BufReader::new(stdout).lines(),
        })
    }
}

impl Running {
    /// Returns the next line of the output.
    async fn line(&mut self) -> anyhow::Result<Value> {
        let line = tokio::time::timeout(PATIENCE, self.lines.next_line()).await??;
        Ok(serde_json::from_str(&line.context("the program has ended")?)?)
    }
}
