//! The sample operator: its names, operations and widgets.

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
        bundle, crd, install, manifest, request_rotation, rotate, set_source, settled, storing_newest,
        trust_bundle,
    },
    server::server,
    widget::{misconverted, resize, unmutated, widget, widgets},
};
