//! The keys of Secrets with certificates, as Kubernetes and OLM name them.

/// Type of the Secrets that hold a chain and its key: `SecretTypeTLS` of `k8s.io/api/core/v1`.
pub const TLS_TYPE: &str = "kubernetes.io/tls";

/// The serving certificate, then what follows it in the handshake, in PEM: `TLSCertKey`.
pub const TLS_CERTIFICATE: &str = "tls.crt";

/// The private key of the serving certificate, in PEM: `TLSPrivateKeyKey`.
pub const TLS_PRIVATE_KEY: &str = "tls.key";

/// The trust bundle that the serving certificate verifies under, in PEM; cert-manager has it there too.
pub const CA_CERTIFICATES: &str = "ca.crt";

/// What a source of CA certificates gave before, as JSON.
pub const PREVIOUS_CAS: &str = "previous.json";

/// The CA that signed the serving certificate, in PEM, where operators that OLM installed look for it.
pub const OLM_CA_CERTIFICATE: &str = "olmCAKey";
