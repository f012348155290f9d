//! Tests the certificates of a rotation with a client of Go's `crypto/tls` and `crypto/x509`, which
//! kube-apiserver verifies webhooks with. The chains are built like those of the operator; `e2e/handshake` is
//! the client.

mod go_program;

use std::{
    path::PathBuf,
    process::{Command, ExitCode},
    sync::Arc,
};

use anyhow::{Context, bail};
use jiff::{SignedDuration, Timestamp};
use libtest_mimic::{Arguments, Trial};
use rustls::{
    ServerConfig,
    pki_types::{PrivateKeyDer, pem::PemObject},
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;
use windlass_api::{PrivateKeyAlgorithm, PrivateKeySpec as KeySpec};
use windlass_cluster::keys;
use windlass_trust::{
    pki::{CertificateAuthority, Credentials, DnsNames, PrivateKey, Terms, Validity},
    trust_bundle::TrustBundle,
};

/// A rotation from CA A to CA B. Z is the CA before A, and C the one after B.
struct Rotation {
    names: DnsNames,
    /// Issued by A.
    old_leaf: Credentials,
    /// Issued by B, with B's certificate signed by A in the chain.
    new_leaf: Credentials,
    /// Issued by B, without that certificate.
    new_leaf_alone: Credentials,
    /// {Z, A}: before B was published, or re-applied since.
    old: TrustBundle,
    /// {A, B}: with B published.
    new: TrustBundle,
    /// {B, C}: when every endpoint serves the new leaf.
    next: TrustBundle,
    /// {B}: after A was compromised.
    without_old: TrustBundle,
}

/// The compiled client.
struct Client {
    program: PathBuf,
    directory: TempDir,
}

/// The client's result for one server.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Verified,
    Refused(String),
}

