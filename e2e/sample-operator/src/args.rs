//! The command line.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

use anyhow::Context;
use clap::{ArgAction, Parser, ValueEnum};

/// The default certificate folder of operators built with controller-runtime.
const CERTIFICATE_FOLDER: &str = "/tmp/k8s-webhook-server/serving-certs";

/// The variable in which the node maps mount paths of the pod to local folders.
const MOUNTS: &str = "WINDLASS_MOUNTS";

/// A webhook server for admission and conversion of the sample resources.
#[derive(Clone, Debug, Parser)]
#[command(name = "sample-operator", version)]
pub struct Args {
    /// The address to listen on.
    #[arg(long, env = "POD_IP", default_value = "0.0.0.0")]
    pub address: IpAddr,

    /// A port to listen on; may be repeated. Each connection may use TLS or plain HTTP; the server detects
    /// which.
    #[arg(long = "port", value_name = "PORT", default_value = "9443")]
    pub ports: Vec<u16>,

    /// The port of /healthz and /readyz. A stand-in opens no health port.
    #[arg(long, value_name = "PORT", default_value_t = 8081)]
    pub health_port: u16,

    /// The folder of tls.crt and tls.key. Default: the local folder of the mount
    /// /tmp/k8s-webhook-server/serving-certs.
    #[arg(long, value_name = "DIR")]
    pub cert_dir: Option<PathBuf>,

    /// Reload a changed certificate without a restart.
    #[arg(long, env = "RELOAD", value_name = "BOOL", default_value_t = true, default_missing_value = "true", num_args = 0..=1,
          require_equals = true, action = ArgAction::Set)]
    pub reload: bool,

    /// How long idle connections and the listening ports stay open on shutdown. By default both are closed
    /// immediately, as by a server of controller-runtime.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = parse_duration)]
    pub linger: Duration,

    /// Close connections that are idle for this long. By default they stay open.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub idle_timeout: Option<Duration>,

    /// How long /readyz fails after the start.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = parse_duration)]
    pub ready_after: Duration,

    /// A configuration file, for example from a mounted ConfigMap. While it is missing, every webhook returns
    /// 500.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// The path of the validating webhook.
    #[arg(long, value_name = "PATH", default_value = "/validate")]
    pub validate_path: String,

    /// The path of the mutating webhook.
    #[arg(long, value_name = "PATH", default_value = "/mutate")]
    pub mutate_path: String,

    /// The path of the conversion webhook.
    #[arg(long, value_name = "PATH", default_value = "/convert")]
    pub convert_path: String,

    /// The versions of the sample resources that this release supports.
    #[arg(long, value_delimiter = ',', default_value = "v1beta1,v1,v2")]
    pub versions: Vec<SampleVersion>,

    /// Stand in for another operator: on every path, allow all requests and convert by changing apiVersion
    /// only.
    #[arg(long, env = "STAND_IN")]
    pub stand_in: bool,

    /// A fault to simulate: never-ready, wrong-certificate, slow=DURATION, not-found, error, wrong-version,
    /// lose-field, refuse-conversion, crash, or admission-not-found, admission-error, admission-garbage or
    /// admission-silent; may be repeated.
    #[arg(long = "fault", value_name = "FAULT")]
    pub faults: Vec<Misbehavior>,
}

/// A version of the sample resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SampleVersion {
    /// `spec.width`: the size as a string.
    V1beta1,
    /// `spec.size`: an integer.
    V1,
    /// `spec.dimensions.size`: an integer.
    V2,
}

/// A fault to simulate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misbehavior {
    /// /readyz fails, and the webhook ports stay closed.
    NeverReady,
    /// The server serves an untrusted certificate.
    WrongCertificate,
    /// Every webhook responds only after this time.
    Slow(Duration),
    /// Every webhook returns 404.
    NotFound,
    /// Every webhook returns 500.
    Error,
    /// Converted objects keep their version.
    WrongVersion,
    /// Conversion removes the size.
    LoseField,
    /// Conversion webhooks return a failed result.
    RefuseConversion,
    /// The process exits immediately with an error.
    Crash,
    /// Admission webhooks have a fault; conversion works.
    Admission(AdmissionFault),
}

/// A fault of admission webhooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdmissionFault {
    /// They return 404.
    NotFound,
    /// They return 500.
    Error,
    /// They return something other than an AdmissionReview.
    Garbage,
    /// They never respond.
    Silent,
}

impl Args {
    /// Reports whether the fault is set.
    pub fn has(&self, fault: &Misbehavior) -> bool {
        self.faults.contains(fault)
    }

    /// Returns the ports to open.
    pub(crate) fn listening_ports(&self) -> BTreeSet<u16> {
        let mut ports = BTreeSet::new();
        if !self.has(&Misbehavior::NeverReady) {
            ports.extend(&self.ports);
        }
        if !self.stand_in {
            ports.insert(self.health_port);
        }
        ports
    }

    /// Returns the certificate folder: that of the flag, or the mounted one, or the default.
    pub(crate) fn certificate_folder(&self) -> anyhow::Result<PathBuf> {
        if let Some(folder) = &self.cert_dir {
            return Ok(folder.clone());
        }
        local(Path::new(CERTIFICATE_FOLDER))
    }

