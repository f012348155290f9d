//! Names that Windlass writes on objects and reads from them: labels, annotations, finalizers, field managers.

/// The API group of Windlass.
pub const GROUP: &str = "windlass.dev";

/// `apiVersion` of Windlass's own kinds.
pub const API_VERSION: &str = "windlass.dev/v1alpha1";

/// Label: the BundleDeployment that an object was installed for.
pub const BUNDLE_DEPLOYMENT: &str = "windlass.dev/bundle-deployment";

/// Label on ConfigMaps in the operator's namespace: the BundleDeployment whose bundle they hold a part of. They are not
/// installed for it, and so do not carry [`BUNDLE_DEPLOYMENT`].
pub const BUNDLE_SOURCE: &str = "windlass.dev/bundle-source";

/// Label on ConfigMaps in the operator's namespace: the BundleDeployment of which they record a revision. They are not
/// installed for it, and so do not carry [`BUNDLE_DEPLOYMENT`].
pub const REVISION_OF: &str = "windlass.dev/revision-of";

/// Label on Secrets: the ServingCertificate that a Secret belongs to, shortened where its name is too long for a label;
/// and annotation on Secrets with CAs: its whole name.
pub const SERVING_CERTIFICATE: &str = "windlass.dev/serving-certificate";

/// Label on Secrets in the operator's namespace: the namespace of the ServingCertificate that a Secret belongs to.
pub const SERVING_CERTIFICATE_NAMESPACE: &str = "windlass.dev/serving-certificate-namespace";

/// Annotation: SHA-256 of the body that was applied last, in hexadecimal.
pub const APPLIED_HASH: &str = "windlass.dev/applied-hash";

/// Annotation on what an install applies: `<uid>/<kind>.<group>/<namespace>/<name>`, the uid of the BundleDeployment and as
/// what it was applied. A copy of the object carries it too, and is told by it.
pub const APPLIED_AS: &str = "windlass.dev/applied-as";

/// Label on pods: a hash of their template, which is the revision that they are of. Services of webhooks select by it, so
/// that each leads to pods of one revision only.
pub const REVISION: &str = "windlass.dev/revision";

/// Annotation on a Deployment whose new pods come up beside the old ones, none of which ends.
pub const HELD: &str = "windlass.dev/held";

/// Label on the pod in which a new revision is tried out, the revision; and annotation, the name of the Deployment.
pub const CANARY: &str = "windlass.dev/canary";

/// Label on a ValidatingWebhookConfiguration by which the API server is asked whether it reaches a Service: the
/// BundleDeployment for which it is asked. It is not installed for it, and so does not carry [`BUNDLE_DEPLOYMENT`]. And label
/// on the ConfigMaps that it is asked with, which are never stored: which webhook they are for.
pub const PROBE: &str = "windlass.dev/probe";

/// Annotation on an object that stayed behind when its BundleDeployment went (a CustomResourceDefinition with its
/// objects): the name of that BundleDeployment. Such an object may be taken over, unless another installer has taken it.
pub const RELEASED_BY: &str = "windlass.dev/released-by";

/// Annotation on a target: `<namespace>/<ServingCertificate>` whose trust bundle it wants.
pub const INJECT_CA_FROM: &str = "windlass.dev/inject-ca-from";

/// Annotation on a target: `<namespace>/<Secret>` whose `ca.crt` it wants.
pub const INJECT_CA_FROM_SECRET: &str = "windlass.dev/inject-ca-from-secret";

/// Annotation on a target: `true` if it wants the CA of the API server.
pub const INJECT_API_SERVER_CA: &str = "windlass.dev/inject-apiserver-ca";

/// Annotation on a target: its CA bundle was injected, although nobody owns that by `metadata.managedFields` any more.
pub const INJECTED: &str = "windlass.dev/ca-bundle-injected";

/// Annotation on a Secret: `true` lets targets name it in [`INJECT_CA_FROM_SECRET`].
pub const ALLOW_DIRECT_INJECTION: &str = "windlass.dev/allow-direct-injection";

/// Annotation on a Secret that targets name in [`INJECT_CA_FROM_SECRET`]: `false`, if what it gave before is to be trusted no more,
/// although servers may still need it.
pub const KEEP_PREVIOUS_CA: &str = "windlass.dev/keep-previous-ca";

