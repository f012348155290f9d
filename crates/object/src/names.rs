//! Names that Windlass writes to objects and reads from them: labels, annotations, finalizers, field
//! managers.

/// The API group of Windlass.
pub const GROUP: &str = "windlass.dev";

/// `apiVersion` of Windlass's own kinds.
pub const API_VERSION: &str = "windlass.dev/v1alpha1";

/// Label: the BundleDeployment that an object was installed for.
pub const BUNDLE_DEPLOYMENT: &str = "windlass.dev/bundle-deployment";

/// Label on ConfigMaps in the operator's namespace: the BundleDeployment whose bundle they hold a part of.
/// They are not installed for it, and so have no [`BUNDLE_DEPLOYMENT`] label.
pub const BUNDLE_SOURCE: &str = "windlass.dev/bundle-source";

/// Label on ConfigMaps in the operator's namespace: the BundleDeployment of which they record a revision.
/// They are not installed for it, and so have no [`BUNDLE_DEPLOYMENT`] label.
pub const REVISION_OF: &str = "windlass.dev/revision-of";

/// Label on Secrets: the ServingCertificate that a Secret belongs to, shortened if its name is too long for a
/// label. Annotation on Secrets with CAs: the full name.
pub const SERVING_CERTIFICATE: &str = "windlass.dev/serving-certificate";

/// Label on Secrets in the operator's namespace: the namespace of the ServingCertificate that a Secret
/// belongs to.
pub const SERVING_CERTIFICATE_NAMESPACE: &str = "windlass.dev/serving-certificate-namespace";

/// Annotation: SHA-256 of the last applied body, in hexadecimal.
pub const APPLIED_HASH: &str = "windlass.dev/applied-hash";

/// Annotation on objects that an install applies: `<uid>/<kind>.<group>/<namespace>/<name>`, the uid of the
/// BundleDeployment and the identity under which the object was applied. A copy of the object has the same
/// annotation, which therefore does not match the copy's own identity.
pub const APPLIED_AS: &str = "windlass.dev/applied-as";

/// Label on pods: a hash of their template, which identifies their revision. Services of webhooks select by
/// it, so that each selects pods of one revision only.
pub const REVISION: &str = "windlass.dev/revision";

/// Annotation on a Deployment whose new pods start while all old pods keep running.
pub const OLD_PODS_HELD: &str = "windlass.dev/held";

/// Label on a canary pod: the revision under test. Annotation on it: the name of the Deployment.
pub const CANARY: &str = "windlass.dev/canary";

/// Label on a ValidatingWebhookConfiguration that probes whether the API server reaches a Service: the
/// BundleDeployment that the probe is for. The configuration is not installed for it, and so has no
/// [`BUNDLE_DEPLOYMENT`] label. Also a label on the dry-run ConfigMaps of the probe: the webhook that they
/// are for.
pub const PROBE: &str = "windlass.dev/probe";

/// Annotation on an object that was left behind when its BundleDeployment was deleted (a
/// CustomResourceDefinition with its objects): the name of that BundleDeployment. Such an object may be taken
/// over, unless another installer has taken it.
pub const RELEASED_BY: &str = "windlass.dev/released-by";

/// Annotation on a target: the `<namespace>/<ServingCertificate>` whose trust bundle to inject.
pub const INJECT_CA_FROM: &str = "windlass.dev/inject-ca-from";

/// Annotation on a target: the `<namespace>/<Secret>` whose `ca.crt` to inject.
pub const INJECT_CA_FROM_SECRET: &str = "windlass.dev/inject-ca-from-secret";

/// Annotation on a target: `true` injects the CA of the API server.
pub const INJECT_API_SERVER_CA: &str = "windlass.dev/inject-apiserver-ca";

/// Annotation on a target: its CA bundle was injected, although `metadata.managedFields` no longer records an
/// owner.
pub const INJECTED: &str = "windlass.dev/ca-bundle-injected";

/// Annotation on a Secret: `true` allows targets to name it in [`INJECT_CA_FROM_SECRET`].
pub const ALLOW_DIRECT_INJECTION: &str = "windlass.dev/allow-direct-injection";

/// Annotation on a Secret that targets name in [`INJECT_CA_FROM_SECRET`]: `false` removes its previous CAs
/// from the targets, even if servers may still use certificates that they signed.
pub const KEEP_PREVIOUS_CA: &str = "windlass.dev/keep-previous-ca";

