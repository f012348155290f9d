//! What the API server's words mean: whether it got through TLS to a server, and why not.
//!
//! The words are those of `ErrCallingWebhook` (k8s.io/apiserver/pkg/util/webhook), around those of client-go and of Go's net,
//! crypto/tls and net/http packages, as kube-apiserver 1.36 says them.

use std::fmt;

use windlass_object::text::{shortened, tidied};

/// What a response of the API server to a probe shows about the webhook that it was to call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeatAnswer {
    /// A server has answered over TLS, whatever it said.
    Reached,
    /// The API server did not call the webhook, or the webhook has allowed the object: it says the same of both.
    Passed,
    /// The API server called, and nobody answered over TLS.
    Unreachable {
        /// What is in the way.
        obstacle: Obstacle,
        /// What the API server says.
        words: String,
    },
    /// The request failed for another reason, such as another webhook.
    Unrelated {
        /// What the API server says.
        words: String,
    },
}

/// What keeps the API server from a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The Service is not there.
    NoService,
    /// The Service has no such port.
    NoPort,
    /// No endpoint of the Service is ready.
    NoEndpoints,
    /// Nobody listens.
    Refused,
    /// There is no way there.
    NoRoute,
    /// There is no answer.
    Silence,
    /// The connection was cut off.
    CutOff,
    /// The proxy between the API server and the nodes does not get through.
    Tunnel,
    /// The name of the Service is unknown.
    Name,
    /// The certificate is not trusted.
    Untrusted,
    /// The server does not speak TLS.
    NotTls,
    /// Something else.
    Other,
}

/// The longest words that are repeated, in bytes.
const LONGEST_WORDS: usize = 300;

/// Words in the error of a call that got no answer, and what they say. The first that is found counts.
const WORDS: [(&str, Obstacle); 22] = [
    ("x509:", Obstacle::Untrusted),
    ("unable to load root certificates", Obstacle::Untrusted),
    ("remote error: tls:", Obstacle::Untrusted),
    (
        "first record does not look like a TLS handshake",
        Obstacle::NotTls,
    ),
    ("server gave HTTP response to HTTPS client", Obstacle::NotTls),
    ("no service port", Obstacle::NoPort),
    ("no endpoints available", Obstacle::NoEndpoints),
    ("proxy error from", Obstacle::Tunnel),
    ("No agent available", Obstacle::Tunnel),
    ("konnectivity", Obstacle::Tunnel),
    ("no such host", Obstacle::Name),
    ("server misbehaving", Obstacle::Name),
    ("connection refused", Obstacle::Refused),
    ("no route to host", Obstacle::NoRoute),
    ("network is unreachable", Obstacle::NoRoute),
    ("connect: invalid argument", Obstacle::NoRoute),
    ("connection reset", Obstacle::CutOff),
    ("EOF", Obstacle::CutOff),
    ("context deadline exceeded", Obstacle::Silence),
    ("timeout", Obstacle::Silence),
    ("Timeout", Obstacle::Silence),
    ("not found", Obstacle::NoService),
];

impl SeatAnswer {
    /// Whether a refusal is none that answers the question: the API server has other troubles, which may be gone at the
    /// next try.
    pub fn is_missing(code: u16, message: &str) -> bool {
        (code == 429 || code >= 500) && !message.contains("webhook")
    }

    /// What the API server's refusal of an object, in its `message`, says of the webhook of that name.
    pub fn of(webhook: &str, message: &str) -> Self {
        let words = |text: &str| shortened(tidied(text), LONGEST_WORDS);
        if message.contains(&format!("admission webhook {webhook:?} denied the request")) {
            return Self::Reached;
        }
        let failed = format!("failed calling webhook {webhook:?}: ");
        let Some((_, failure)) = message.split_once(&failed) else {
            return Self::Unrelated {
                words: words(message),
            };
        };
        // Everything else is said of an answer.
        let posted = failure
            .strip_prefix("failed to call webhook: Post \"")
            .map(|posted| posted.split_once("\": ").map_or(posted, |(_, said)| said));
        let Some(said) = posted.or_else(|| failure.strip_prefix("could not get REST client: ")) else {
            return Self::Reached;
        };
        let obstacle = WORDS.iter().find(|(words, _)| said.contains(words));
        Self::Unreachable {
            obstacle: obstacle.map_or(Obstacle::Other, |(_, obstacle)| *obstacle),
            words: words(said),
        }
    }
}