/// Label and annotation on Secrets in the operator's namespace: the source of CA certificates, written by somebody else, of which
/// they note what it gave; the name in the label, all of it in the annotation.
pub const CA_SOURCE: &str = "windlass.dev/ca-source";

/// Annotation on an ExtensionConfig: `true` if Windlass is to write what its server answers into its status although Cluster API's own
/// manager runs; `false` if it is not to.
pub const DISCOVER: &str = "windlass.dev/discover";

/// Label that the binding of an admission policy selects while the policy is switched off: no object has it.
pub const SWITCHED_OFF: &str = "windlass.dev/switched-off";

/// Annotation on the Secret of a ServingCertificate: the namespace of the operator that keeps it.
pub const OPERATOR_NAMESPACE: &str = "windlass.dev/operator-namespace";

/// Annotation on a Service: the Secret to keep a serving certificate in.
pub const SERVING_CERT_SECRET: &str = "windlass.dev/serving-cert-secret";

/// Annotation on a ServingCertificate: `<leaf|ca>:<reason>`, a rotation that is done once for each value.
pub const ROTATE: &str = "windlass.dev/rotate";

/// Annotation on a BundleDeployment that follows a catalog: `<bundle>[@<digest of its image>] [<reason>]`, the next bundle, which
/// may be installed. Each value approves once.
pub const APPROVE: &str = "windlass.dev/approve";

/// Annotation on a pod template: the fingerprint of the serving certificate for which Windlass restarted the rollout, so
/// that a server reads it.
pub const RESTARTED_FOR: &str = "windlass.dev/restarted-for";

/// Annotation on a BundleDeployment: while it has any value but `false`, nothing of it is installed, changed or removed.
/// Trust is kept: certificates rotate, and what others take from `caBundle` or `spec.conversion` is given back.
pub const PAUSED: &str = "windlass.dev/paused";

/// Annotation on a BundleDeployment: under whom its objects are to be again, from which they were adopted. While it is there,
/// the guard lets others take them over.
pub const RETURNING: &str = "windlass.dev/returning-to";

/// Label on a Deployment, and on its pods, that goes on serving whoever called what was adopted: the BundleDeployment for which
/// that was adopted.
pub const KEPT_FOR: &str = "windlass.dev/kept-for";

/// Label on the Secret that holds how adopted objects were: the BundleDeployment for which they were adopted.
pub const ADOPTION_RECORD: &str = "windlass.dev/adoption-record";

/// Annotation on a PolicyReport: how many results were left out of it, the oldest first, since it would have been too long.
pub const RESULTS_LEFT_OUT: &str = "windlass.dev/results-left-out";

/// Annotation on the Service that leads to policies: `true` takes away the webhook configurations, and keeps them away.
pub const DISARMED: &str = "windlass.dev/disarmed";

/// Annotation on a Service: when Windlass last wrote it for no other reason than that Kubernetes looks at its endpoints
/// again.
pub const ENDPOINTS_REFRESHED: &str = "windlass.dev/endpoints-refreshed";

/// Finalizer: Windlass takes webhooks away before what serves them.
pub const FINALIZER: &str = "windlass.dev/removal";

/// Field manager of what an install applies.
pub const INSTALL: &str = "windlass-install";

/// Field manager of Secrets with certificates, of ServingCertificates that are made for Services, and of restarts.
pub const CERTIFICATES: &str = "windlass-certificates";

/// Field manager of `caBundle` changes.
pub const INJECT: &str = "windlass-inject";

/// Field manager of `spec.conversion` changes.
pub const CONVERSION: &str = "windlass-conversion";

/// Field manager of objects that are stored anew, and of `status.storedVersions`.
pub const STORAGE: &str = "windlass-storage";

/// Field manager of status.
pub const STATUS: &str = "windlass-status";

/// Field manager of what switches admission policies on and off.
pub const POLICIES: &str = "windlass-policies";

/// Field manager of PolicyReports.
pub const REPORTS: &str = "windlass-reports";

/// Field manager of events.
pub const EVENTS: &str = "windlass-events";

/// Field manager of the Lease by which one replica leads.
pub const LEADER_ELECTION: &str = "windlass-leader-election";

/// Field manager of what users write by commands.
pub const COMMAND: &str = "windlass-command";
