//! Connections to pods behind Services from outside of the cluster, like `kubectl port-forward`.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
};

use anyhow::Context;
use futures::{FutureExt, future::BoxFuture};
use k8s_openapi::api::{
    core::v1::{Pod, Service},
    discovery::v1::EndpointSlice,
};
use kube::{Api, Client, api::ListParams};
use tokio::{
    io::{AsyncRead, AsyncWrite, copy_bidirectional},
    net::TcpListener,
};
use webhook_transport::client::{Resolve, SystemResolver};
use windlass_cluster::{
    Index,
    endpoints::{self, SERVICE_NAME},
    kinds,
    watch::Watch,
};

/// Resolves Services to a port that is forwarded to a ready pod; other names as the system does.
pub(super) struct PortForward {
    client: Client,
}

/// The variable that points processes in pods to the API server.
const IN_CLUSTER: &str = "KUBERNETES_SERVICE_HOST";

impl PortForward {
    /// Forwards with the rights of `client`, which needs to create `pods/portforward`.
    pub(super) fn new(client: Client) -> Self {
        Self { client }
    }

    /// Reports whether this process runs outside of a pod, where Service names cannot be resolved.
    pub(super) fn is_needed() -> bool {
        std::env::var_os(IN_CLUSTER).is_none()
    }

    /// Reports whether a host name is that of a Service.
    pub(super) fn is_service_host(host: &str) -> bool {
        service_and_namespace(host).is_some()
    }

    /// Listens for one connection, and forwards it to a ready pod.
    async fn listen(&self, namespace: &str, service: &str, port: u16) -> anyhow::Result<SocketAddr> {
        let (pod, port) = self.ready_pod(namespace, service, port).await?;
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let failed = || format!("cannot forward to port {port} of pod {namespace}/{pod}");
        let mut forwarded = pods.portforward(&pod, &[port]).await.with_context(failed)?;
        let there = forwarded.take_stream(port).with_context(failed)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        tokio::spawn(async move {
            // The client of the connection notices errors.
            let _ = forward(listener, there).await;
            forwarded.abort();
        });
        Ok(address)
    }

    /// Returns a ready pod behind a port of a Service, and the pod's port.
    async fn ready_pod(&self, namespace: &str, service: &str, port: u16) -> anyhow::Result<(String, u16)> {
        let services: Api<Service> = Api::namespaced(self.client.clone(), namespace);
        let read = services.get(service).await;
        let read = read.with_context(|| format!("cannot read Service {namespace}/{service}"))?;
        let slices: Api<EndpointSlice> = Api::namespaced(self.client.clone(), namespace);
        let of_service = ListParams::default().labels(&format!("{SERVICE_NAME}={service}"));
        let listed = slices.list(&of_service).await;
        let listed =
            listed.with_context(|| format!("cannot list EndpointSlices of {namespace}/{service}"))?;
        let index = Index::new();
        for slice in listed {
            index.apply(&Watch::all(kinds::ENDPOINT_SLICE), serde_json::to_value(slice)?);
        }
        let ready = endpoints::ready(&index, &serde_json::to_value(read)?, Some(port.into()));
        let mut pods = ready
            .into_iter()
            .filter_map(|endpoint| Some((endpoint.pod?.name, endpoint.address.port())));
        pods.next()
            .with_context(|| format!("no pod is ready behind port {port} of Service {namespace}/{service}"))
    }
}

impl Resolve for PortForward {
    fn resolve(&self, host: String, port: u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
        let forward = Self::new(self.client.clone());
        async move {
            let Some((service, namespace)) = service_and_namespace(&host) else {
                return SystemResolver.resolve(host, port).await;
            };
            let listening = forward.listen(namespace, service, port).await;
            let address = listening.map_err(|error| io::Error::other(format!("{error:#}")))?;
            Ok(vec![address])
        }
        .boxed()
    }
}

/// Returns the name and the namespace of the Service with this host name.
fn service_and_namespace(host: &str) -> Option<(&str, &str)> {
    let (name, namespace) = host.strip_suffix(".svc")?.split_once('.')?;
    (!namespace.contains('.')).then_some((name, namespace))
}