impl Obstacle {
    /// What to do next.
    pub fn hint(self) -> &'static str {
        match self {
            Self::NoService => "check that nothing deletes the Service",
            Self::NoPort => "check that nothing changes the ports of the Service",
            Self::NoEndpoints => "check that the pods are ready and the selector of the Service matches them",
            Self::Refused => {
                "check that the webhook server listens on the target port, on every address rather than on localhost"
            }
            Self::NoRoute | Self::Silence => {
                "usually a firewall between the control plane and the nodes that does not allow the target port, or a \
                 NetworkPolicy that does not allow ingress from the API server"
            }
            Self::CutOff => {
                "usually a proxy or a firewall between the control plane and the nodes that closes connections to the \
                 target port"
            }
            Self::Tunnel => {
                "check the proxy between the control plane and the nodes, for example the konnectivity agents"
            }
            Self::Name => "check that the control plane resolves names of Services",
            Self::Untrusted => {
                "check that no proxy between the control plane and the pods terminates TLS with its own certificate"
            }
            Self::NotTls => "check that the target port of the Service is that of the webhook server",
            Self::Other => "check proxies and firewalls between the control plane and the nodes",
        }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.hint())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn answer(failure: &str) -> SeatAnswer {
        let message = format!("Internal error occurred: failed calling webhook \"w\": {failure}");
        SeatAnswer::of("w", &message)
    }

    #[test]
    fn whatever_a_server_answers_it_was_reached() {
        // As kube-apiserver 1.36.3 says of servers that answer so.
        for failure in [
            "failed to call webhook: the server could not find the requested resource",
            "failed to call webhook: an error on the server (\"some words\") has prevented the request from succeeding",
            "failed to call webhook: the server is currently unable to handle the request",
            "failed to call webhook: the server rejected our request for an unknown reason",
            "failed to call webhook: the server does not allow this method on the requested resource",
            "failed to call webhook: the server has asked for the client to provide credentials",
            "failed to call webhook: some words",
            "failed to call webhook: connection refused, says the server itself",
            "failed to call webhook: the server has received too many requests and has asked us to try again later",
            "failed to call webhook: the server responded with the status code 301 but did not return more information",
            "failed to call webhook: 0-length response with status code: 204 and content type: text/plain",
            "failed to call webhook: couldn't get version/kind; json parse error: json: cannot unmarshal string into Go value",
            "failed to call webhook: no kind \"Foo\" is registered for version \"v1\" in scheme \"pkg/runtime/scheme.go:111\"",
            "received invalid webhook response: expected response.uid=\"1\", got \"x\"",
            "received invalid webhook response: validating webhook may not return response.patch",
            "received invalid webhook response: webhook response was absent",
        ] {
            assert_eq!(answer(failure), SeatAnswer::Reached, "{failure}");
        }
        let denied = "admission webhook \"w\" denied the request without explanation";
        assert_eq!(SeatAnswer::of("w", denied), SeatAnswer::Reached);
    }

    #[test]
    fn what_keeps_the_api_server_from_a_server_is_told_apart() {
        use Obstacle::*;
        let connecting = "dial tcp 10.244.77.24:9443: connect:";
        let proxied =
            "proxy error from 127.0.0.1:8132 while dialing 10.0.0.1:9443, code 503: 503 Service Unavailable";
        for (detail, obstacle) in [
            ("EOF", CutOff),
            (
                "read tcp 10.0.0.1:37946->10.0.0.1:9443: read: connection reset by peer",
                CutOff,
            ),
            ("context deadline exceeded", Silence),
            (
                "net/http: request canceled (Client.Timeout exceeded while awaiting headers)",
                Silence,
            ),
            ("dial tcp 10.0.0.1:9443: i/o timeout", Silence),
            ("net/http: TLS handshake timeout", Silence),
            ("tls: first record does not look like a TLS handshake", NotTls),
            ("http: server gave HTTP response to HTTPS client", NotTls),
            (&format!("{connecting} connection refused"), Refused),
            (&format!("{connecting} no route to host"), NoRoute),
            (&format!("{connecting} network is unreachable"), NoRoute),
            (&format!("{connecting} invalid argument"), NoRoute),
            ("no endpoints available for service \"s\"", NoEndpoints),
            ("service \"s\" not found", NoService),
            ("no service port 8443 found for service \"s\"", NoPort),
            (
                "tls: failed to verify certificate: x509: certificate signed by unknown authority",
                Untrusted,
            ),
            (
                "tls: failed to verify certificate: x509: certificate is valid for a, not s.n.svc",
                Untrusted,
            ),
            ("remote error: tls: handshake failure", Untrusted),
            (proxied, Tunnel),
            ("No agent available", Tunnel),
            ("dial tcp: lookup s.n.svc on 10.0.0.10:53: no such host", Name),
            ("something new", Other),
        ] {
            let failure = format!(
                "failed to call webhook: Post \"https://s.n.svc:443/windlass.dev/probe?timeout=5s\": {detail}"
            );
            let SeatAnswer::Unreachable {
                obstacle: found,
                words,
            } = answer(&failure)
            else {
                panic!("{failure}");
            };
            assert_eq!(found, obstacle, "{failure}");
            assert!(!found.hint().is_empty());
            assert!(
                !words.contains("https://") || detail.contains("https://"),
                "{words}"
            );
        }
        let junk =
            "could not get REST client: unable to load root certificates: unable to parse bytes as PEM block";
        assert!(matches!(
            answer(junk),
            SeatAnswer::Unreachable {
                obstacle: Untrusted,
                ..
            }
        ));
    }

    #[test]
    fn what_is_said_of_others_says_nothing_of_the_webhook() {
        for message in [
            "admission webhook \"policy.example.com\" denied the request: no ConfigMaps here",
            "Internal error occurred: failed calling webhook \"other\": failed to call webhook: Post \"https://o.n.svc:443/\": EOF",
            "configmaps is forbidden: User \"w\" cannot create resource \"configmaps\"",
            "",
        ] {
            assert!(
                matches!(SeatAnswer::of("w", message), SeatAnswer::Unrelated { .. }),
                "{message}"
            );
        }
    }

    #[test]
    fn other_troubles_of_the_api_server_are_no_answer() {
        for (code, message, is_missing) in [
            (
                500,
                "Internal error occurred: failed calling webhook \"w\": EOF",
                false,
            ),
            (500, "etcdserver: request timed out", true),
            (429, "too many requests", true),
            (403, "configmaps is forbidden", false),
            (422, "invalid", false),
        ] {
            assert_eq!(SeatAnswer::is_missing(code, message), is_missing, "{message}");
        }
    }

    proptest! {
        #[test]
        fn any_words_are_understood_or_repeated(message in "\\PC{0,200}", failure in "\\PC{0,400}") {
            SeatAnswer::of("w", &message);
            answer(&failure);
            answer(&format!("failed to call webhook: Post \"{failure}"));
        }
    }
}
