//! `windlass hooks serve`: an extension with responses from files.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context, bail};
use runtime_hooks::{
    Catalog, HookReference,
    discovery::FailurePolicy,
    server::{CallContext, HandlerOptions, HookServer},
};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use webhook_transport::{
    CertificateFiles, LiveCertificate,
    server::{HttpVersions, ServerOptions, ServerTls},
};
use windlass_object::text::OneLine;

use crate::commands::run::shutdown;

const AFTER_HELP: &str =
    "HANDLER.HOOK.json is the response of HANDLER to HOOK, such as quota.BeforeClusterCreate.json with
{\"status\": \"Success\", \"retryAfterSeconds\": 5}. Responses are read for each request, the list of
files only at the start. Each request is printed as a line of JSON.";

/// Serves runtime hooks with responses from files, for tests.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    /// Folder with files HANDLER.HOOK.json.
    #[arg(long, value_name = "DIR")]
    responses: PathBuf,

    /// Folder with tls.crt and tls.key, reloaded on changes.
    #[arg(long, value_name = "DIR")]
    cert_dir: PathBuf,

    /// Address to listen on.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9443")]
    address: SocketAddr,

    /// Base path, as in the ExtensionConfig.
    #[arg(long, value_name = "PATH", default_value = "/")]
    path: String,

    /// Timeout of each handler, in seconds, for discovery.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(i32).range(1..=30))]
    timeout: Option<i32>,

    /// Let callers ignore failed calls.
    #[arg(long)]
    ignore_failures: bool,
}

/// A handler and its response file.
#[derive(Debug, PartialEq, Eq)]
struct Script {
    handler: String,
    hook: HookReference,
    file: PathBuf,
}

/// How often the certificate is checked for changes.
const PERIOD: Duration = Duration::from_secs(1);

impl Args {
    /// Serves until it is interrupted.
    ///
    /// # Errors
    ///
    /// When there are no response files, or the address cannot be listened on.
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let catalog = Catalog::cluster_api();
        let scripts = scripts(&self.responses, &catalog)?;
        let mut server = HookServer::new(catalog).with_path_prefix(&self.path);
        for Script { handler, hook, file } in &scripts {
            let options = HandlerOptions {
                timeout_seconds: self.timeout,
                failure_policy: self.ignore_failures.then_some(FailurePolicy::Ignore),
                ..HandlerOptions::default()
            };
            let file = file.clone();
            let answer = move |request, call: CallContext| answer(file.clone(), request, call);
            server = server
                .handle_json(hook, handler, options, answer)
                .with_context(|| {
                    format!(
                        "{}",
                        self.responses
                            .join(format!("{handler}.{}.json", hook.hook))
                            .display()
                    )
                })?;
        }
        let files = CertificateFiles::in_folder(&self.cert_dir);
        let certificate = LiveCertificate::follow(files, PERIOD).context("cannot serve the certificate")?;
        let tls = ServerTls::new(certificate, HttpVersions::Http1And2)?;
        let listener = TcpListener::bind(self.address)
            .await
            .with_context(|| format!("cannot listen on {}", self.address))?;
        eprintln!("Serving {} handlers on {}", scripts.len(), listener.local_addr()?);
        let ended = shutdown()?;
        server
            .serve(listener, tls, ServerOptions::default(), ended.cancelled())
            .await;
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns the handlers that have response files, by name.
fn scripts(folder: &Path, catalog: &Catalog) -> anyhow::Result<Vec<Script>> {
    let shown = folder.display();
    let mut scripts = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {shown}"))? {
        let file = entry.with_context(|| format!("cannot read {shown}"))?.path();
        let name = file
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        let Some((handler, hook)) = name.strip_suffix(".json").and_then(|name| name.split_once('.')) else {
            continue;
        };
        let Some(definition) = catalog.named(hook).last() else {
            bail!("{}: {:?} is not a hook", file.display(), hook);
        };
        scripts.push(Script {
            handler: handler.to_owned(),
            hook: definition.reference().clone(),
            file: file.clone(),
        });
    }
    if scripts.is_empty() {
        bail!("{shown} has no HANDLER.HOOK.json, such as quota.BeforeClusterCreate.json");
    }
    scripts.sort_by(|one, other| one.handler.cmp(&other.handler));
    Ok(scripts)
}

/// Returns the current content of a file.
async fn answer(file: PathBuf, request: Value, call: CallContext) -> Result<Value, String> {
    let asked = json!({ "hook": call.hook.hook, "handler": &*call.handler, "request": request });
    println!("{}", OneLine(&asked.to_string()));
    let shown = file.display();
    let text = tokio::fs::read(&file)
        .await
        .map_err(|error| format!("cannot read {shown}: {error}"))?;
    serde_json::from_slice(&text).map_err(|error| format!("{shown}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_handlers() {
        let folder = tempfile::tempdir().unwrap();
        let catalog = Catalog::cluster_api();
        let problem = |folder: &Path| scripts(folder, &catalog).unwrap_err().to_string();
        assert!(problem(folder.path()).contains("has no HANDLER.HOOK.json"));
        for name in [
            "b.GeneratePatches.json",
            "a.BeforeClusterCreate.json",
            "README.md",
        ] {
            fs::write(folder.path().join(name), "{}").unwrap();
        }
        let found = scripts(folder.path(), &catalog).unwrap();
        let names: Vec<_> = found
            .iter()
            .map(|script| (&*script.handler, &*script.hook.hook))
            .collect();
        assert_eq!(names, [("a", "BeforeClusterCreate"), ("b", "GeneratePatches")]);
        fs::write(folder.path().join("c.BeforeCoffee.json"), "{}").unwrap();
        assert!(problem(folder.path()).ends_with("\"BeforeCoffee\" is not a hook"));
        assert!(problem(&folder.path().join("missing")).starts_with("cannot read "));
    }
}
