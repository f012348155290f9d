//! The HTTPS server for AdmissionReviews.

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

/// A Service in the operator's namespace whose pods answer AdmissionReviews.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdmissionService {
    /// The name of the Service and of its ServingCertificate.
    pub name: &'static str,
    /// The Secret with the serving certificate.
    pub secret: &'static str,
}

/// The ServiceAccount, in the operator's namespace, of a process that runs only the certificate controllers.
pub const CERTIFICATES_ACCOUNT: &str = "windlass-certificates";

/// What the server answers with.
pub(crate) struct Admission {
    /// The objects of the watches.
    pub index: Arc<Index>,
    /// A client with the operator's identity, whether or not this process leads.
    pub client: Client,
    /// The operator's own namespace.
    pub namespace: String,
    /// Whether the guard answers.
    pub has_guard: bool,
    /// Answers for policies, if this process serves them.
    pub policies: Option<Arc<PolicyServer>>,
    /// The serving certificate.
    pub certificate: Arc<CertificateResolver>,
    pub bodies: Arc<Bodies>,
}

/// API servers keep connections to a pod after it stops being an endpoint. The drain timeout, in which their
/// requests are still answered, fits into the shutdown time of the tasks, and with the delay before it into
/// the grace period in the manifests.
pub(super) const OPTIONS: ServerOptions = ServerOptions {
    drain_timeout: Some(Duration::from_secs(12)),
    ..ServerOptions::DEFAULT
};

impl AdmissionService {
    /// The Service of the guard.
    pub const GUARD: Self = Self {
        name: "windlass",
        secret: "windlass-cert",
    };

    /// The Service of policies if separate processes serve them.
    pub const POLICIES: Self = Self {
        name: "windlass-policies",
        secret: "windlass-policies-cert",
    };

    /// Returns the Service of a process with these controllers.
    pub const fn for_controllers(controllers: Controllers) -> Self {
        if controllers.has_bundles() || !controllers.has_policies() {
            Self::GUARD
        } else {
            Self::POLICIES
        }
    }
}

/// Serves until `shutdown`, and then answers the requests received so far.
///
/// # Errors
///
/// When it cannot listen on `bind`, or TLS cannot be set up.
pub(crate) async fn serve(
    bind: SocketAddr,
    admission: Admission,
    shutdown: CancellationToken,
) -> Result<(), ServeError> {
    let listener = listen(bind)?;
    info!(address = %listener.local_addr()?, "Serving AdmissionReviews");
    let tls = ServerTls::from_resolver(admission.certificate.clone(), HttpVersions::Http1)?;
    let router = with_body_limit(admission.router());
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

/// Limits the length of request bodies.
pub(super) fn with_body_limit(router: Router) -> Router {
    router.layer(DefaultBodyLimit::max(LONGEST_BODY))
}

/// Returns the user name of a ServiceAccount.
pub fn service_account_user(namespace: &str, name: &str) -> String {
    format!("system:serviceaccount:{namespace}:{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separate_policy_processes_have_their_own_service() {
        for (controllers, expected) in [
            (Controllers::DEFAULT, AdmissionService::GUARD),
            (Controllers::ALL, AdmissionService::GUARD),
            (Controllers::POLICIES, AdmissionService::POLICIES),
            (
                Controllers::POLICIES.with(Controllers::CERTIFICATES),
                AdmissionService::POLICIES,
            ),
        ] {
            assert_eq!(
                AdmissionService::for_controllers(controllers),
                expected,
                "{controllers}"
            );
        }
    }
}