/// Copies data in both directions until both sides have ended.
async fn forward(listener: TcpListener, mut there: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<()> {
    let (mut here, _) = listener.accept().await?;
    drop(listener);
    copy_bidirectional(&mut here, &mut there).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures::{SinkExt, StreamExt};
    use http::{Request, Response, StatusCode, header};
    use hyper::{body::Incoming, server::conn::http1, service::service_fn};
    use hyper_util::rt::TokioIo;
    use kube::Config;
    use serde_json::{Value, json};
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpStream,
    };
    use tokio_tungstenite::{
        WebSocketStream,
        tungstenite::{Message, handshake::derive_accept_key, protocol::Role},
    };

    use super::*;

    /// An API server with a Service `s` of two pods, one of them ready. Forwarded data is echoed.
    async fn api_server() -> Client {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let served = http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service_fn(answer))
                    .with_upgrades();
                tokio::spawn(served);
            }
        });
        // Installs the TLS provider, as in `main`. Fails if an earlier test has done so, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        windlass_cluster::client(Config::new(url.parse().unwrap())).unwrap()
    }

    async fn answer(request: Request<Incoming>) -> Result<Response<String>, Infallible> {
        let of = |metadata: Value| json!({"metadata": metadata});
        let endpoint = |name: &str, is_ready: bool| {
            json!({
                "addresses": [format!("10.0.0.{}", name.len())], "conditions": {"ready": is_ready},
                "targetRef": {"kind": "Pod", "name": name},
            })
        };
        let body = match request.uri().path() {
            "/api/v1/namespaces/n/services/s" => {
                let mut service = of(json!({"namespace": "n", "name": "s"}));
                service["spec"] = json!({"ports": [{"name": "hooks", "port": 443, "targetPort": "hooks"}]});
                service
            }
            "/apis/discovery.k8s.io/v1/namespaces/n/endpointslices" => {
                let labels = json!({SERVICE_NAME: "s"});
                let mut slice = of(json!({"namespace": "n", "name": "s-1", "labels": labels}));
                slice["addressType"] = "IPv4".into();
                slice["ports"] = json!([{"name": "hooks", "port": 9443}]);
                slice["endpoints"] = json!([endpoint("a", false), endpoint("bb", true)]);
                json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSliceList", "metadata": {}, "items": [slice]})
            }
            "/api/v1/namespaces/n/pods/bb/portforward" => return Ok(upgrade(request)),
            path => {
                json!({"kind": "Status", "code": 404, "reason": "NotFound", "message": format!("no {path}")})
            }
        };
        let mut answer = Response::new(body.to_string());
        if body["code"] == 404 {
            *answer.status_mut() = StatusCode::NOT_FOUND;
        }
        Ok(answer)
    }

    /// Starts to forward port 9443.
    fn upgrade(request: Request<Incoming>) -> Response<String> {
        let key = derive_accept_key(request.headers()[header::SEC_WEBSOCKET_KEY].as_bytes());
        tokio::spawn(async move {
            let upgraded = TokioIo::new(hyper::upgrade::on(request).await.unwrap());
            let mut socket = WebSocketStream::from_raw_socket(upgraded, Role::Server, None).await;
            let [low, high] = 9443u16.to_le_bytes();
            // Data, and errors.
            for channel in [0, 1] {
                let first = Message::binary(vec![channel, low, high]);
                socket.send(first).await.unwrap();
            }
            while let Some(Ok(message)) = socket.next().await {
                if message.is_binary() {
                    socket.send(message).await.unwrap();
                }
            }
        });
        Response::builder()
            .status(StatusCode::SWITCHING_PROTOCOLS)
            .header(header::CONNECTION, "Upgrade")
            .header(header::UPGRADE, "websocket")
            .header(header::SEC_WEBSOCKET_ACCEPT, key)
            .header(header::SEC_WEBSOCKET_PROTOCOL, "v4.channel.k8s.io")
            .body(String::new())
            .unwrap()
    }

    #[tokio::test]
    async fn a_service_name_is_forwarded_to_a_ready_pod() {
        let forward = PortForward::new(api_server().await);
        for sent in ["first", "second"] {
            let addresses = forward.resolve("s.n.svc".to_owned(), 443).await.unwrap();
            let mut connection = TcpStream::connect(&*addresses).await.unwrap();
            connection.write_all(sent.as_bytes()).await.unwrap();
            let mut received = vec![0; sent.len()];
            connection.read_exact(&mut received).await.unwrap();
            assert_eq!(received, sent.as_bytes());
        }
    }

    #[tokio::test]
    async fn a_service_without_ready_pods_is_an_error() {
        let forward = PortForward::new(api_server().await);
        for (host, port, expected) in [
            ("s.n.svc", 8443, "no pod is ready behind port 8443 of Service n/s"),
            ("gone.n.svc", 443, "cannot read Service n/gone"),
        ] {
            let error = forward.resolve(host.to_owned(), port).await.unwrap_err();
            assert!(error.to_string().starts_with(expected), "{error}");
        }
    }

    #[test]
    fn only_service_names_are_forwarded() {
        assert_eq!(service_and_namespace("s.n.svc"), Some(("s", "n")));
        for host in [
            "example.com",
            "s.svc",
            "a.s.n.svc",
            "s.n.svc.cluster.local",
            "10.0.0.1",
        ] {
            assert!(!PortForward::is_service_host(host), "{host}");
        }
    }
}
