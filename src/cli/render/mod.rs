//! `windlass render`: what an install of a bundle would apply.

mod output;

use std::{fmt::Display, path::PathBuf, process::ExitCode};

use anyhow::Context;
use clap::ValueEnum;

use self::output::Output;
use crate::{
    domain::{
        bundle::{Bundle, Problem, rule},
        check,
        render::{self, DeploymentConfig, Options, Rendered},
    },
    sources,
};

/// Prints what an install of a bundle would apply, as YAML.
///
/// The bundle is checked first. Beside a running operator, which issues the certificates, it can be installed with
/// `windlass render … | kubectl apply --server-side -f -`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The bundle: a folder with manifests/ and metadata/, a .tar.gz of it, or - for such an archive on standard input.
    bundle: PathBuf,

    /// The namespace to install into.
    #[arg(short, long, value_parser = namespace)]
    namespace: String,

    /// A namespace that the operator is to watch; may be given several times [default: all namespaces].
    #[arg(long = "watch-namespace", value_name = "NAMESPACE", value_parser = namespace)]
    watch_namespaces: Vec<String>,

    /// A file with changes to the Deployments: env, envFrom, volumes, volumeMounts, tolerations, resources, nodeSelector,
    /// affinity and annotations as in OLM's deployment configuration, and windlass with readinessProbe, preStop and
    /// rollingUpdate, each of which turns off with false what is added to Deployments that serve webhooks, and with
    /// canary, which has no part in what is rendered.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Who gives webhooks their certificates.
    #[arg(long, value_enum, default_value_t = Certificates::Windlass)]
    certificates: Certificates,

    /// Write one file an object into DIR, which must be empty or not there.
    #[arg(short = 'o', long, value_name = "DIR")]
    output_dir: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Certificates {
    /// Windlass: ServingCertificates, mounted where operators look for them.
    Windlass,
    /// Nobody: what OLM v1 renders without a certificate provider.
    None,
}

// === impl Args ===

impl Args {
    /// Renders the bundle.
    ///
    /// # Errors
    ///
    /// When the output cannot be written; what is wrong with the input is printed and in the exit code.
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        tokio::task::spawn_blocking(move || self.render())
            .await
            .context("rendering the bundle")?
    }

    fn render(&self) -> anyhow::Result<ExitCode> {
        // Where nothing can be written, nothing else matters.
        let output = Output::new(self.output_dir.clone())?;
        match self.rendered() {
            Ok(rendered) => {
                output.write(&rendered.manifests())?;
                Ok(ExitCode::SUCCESS)
            }
            Err(lines) => {
                for line in lines {
                    eprintln!("{line}");
                }
                Ok(ExitCode::FAILURE)
            }
        }
    }

    /// The rendered bundle, or a line for everything that is wrong.
    fn rendered(&self) -> Result<Rendered, Vec<String>> {
        let bundle = self.checked_bundle().map_err(lines)?;
        let options = Options {
            namespace: self.namespace.clone(),
            watch_namespaces: self.watch_namespaces.clone(),
            config: self.deployment_config().map_err(lines)?,
            certificates: match self.certificates {
                Certificates::Windlass => render::Certificates::default(),
                Certificates::None => render::Certificates::None,
            },
        };
        render::render(&bundle, &options).map_err(lines)
    }

    fn checked_bundle(&self) -> Result<Bundle, Vec<Problem>> {
        let files = sources::load(&self.bundle)
            .map_err(|error| vec![Problem::of_bundle(error.file(), rule::SOURCE, error.to_string())])?;
        let problems = check::check_files(&files);
        if !problems.is_empty() {
            return Err(problems);
        }
        Bundle::parse(&files)
    }

    fn deployment_config(&self) -> Result<DeploymentConfig, Vec<Problem>> {
        let Some(path) = &self.config else {
            return Ok(DeploymentConfig::default());
        };
        let file = path.display().to_string();
        let bytes = std::fs::read(path).map_err(|error| {
            vec![Problem::of_bundle(
                &file,
                rule::SOURCE,
                format!("cannot be read: {error}"),
            )]
        })?;
        DeploymentConfig::parse(&file, &bytes)
    }
}

fn lines(problems: Vec<impl Display>) -> Vec<String> {
    problems.into_iter().map(|problem| problem.to_string()).collect()
}

/// The name of a namespace: a label of RFC 1123.
fn namespace(text: &str) -> Result<String, String> {
    let is_alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_label = text.len() <= 63
        && text.bytes().all(|byte| byte == b'-' || is_alphanumeric(byte))
        && [text.bytes().next(), text.bytes().last()]
            .iter()
            .all(|byte| byte.is_some_and(is_alphanumeric));
    if is_label {
        Ok(text.to_owned())
    } else {
        Err(
            "a namespace is named with at most 63 of a-z, 0-9 and -, and neither starts nor ends with -"
                .to_owned(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_are_labels() {
        for (text, is_namespace) in [
            ("a", true),
            ("0-a", true),
            ("", false),
            ("-a", false),
            ("a-", false),
            ("a.b", false),
            ("A", false),
            (&"a".repeat(63), true),
            (&"a".repeat(64), false),
        ] {
            assert_eq!(namespace(text).is_ok(), is_namespace, "{text}");
        }
    }
}
