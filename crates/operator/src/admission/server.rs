//! Serves AdmissionReviews, of whatever a process answers.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{Router, extract::DefaultBodyLimit};
use kube::Client;
use tokio_util::sync::CancellationToken;
use tracing::info;
use webhook_transport::server::{Encryption, HttpVersions, ServerOptions, ServerTls};
use windlass_cluster::{Cluster, Index};

use super::{
    bodies::{Bodies, LONGEST_BODY},
    certificate::CertificateResolver,
    guard::{self, Guard, IDENTIFICATION},
};
use crate::{
    controllers::Controllers,
    listener::{ServeError, listen},
    policies::PolicyServer,
};

/// The Service that leads to a process that answers AdmissionReviews, in the operator's namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdmissionService {
    /// Its name, and that of the ServingCertificate that is made for it.
    pub name: &'static str,
    /// The Secret with the certificate that is served.
    pub secret: &'static str,
}

/// The ServiceAccount of a process that runs the controllers of certificates only, in the operator's namespace.
pub const CERTIFICATES_ACCOUNT: &str = "windlass-certificates";

/// What is served.
pub(crate) struct Admission {
    /// What the watches have seen.
    pub index: Arc<Index>,
    /// Sends as the operator, whether it leads or not.
    pub client: Client,
    /// The operator's own namespace.
    pub namespace: String,
    /// Whether the guard answers.
    pub has_guard: bool,
    /// Answers for policies, if they are served here.
    pub policies: Option<Arc<PolicyServer>>,
    /// What is served with.
    pub certificate: Arc<CertificateResolver>,
    /// Reads what is asked.
    pub bodies: Arc<Bodies>,
}

/// An API server keeps connections, also to who is no endpoint any more. How long it is served yet, and what it has asked answered,
/// fits into what the tasks have at shutdown, and with what is waited before into the grace period of the manifests.
pub(super) const OPTIONS: ServerOptions = ServerOptions {
    drain_timeout: Some(Duration::from_secs(12)),
    ..ServerOptions::DEFAULT
};

// === impl AdmissionService ===

impl AdmissionService {
    /// That of the guard.
    pub const GUARD: Self = Self {
        name: "windlass",
        secret: "windlass-cert",
    };

    /// That of policies, where they have processes of their own.
    pub const POLICIES: Self = Self {
        name: "windlass-policies",
        secret: "windlass-policies-cert",
    };

    /// The one that leads to processes with these controllers.
    pub const fn of(controllers: Controllers) -> Self {
        if controllers.have_bundles() || !controllers.have_policies() {
            Self::GUARD
        } else {
            Self::POLICIES
        }
    }
}

/// Serves until `shutdown`, and answers what it was asked before then.
///
/// # Errors
///
/// When `bind` cannot be listened on, or TLS cannot be set up.
pub(crate) async fn serve(
    bind: SocketAddr,
    admission: Admission,
    shutdown: CancellationToken,
) -> Result<(), ServeError> {
    let listener = listen(bind)?;
    info!(address = %listener.local_addr()?, "Serving AdmissionReviews");
    let tls = ServerTls::resolved_by(admission.certificate.clone(), HttpVersions::Http1)?;
    let router = limited(admission.router());
    webhook_transport::server::serve(
        listener,
        Encryption::Tls(tls),
        router,
        OPTIONS,
        shutdown.cancelled(),
    )
    .await;
    Ok(())
}

// === impl Admission ===

impl Admission {
    fn router(self) -> Router {
        let mut router = Router::new();
        if self.has_guard {
            router = router.merge(guard::router(Guard {
                index: self.index,
                cluster: Cluster::new(self.client, IDENTIFICATION),
                certificates: service_account_user(&self.namespace, CERTIFICATES_ACCOUNT),
                bodies: self.bodies,
            }));
        }
        if let Some(policies) = self.policies {
            router = router.merge(policies.router());
        }
        router
    }
}

/// Where no body is longer than it should be.
pub(super) fn limited(router: Router) -> Router {
    router.layer(DefaultBodyLimit::max(LONGEST_BODY))
}

/// The user that a ServiceAccount is.
pub fn service_account_user(namespace: &str, name: &str) -> String {
    format!("system:serviceaccount:{namespace}:{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_have_a_service_of_their_own_where_they_have_processes_of_their_own() {
        for (controllers, expected) in [
            (Controllers::DEFAULT, AdmissionService::GUARD),
            (Controllers::ALL, AdmissionService::GUARD),
            (Controllers::POLICIES, AdmissionService::POLICIES),
            (
                Controllers::POLICIES.with(Controllers::CERTIFICATES),
                AdmissionService::POLICIES,
            ),
        ] {
            assert_eq!(AdmissionService::of(controllers), expected, "{controllers}");
        }
    }
}
