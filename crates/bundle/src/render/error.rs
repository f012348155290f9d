//! Reasons why a bundle cannot be rendered.

use thiserror::Error;
use windlass_object::ObjectKey;

use crate::{callers::UnservedCaller, parse::InstallMode, requests};

/// A reason why a bundle cannot be rendered with the given options.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "the message explains each field")]
pub enum RenderError {
    /// The bundle does not support the target namespaces.
    #[error("invalid option(s): invalid target namespaces [{}]: {reason}", .targets.join(" "))]
    TargetNamespaces {
        /// The namespaces, or one empty name for all.
        targets: Vec<String>,
        reason: TargetNamespacesReason,
    },
    /// A CustomResourceDefinition with conversion preserves unknown fields.
    #[error(
        "custom resource definition '{crd}' must have .spec.preserveUnknownFields set to false to let API Server call webhook to do the conversion"
    )]
    PreservesUnknownFields { crd: String },
    /// Two webhook definitions convert the same CustomResourceDefinition.
    #[error("custom resource definition '{crd}' is referenced by multiple conversion webhook definitions")]
    SeveralConversions { crd: String },
    /// API servers send none of the ConversionReview versions that a conversion webhook supports.
    #[error(
        "the conversion webhook of custom resource definition '{crd}' takes ConversionReview versions [{}], but API servers send only v1 and v1beta1", .versions.join(" ")
    )]
    ReviewVersions {
        crd: String,
        /// The webhook definition's `admissionReviewVersions`.
        versions: Vec<String>,
    },
    /// Webhook definitions map one port of a Service to several ports of its pods.
    #[error(
        "webhook definitions of deployment '{deployment}' send port {port} to several target ports [{}]", .targets.join(" ")
    )]
    TargetPorts {
        deployment: String,
        /// The port of the Service.
        port: i64,
        /// The ports of the pods.
        targets: Vec<String>,
    },
    /// The kind of an object is not supported in bundles.
    #[error("bundle contains unsupported resource: Name: {name}, Kind: {kind}")]
    UnsupportedKind { kind: String, name: String },
    /// The bundle contains no server for one of its callers.
    #[error(transparent)]
    UnservedCaller(#[from] UnservedCaller),
    /// In the watched namespaces, a webhook would intercept requests that its own bundle needs.
    #[error(
        "{}; or let the operator watch other namespaces than its own (--watch-namespace NS)",
        requests::blocking_message(webhook, request)
    )]
    BlockingWebhook {
        webhook: String,
        /// The first blocked request.
        request: String,
    },
    /// Two objects have the same kind and name.
    #[error(
        "duplicate {object}: it occurs twice in the bundle, or is also generated from its ClusterServiceVersion"
    )]
    Duplicate { object: ObjectKey },
}

/// The reason why a bundle does not support some target namespaces.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "the message explains each field")]
pub enum TargetNamespacesReason {
    /// No namespace is given, and the bundle supports exactly one.
    #[error(
        "exactly one target namespace must be specified: use --watch-namespace {0}, or spec.watchNamespaces"
    )]
    ExactlyOne(String),
    /// No namespace is given, and the bundle only supports a list.
    #[error(
        "at least one target namespace must be specified: use --watch-namespace {0}, or spec.watchNamespaces"
    )]
    AtLeastOne(String),
    /// All namespaces are targeted.
    #[error("supported install modes [{0}] do not support targeting all namespaces")]
    All(Supported),
    /// The operator's own namespace is targeted.
    #[error("supported install modes [{0}] do not support targeting own namespace")]
    Own(Supported),
    /// Other namespaces are targeted.
    #[error("supported install modes [{supported}] do not support target namespaces [{}]", .targets.join(" "))]
    Others {
        supported: Supported,
        targets: Vec<String>,
    },
}

/// The install modes of a bundle. Displays their names in alphabetical order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Supported(pub Vec<InstallMode>);

impl std::fmt::Display for Supported {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut names: Vec<_> = self.0.iter().map(|mode| mode.name()).collect();
        names.sort_unstable();
        f.write_str(&names.join(" "))
    }
}
