//! The keys of Secrets with certificates, in the names of Kubernetes and OLM.

/// Type of Secrets that hold a certificate chain and its key: `SecretTypeTLS` of `k8s.io/api/core/v1`.
pub const TLS_TYPE: &str = "kubernetes.io/tls";

/// The serving certificate and its intermediates, in PEM: `TLSCertKey`.
pub const TLS_CERTIFICATE: &str = "tls.crt";

/// The private key of the serving certificate, in PEM: `TLSPrivateKeyKey`.
pub const TLS_PRIVATE_KEY: &str = "tls.key";

/// The trust bundle of the serving certificate, in PEM; cert-manager uses the same key.
pub const CA_CERTIFICATES: &str = "ca.crt";

/// The previous certificates of a CA source, as JSON.
pub const PREVIOUS_CAS: &str = "previous.json";

/// The CA that signed the serving certificate, in PEM, at the key that operators installed by OLM read.
pub const OLM_CA_CERTIFICATE: &str = "olmCAKey";