    /// Returns the local path of the file in `--config`.
    pub(crate) fn config_file(&self) -> anyhow::Result<Option<PathBuf>> {
        self.config.as_deref().map(local).transpose()
    }
}

/// Returns the local path of a path in the pod.
fn local(path: &Path) -> anyhow::Result<PathBuf> {
    let Ok(mounts) = std::env::var(MOUNTS) else {
        return Ok(path.to_owned());
    };
    let mounts: BTreeMap<String, PathBuf> =
        serde_json::from_str(&mounts).with_context(|| format!("cannot read the variable {MOUNTS}"))?;
    Ok(mounted(path, &mounts).unwrap_or_else(|| path.to_owned()))
}

/// Returns the local path of a path in one of the mounts; `None` if no mount contains it.
fn mounted(path: &Path, mounts: &BTreeMap<String, PathBuf>) -> Option<PathBuf> {
    path.ancestors().find_map(|folder| {
        let source = mounts.get(folder.to_str()?)?;
        let below = path.strip_prefix(folder).ok()?;
        Some(if below.as_os_str().is_empty() {
            source.clone()
        } else {
            source.join(below)
        })
    })
}

impl SampleVersion {
    /// Returns the name of the version in `apiVersion`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::V1beta1 => "v1beta1",
            Self::V1 => "v1",
            Self::V2 => "v2",
        }
    }

    /// Returns the version with this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::V1beta1, Self::V1, Self::V2]
            .into_iter()
            .find(|version| version.name() == name)
    }
}

impl FromStr for Misbehavior {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "never-ready" => Self::NeverReady,
            "wrong-certificate" => Self::WrongCertificate,
            "not-found" => Self::NotFound,
            "error" => Self::Error,
            "wrong-version" => Self::WrongVersion,
            "lose-field" => Self::LoseField,
            "refuse-conversion" => Self::RefuseConversion,
            "crash" => Self::Crash,
            "admission-not-found" => Self::Admission(AdmissionFault::NotFound),
            "admission-error" => Self::Admission(AdmissionFault::Error),
            "admission-garbage" => Self::Admission(AdmissionFault::Garbage),
            "admission-silent" => Self::Admission(AdmissionFault::Silent),
            _ => {
                let duration = text
                    .strip_prefix("slow=")
                    .ok_or_else(|| format!("unknown fault {text:?}"))?;
                Self::Slow(parse_duration(duration)?)
            }
        })
    }
}

/// Parses `500ms`, `2s`, `1m`.
fn parse_duration(text: &str) -> Result<Duration, String> {
    let error = || format!("{text:?} is not a duration such as 500ms, 2s or 1m");
    let unit = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(error)?;
    let number: u32 = text[..unit].parse().map_err(|_| error())?;
    match &text[unit..] {
        "ms" => Ok(Duration::from_millis(number.into())),
        "s" => Ok(Duration::from_secs(number.into())),
        "m" => Ok(Duration::from_secs(u64::from(number) * 60)),
        _ => Err(error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Args {
        Args::parse_from(["sample-operator"].iter().chain(arguments))
    }

    #[test]
    fn certificates_are_reloaded_by_default() {
        assert!(parse(&[]).reload);
        assert!(parse(&["--reload"]).reload);
        assert!(!parse(&["--reload=false"]).reload);
    }

    #[test]
    fn a_file_in_a_mount_is_read_from_the_local_folder() {
        let mounts = BTreeMap::from([("/etc/sample".to_owned(), PathBuf::from("/node/volume"))]);
        let found = |path: &str| mounted(Path::new(path), &mounts);
        assert_eq!(found("/etc/sample/a/b"), Some("/node/volume/a/b".into()));
        assert_eq!(found("/etc/sample"), Some("/node/volume".into()));
        assert_eq!(found("/etc/other"), None);
    }

    #[test]
    fn versions_are_a_list() {
        assert_eq!(
            parse(&["--versions", "v1beta1,v1"]).versions,
            [SampleVersion::V1beta1, SampleVersion::V1]
        );
    }

    #[test]
    fn a_server_that_is_never_ready_opens_only_its_health_port() {
        assert_eq!(
            parse(&["--fault", "never-ready"]).listening_ports(),
            BTreeSet::from([8081])
        );
        assert_eq!(parse(&[]).listening_ports(), BTreeSet::from([8081, 9443]));
        let stand_in = ["--stand-in", "--port", "9443", "--port", "8082"];
        assert_eq!(parse(&stand_in).listening_ports(), BTreeSet::from([8082, 9443]));
    }

    #[test]
    fn faults_are_parsed_or_rejected() {
        assert_eq!(
            "slow=250ms".parse(),
            Ok(Misbehavior::Slow(Duration::from_millis(250)))
        );
        assert_eq!("slow=2m".parse(), Ok(Misbehavior::Slow(Duration::from_secs(120))));
        assert_eq!(
            "admission-silent".parse(),
            Ok(Misbehavior::Admission(AdmissionFault::Silent))
        );
        for wrong in [
            "admission-",
            "slow",
            "slow=",
            "slow=5",
            "slow=s",
            "slow=9999999999s",
            "slow=1h",
            "late",
        ] {
            assert!(wrong.parse::<Misbehavior>().is_err(), "{wrong}");
        }
    }
}
