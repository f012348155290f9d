//! registry+v1 operator bundles: sources, contents, problems, and the objects that an install applies.
//!
//! ```text
//! source -> files -> Bundle -> problems
//!                           -> Rendered: objects, conversions, certificates
//! ```
//!
//! ```
//! use windlass_bundle::{Files, check, render};
//!
//! let annotations = "annotations: {operators.operatorframework.io.bundle.package.v1: widgets}";
//! let csv = "
//!     apiVersion: operators.coreos.com/v1alpha1
//!     kind: ClusterServiceVersion
//!     metadata: {name: widgets.v1.0.0}
//!     spec:
//!       version: 1.0.0
//!       installModes: [{type: AllNamespaces, supported: true}]
//!       install:
//!         strategy: deployment
//!         spec:
//!           clusterPermissions:
//!           - serviceAccountName: widgets
//!             rules: [{apiGroups: [example.com], resources: [widgets], verbs: [get]}]
//!           deployments:
//!           - name: widgets
//!             spec:
//!               selector: {matchLabels: {app: widgets}}
//!               template:
//!                 metadata: {labels: {app: widgets}}
//!                 spec: {serviceAccountName: widgets, containers: [{name: manager, image: example.com/widgets:1}]}
//! ";
//! let mut files = Files::from([
//!     ("metadata/annotations.yaml".to_owned(), annotations.into()),
//!     ("manifests/widgets.yaml".to_owned(), csv.into()),
//! ]);
//! let bundle = check::parse(&files).unwrap();
//! assert_eq!(bundle.package, "widgets");
//!
//! let options = render::InstallOptions {
//!     namespace: "widgets-system".to_owned(),
//!     watch_namespaces: Vec::new(),
//!     config: render::DeploymentConfig::default(),
//!     certificates: render::CertificateProvider::default(),
//!     conversion: render::ConversionMode::default(),
//!     blocking_webhooks: false,
//! };
//! let rendered = render::render(&bundle, &options).unwrap();
//! let kinds: Vec<_> = rendered.objects.iter().map(|object| &object["kind"]).collect();
//! assert_eq!(kinds, ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Deployment"]);
//!
//! files.insert("manifests/job.yaml".to_owned(), "{apiVersion: batch/v1, kind: Job, metadata: {name: a}}".into());
//! let problems = check::check_files(&files);
//! assert_eq!(problems[0].to_string(), "manifests/job.yaml: $.kind: unsupported resource \"a\" with kind \"Job\"");
//! ```

mod callers;
pub mod check;
mod kinds;
mod parse;
mod phase;
pub mod render;
mod requests;
pub mod requirements;
pub mod sources;
pub mod upgrade;

pub use callers::UnservedCaller;
pub use kinds::BundledKind;
pub use parse::{
    ApiServiceDefinition, Bundle, ClusterServiceVersion, DeploymentSpec, Files, InstallMode, Manifest,
    ParsedBundle, Permission, WebhookDefinition, WebhookType, crds, read_crds, rule,
};
pub use phase::Phase;
