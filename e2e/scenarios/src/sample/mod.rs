//! The sample operator: what it is called in a cluster, how it gets there, and its widgets.

mod names;
mod operations;
mod server;
mod widget;

pub use self::{
    names::{
        BUNDLE_DEPLOYMENT, CERTIFICATE, CONTROLLER_RUNTIME_IMAGE, CONTROLLER_RUNTIME_PROGRAM, DEFINITION,
        DEPLOYMENT, GREEN_SERVICE, GROUP, IMAGE, MIRROR, NAMESPACE, SERVICE, SERVING_CERTIFICATE,
        SERVING_SECRET, WIDGETS,
    },
    operations::{
        ask_for_rotation, bundle, crd, install, manifest, rotate, set_source, settled, storing_newest,
        trust_bundle,
    },
    server::server,
    widget::{misconverted, resize, unmutated, widget, widgets},
};