/// Label and annotation on Secrets in the operator's namespace that record what a CA source held before. The
/// source is a Secret that another client writes; the label holds its name, the annotation its full
/// reference.
pub const CA_SOURCE: &str = "windlass.dev/ca-source";

/// Annotation on an ExtensionConfig: `true` makes Windlass write the discovery result of its server to its
/// status even while Cluster API's own manager runs; `false` prevents it.
pub const DISCOVER: &str = "windlass.dev/discover";

/// Label that the binding of a disabled admission policy selects; no object has it.
pub const SWITCHED_OFF: &str = "windlass.dev/switched-off";

/// Annotation on the Secret of a ServingCertificate: the namespace of the operator that manages it.
pub const OPERATOR_NAMESPACE: &str = "windlass.dev/operator-namespace";

/// Annotation on a Service: the Secret to write a serving certificate to.
pub const SERVING_CERT_SECRET: &str = "windlass.dev/serving-cert-secret";

/// Annotation on a ServingCertificate: `<leaf|ca>:<reason>` requests a rotation, once per value.
pub const ROTATE: &str = "windlass.dev/rotate";

/// Annotation on a BundleDeployment that follows a catalog: `<bundle>[@<digest of its image>] [<reason>]`
/// approves the install of that bundle, once per value.
pub const APPROVE: &str = "windlass.dev/approve";

/// Annotation on a pod template: the fingerprint of the serving certificate for which Windlass restarted the
/// rollout, so that servers load it.
pub const RESTARTED_FOR: &str = "windlass.dev/restarted-for";

/// Annotation on a BundleDeployment: any value but `false` suspends installs, changes and removal. Trust is
/// still maintained: certificates rotate, and `caBundle` and `spec.conversion` are restored when others
/// change them.
pub const PAUSED: &str = "windlass.dev/paused";

/// Annotation on a BundleDeployment whose adoption is undone: the owner from which its objects were adopted,
/// and to which they return. While it is set, the guard lets other clients take the objects over.
pub const RETURN_TO_OWNER: &str = "windlass.dev/returning-to";

/// Label on a Deployment, and its pods, that keeps serving the old callers during an adoption: the
/// BundleDeployment that adopts.
pub const KEPT_FOR: &str = "windlass.dev/kept-for";

/// Label on the Secret that records adopted objects as they were before: the BundleDeployment that adopted
/// them.
pub const ADOPTION_RECORD: &str = "windlass.dev/adoption-record";

/// Annotation on a PolicyReport: how many results were left out, oldest first, to limit its size.
pub const RESULTS_LEFT_OUT: &str = "windlass.dev/results-left-out";

/// Annotation on the Service of the policy server: `true` removes the webhook configurations until it is
/// removed.
pub const DISARMED: &str = "windlass.dev/disarmed";

/// Annotation on a Service: when Windlass last wrote it only to make Kubernetes reconcile its endpoints.
pub const ENDPOINTS_REFRESHED: &str = "windlass.dev/endpoints-refreshed";

/// Finalizer: Windlass removes webhooks before the objects that serve them.
pub const FINALIZER: &str = "windlass.dev/removal";

/// Field manager of installed objects.
pub const INSTALL: &str = "windlass-install";

/// Field manager of Secrets with certificates, of ServingCertificates that are created for Services, and of
/// restarts.
pub const CERTIFICATES: &str = "windlass-certificates";

/// Field manager of `caBundle` changes.
pub const INJECT: &str = "windlass-inject";

/// Field manager of `spec.conversion` changes.
pub const CONVERSION: &str = "windlass-conversion";

/// Field manager of storage version migrations: rewritten objects and `status.storedVersions`.
pub const STORAGE: &str = "windlass-storage";

/// Field manager of status.
pub const STATUS: &str = "windlass-status";

/// Field manager of switching admission policies on and off.
pub const POLICIES: &str = "windlass-policies";

/// Field manager of PolicyReports.
pub const REPORTS: &str = "windlass-reports";

/// Field manager of events.
pub const EVENTS: &str = "windlass-events";

/// Field manager of the leader election Lease.
pub const LEADER_ELECTION: &str = "windlass-leader-election";

/// Field manager of writes by the command line.
pub const COMMAND: &str = "windlass-command";