fn main() -> ExitCode {
    // This fails only if a provider is installed already, and any provider will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let arguments = Arguments::from_args();
    let has_go = Command::new("go").arg("version").output().is_ok();
    if !has_go {
        eprintln!("go is missing, so these tests are skipped: install Go 1.26 or newer, https://go.dev/dl");
    }
    let algorithms = [
        (
            "every_leaf_verifies_for_go_with_ecdsa",
            PrivateKeyAlgorithm::Ecdsa,
        ),
        ("every_leaf_verifies_for_go_with_rsa", PrivateKeyAlgorithm::Rsa),
    ];
    let trials = algorithms.map(|(name, algorithm)| {
        let trial = Trial::test(name, move || {
            check(algorithm).map_err(|error| format!("{error:?}").into())
        });
        trial.with_ignored_flag(!has_go)
    });
    libtest_mimic::run(&arguments, trials.into()).exit_code()
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn check(algorithm: PrivateKeyAlgorithm) -> anyhow::Result<()> {
    let client = Client::build()?;
    let rotation = Rotation::new(algorithm).await?;
    let name = rotation.names.primary();
    let mut verified = 0;
    for (leaf, credentials) in [("old", &rotation.old_leaf), ("new", &rotation.new_leaf)] {
        for (bundle, trust) in [("old", &rotation.old), ("new", &rotation.new)] {
            let verdict = client.ask(credentials, trust, name).await?;
            anyhow::ensure!(
                verdict == Verdict::Verified,
                "the {leaf} leaf under the {bundle} bundle: {verdict:?}"
            );
            verified += 1;
        }
    }
    println!("{algorithm:?}: {verified} of 4 verified");
    let verdict = client.ask(&rotation.new_leaf, &rotation.next, name).await?;
    anyhow::ensure!(
        verdict == Verdict::Verified,
        "the new leaf under the next bundle: {verdict:?}"
    );
    for (what, credentials, trust, name, reason) in [
        (
            "another name",
            &rotation.new_leaf,
            &rotation.new,
            "other.system.svc",
            "not other.system.svc",
        ),
        (
            "a CA that is no longer trusted",
            &rotation.old_leaf,
            &rotation.without_old,
            name,
            "unknown authority",
        ),
        // Targets get the next bundle only after every endpoint was seen with the new leaf, because of this
        // case.
        (
            "the old leaf under the next bundle",
            &rotation.old_leaf,
            &rotation.next,
            name,
            "unknown authority",
        ),
        // This case is why A signs a certificate for B.
        (
            "the new leaf alone under the old bundle",
            &rotation.new_leaf_alone,
            &rotation.old,
            name,
            "unknown authority",
        ),
    ] {
        match client.ask(credentials, trust, name).await? {
            Verdict::Refused(why) if why.contains(reason) => {}
            verdict => bail!("{what}: {verdict:?}, expected a refusal with {reason:?}"),
        }
    }
    Ok(())
}

impl Rotation {
    async fn new(algorithm: PrivateKeyAlgorithm) -> anyhow::Result<Self> {
        let names = DnsNames::for_service("hook", "system", &[])?;
        let spec = KeySpec {
            algorithm,
            ..KeySpec::default()
        };
        let key = async || anyhow::Ok(PrivateKey::from(keys::generate(&spec).await?));
        let root = async |generation| {
            anyhow::Ok(CertificateAuthority::self_signed(
                &names,
                generation,
                key().await?,
                &terms(),
            )?)
        };
        let [z, a, b, c] = [root(0).await?, root(1).await?, root(2).await?, root(3).await?];
        let bundle = |roots: &[&CertificateAuthority]| {
            TrustBundle::new(roots.iter().map(|root| root.certificate().clone()))
        };
        let cross = a.cross_sign(b.certificate(), &terms())?;
        let serve = async |root: &CertificateAuthority, intermediates| {
            let key = key().await?;
            anyhow::Ok(Credentials::new(
                root.issue(&names, &key, &terms())?,
                intermediates,
                key,
            )?)
        };
        Ok(Self {
            old_leaf: serve(&a, Vec::new()).await?,
            new_leaf: serve(&b, vec![cross]).await?,
            new_leaf_alone: serve(&b, Vec::new()).await?,
            old: bundle(&[&z, &a])?,
            new: bundle(&[&a, &b])?,
            next: bundle(&[&b, &c])?,
            without_old: bundle(&[&b])?,
            names,
        })
    }
}

/// Returns a validity of one day from now.
fn terms() -> Terms {
    let now = Timestamp::now();
    Terms {
        serial: keys::serial(),
        now,
        validity: Validity {
            not_before: now - SignedDuration::from_mins(10),
            not_after: now + SignedDuration::from_hours(24),
        },
    }
}

impl Client {
    fn build() -> anyhow::Result<Self> {
        let program = go_program::build("handshake", "a Go client")?.context("go is missing")?;
        let directory = TempDir::with_prefix("windlass-handshake-")?;
        Ok(Self { program, directory })
    }

    /// Serves `credentials` to the client, which trusts `trust` and expects `name`.
    async fn ask(
        &self,
        credentials: &Credentials,
        trust: &TrustBundle,
        name: &str,
    ) -> anyhow::Result<Verdict> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let server = tokio::spawn(serve(listener, tls(credentials)?));
        let bundle = self.directory.path().join("ca.crt");
        std::fs::write(&bundle, trust.to_pem())?;
        let asked = tokio::process::Command::new(&self.program)
            .args(["-address", &address.to_string(), "-name", name, "-ca"])
            .arg(&bundle)
            .output()
            .await;
        server.abort();
        let asked = asked.context("running the client")?;
        let output = String::from_utf8_lossy(&asked.stdout).trim().to_owned();
        match output.split_once(": ") {
            None if output == "verified" => Ok(Verdict::Verified),
            Some(("refused", why)) => Ok(Verdict::Refused(why.to_owned())),
            _ => bail!(
                "the client printed {output:?}, {}",
                String::from_utf8_lossy(&asked.stderr)
            ),
        }
    }
}

fn tls(credentials: &Credentials) -> anyhow::Result<TlsAcceptor> {
    let chain = std::iter::once(credentials.leaf())
        .chain(credentials.intermediates())
        .map(|certificate| certificate.der().clone())
        .collect();
    let key = PrivateKeyDer::from_pem_slice(credentials.key().to_pem().as_bytes())?;
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Returns an empty object to every request.
async fn serve(listener: TcpListener, tls: TlsAcceptor) -> std::io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        // A client that rejects the certificate aborts the handshake, and reports the cause itself.
        let Ok(mut stream) = tls.accept(stream).await else {
            continue;
        };
        let mut request = [0; 4096];
        let read = stream.read(&mut request).await?;
        if read > 0 {
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
            stream.write_all(answer).await?;
            stream.shutdown().await?;
        }
    }
}
