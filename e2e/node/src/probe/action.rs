//! What is asked of a container: a TCP connection, an HTTP request, a command.

use std::{
    collections::BTreeMap,
    net::Ipv4Addr,
    path::{Path, PathBuf},
    sync::Arc,
};

use http_body_util::Empty;
use hyper::{Request, StatusCode, body::Bytes, client::conn::http1};
use hyper_util::rt::TokioIo;
use k8s_openapi::{
    api::core::v1::{Container, ExecAction, HTTPGetAction, Probe, TCPSocketAction},
    apimachinery::pkg::util::intstr::IntOrString,
};
use rustls::{
    ClientConfig, DigitallySignedStruct, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;

use crate::{
    environment::Variables,
    process::{Launch, Launcher},
};

/// What is asked of a container.
#[derive(Clone, Debug)]
pub(crate) enum ProbeAction {
    /// A connection.
    Connect(TCPSocketAction),
    /// A request whose answer is below 400.
    Get(HTTPGetAction),
    /// A command that ends with 0.
    Run(ExecAction),
    /// Nothing: always passes.
    Nothing,
}

/// The container that is asked.
#[derive(Clone, Copy)]
pub(crate) struct ProbedContainer<'a> {
    pub(crate) container: &'a Container,
    pub(crate) address: Ipv4Addr,
    pub(crate) launcher: &'a Launcher,
    pub(crate) variables: &'a Variables,
    pub(crate) mounts: Option<&'a BTreeMap<String, PathBuf>>,
    /// The container's own program is not there: commands are taken as done.
    pub(crate) stood_in: bool,
}

/// Kubelet does not verify certificates of probes.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ProbeAction {
    /// The action of a probe. A gRPC health check is taken for a connection: the node speaks no HTTP/2.
    pub(crate) fn of_probe(probe: &Probe) -> Self {
        if let Some(get) = &probe.http_get {
            return Self::Get(get.clone());
        }
        if let Some(connect) = &probe.tcp_socket {
            return Self::Connect(connect.clone());
        }
        if let Some(run) = &probe.exec {
            return Self::Run(run.clone());
        }
        match &probe.grpc {
            Some(grpc) => Self::Connect(TCPSocketAction {
                host: None,
                port: IntOrString::Int(grpc.port),
            }),
            None => Self::Nothing,
        }
    }

    /// Asks once.
    ///
    /// # Errors
    ///
    /// What went wrong, for the log and the status.
    pub(crate) async fn ask(&self, target: &ProbedContainer<'_>) -> Result<(), String> {
        match self {
            Self::Nothing => Ok(()),
            Self::Connect(connect) => {
                let (host, port) = (target.host(connect.host.as_deref()), target.port(&connect.port)?);
                TcpStream::connect((host.as_str(), port))
                    .await
                    .map_err(|error| format!("{host}:{port}: {error}"))?;
                Ok(())
            }
            Self::Get(get) => target.get(get).await,
            Self::Run(run) => target.run(run).await,
        }
    }
}

impl ProbedContainer<'_> {
    fn host(&self, host: Option<&str>) -> String {
        host.filter(|host| !host.is_empty())
            .map_or_else(|| self.address.to_string(), ToOwned::to_owned)
    }

    fn port(&self, port: &IntOrString) -> Result<u16, String> {
        port_number(port, self.container).ok_or_else(|| format!("the container has no port {port:?}"))
    }

    async fn get(&self, get: &HTTPGetAction) -> Result<(), String> {
        let (host, port) = (self.host(get.host.as_deref()), self.port(&get.port)?);
        let path = format!(
            "/{}",
            get.path.as_deref().unwrap_or_default().trim_start_matches('/')
        );
        let failed = |error: String| format!("GET {host}:{port}{path}: {error}");
        let stream = TcpStream::connect((host.as_str(), port))
            .await
            .map_err(|error| failed(error.to_string()))?;
        let mut request = Request::get(&path)
            .header("user-agent", "kube-probe/windlass")
            .header("connection", "close");
        let headers = get.http_headers.iter().flatten();
        let mut named = false;
        for header in headers {
            named |= header.name.eq_ignore_ascii_case("host");
            request = request.header(&header.name, &header.value);
        }
        if !named {
            request = request.header("host", format!("{host}:{port}"));
        }
        let request = request
            .body(Empty::new())
            .map_err(|error| failed(error.to_string()))?;
        let answer = if get.scheme.as_deref() == Some("HTTPS") {
            let name = ServerName::IpAddress(std::net::IpAddr::from(self.address).into());
            let tls = tls().map_err(|error| failed(error.to_string()))?;
            let stream = tls
                .connect(name, stream)
                .await
                .map_err(|error| failed(error.to_string()))?;
            send(stream, request).await
        } else {
            send(stream, request).await
        };
        match answer {
            Ok(status) if status.as_u16() < 400 => Ok(()),
            Ok(status) => Err(failed(status.to_string())),
            Err(error) => Err(failed(error.to_string())),
        }
    }

    async fn run(&self, run: &ExecAction) -> Result<(), String> {
        let Some((program, arguments)) = run.command.as_deref().and_then(<[String]>::split_first) else {
            return Ok(());
        };
        if self.stood_in {
            return Ok(());
        }
        let launch = Launch {
            program: Path::new(program),
            arguments: arguments.to_vec(),
            variables: self.variables.clone(),
            mounts: self.mounts,
            log: None,
        };
        let mut process = self
            .launcher
            .start(launch)
            .await
            .map_err(|error| error.to_string())?;
        match process.wait().await.code {
            0 => Ok(()),
            code => Err(format!("{program} ended with {code}")),
        }
    }
}

/// The number of a port, which may be the name of one of the container's.
pub(crate) fn port_number(port: &IntOrString, container: &Container) -> Option<u16> {
    let number = match port {
        IntOrString::Int(number) => *number,
        IntOrString::String(name) => {
            let named = container
                .ports
                .iter()
                .flatten()
                .find(|port| port.name.as_deref() == Some(name.as_str()));
            named
                .map(|port| port.container_port)
                .or_else(|| name.parse().ok())?
        }
    };
    u16::try_from(number).ok().filter(|number| *number > 0)
}

async fn send(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Empty<Bytes>>,
) -> hyper::Result<StatusCode> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio::spawn(connection);
    let answer = sender.send_request(request).await;
    connection.abort();
    Ok(answer?.status())
}

fn tls() -> Result<TlsConnector, rustls::Error> {
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
