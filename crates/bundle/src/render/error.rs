//! Why a bundle cannot be rendered.

use thiserror::Error;
use windlass_object::ObjectKey;

use crate::{callers::Unserved, parse::InstallMode, requests};

/// One reason why a bundle cannot be rendered as it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "the message says what each field is")]
pub enum RenderError {
    /// The bundle cannot watch the namespaces that were asked for.
    #[error("invalid option(s): invalid target namespaces [{}]: {reason}", .targets.join(" "))]
    TargetNamespaces {
        /// The namespaces, or one empty name for all.
        targets: Vec<String>,
        /// What speaks against them.
        reason: TargetNamespacesReason,
    },
    /// A CustomResourceDefinition that is to be converted keeps unknown fields.
    #[error(
        "custom resource definition '{crd}' must have .spec.preserveUnknownFields set to false to let API Server call webhook to do the conversion"
    )]
    PreservesUnknownFields { crd: String },
    /// Two webhook definitions convert one CustomResourceDefinition.
    #[error("custom resource definition '{crd}' is referenced by multiple conversion webhook definitions")]
    SeveralConversions { crd: String },
    /// No version of ConversionReview that a conversion webhook takes is one that API servers send.
    #[error(
        "the conversion webhook of custom resource definition '{crd}' takes ConversionReview versions [{}], but API servers send only v1 and v1beta1", .versions.join(" ")
    )]
    ReviewVersions {
        crd: String,
        /// The webhook definition's `admissionReviewVersions`.
        versions: Vec<String>,
    },
    /// Webhook definitions send one port of a Service to several ports of its pods.
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
    /// An object of a kind that bundles may not bring along.
    #[error("bundle contains unsupported resource: Name: {name}, Kind: {kind}")]
    UnsupportedKind { kind: String, name: String },
    /// An object calls what the bundle does not serve.
    #[error(transparent)]
    Unserved(#[from] Unserved),
    /// A webhook is asked about what its own bundle needs, in the namespaces that the operator is to watch.
    #[error(
        "{}; or let the operator watch other namespaces than its own (--watch-namespace NS)",
        requests::blocking_message(webhook, request)
    )]
    BlockingWebhook {
        webhook: String,
        /// The first request that it blocks.
        request: String,
    },
    /// Two objects have one name.
    #[error(
        "duplicate {object}: it occurs twice in the bundle, or is also generated from its ClusterServiceVersion"
    )]
    Duplicate { object: ObjectKey },
}

/// Why a bundle cannot watch some namespaces.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "the message says what each field is")]
pub enum TargetNamespacesReason {
    /// None is given, and the bundle can only watch one.
    #[error(
        "exactly one target namespace must be specified: use --watch-namespace {0}, or spec.watchNamespaces"
    )]
    ExactlyOne(String),
    /// None is given, and the bundle can only watch some.
    #[error(
        "at least one target namespace must be specified: use --watch-namespace {0}, or spec.watchNamespaces"
    )]
    AtLeastOne(String),
    /// All are given.
    #[error("supported install modes [{0}] do not support targeting all namespaces")]
    All(Supported),
    /// The operator's own is given.
    #[error("supported install modes [{0}] do not support targeting own namespace")]
    Own(Supported),
    /// Others are given.
    #[error("supported install modes [{supported}] do not support target namespaces [{}]", .targets.join(" "))]
    Others {
        supported: Supported,
        targets: Vec<String>,
    },
}

/// The install modes of a bundle. Prints their names in order of the alphabet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Supported(pub Vec<InstallMode>);

// === impl Supported ===

impl std::fmt::Display for Supported {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut names: Vec<_> = self.0.iter().map(|mode| mode.name()).collect();
        names.sort_unstable();
        f.write_str(&names.join(" "))
    }
}
