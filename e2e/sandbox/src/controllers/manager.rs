//! Runs each controller in its own task.

use std::{pin::Pin, sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use super::{
    client::ControllerClient, deployments, endpoints, garbage, namespaces, replica_sets, service_accounts,
};
use crate::{
    server::{ApiServer, User},
    storage::Collection,
};

/// How long a controller waits for changes before its next pass: some decisions depend on time.
const RESYNC: Duration = Duration::from_secs(1);

type Pass = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A controller: its name, the resources that it watches (group and resource; empty for all) and its pass.
struct Controller {
    name: &'static str,
    watches: &'static [(&'static str, &'static str)],
    pass: fn(Arc<ControllerClient>) -> Pass,
}

const CONTROLLERS: &[Controller] = &[
    Controller {
        name: "deployment-controller",
        watches: &[("apps", "deployments"), ("apps", "replicasets"), ("", "pods")],
        pass: |client| Box::pin(async move { deployments::pass(&client).await }),
    },
    Controller {
        name: "replicaset-controller",
        watches: &[("apps", "replicasets"), ("", "pods")],
        pass: |client| Box::pin(async move { replica_sets::pass(&client).await }),
    },
    Controller {
        name: "endpointslice-controller",
        watches: &[
            ("", "services"),
            ("", "pods"),
            ("discovery.k8s.io", "endpointslices"),
        ],
        pass: |client| Box::pin(async move { endpoints::pass(&client).await }),
    },
    Controller {
        name: "generic-garbage-collector",
        watches: &[],
        pass: |client| Box::pin(async move { garbage::pass(&client) }),
    },
    Controller {
        name: "namespace-controller",
        watches: &[],
        pass: |client| Box::pin(async move { namespaces::pass(&client) }),
    },
    Controller {
        name: "service-account-controller",
        watches: &[("", "namespaces"), ("", "serviceaccounts"), ("", "configmaps")],
        pass: |client| Box::pin(async move { service_accounts::pass(&client).await }),
    },
];

/// Starts all controllers. They run until `stop` is cancelled.
pub(crate) fn start(server: &ApiServer, root_certificate: &str, stop: &CancellationToken) {
    for controller in CONTROLLERS {
        let name = format!("system:serviceaccount:kube-system:{}", controller.name);
        let client = ControllerClient::new(server.clone(), User::master(&name), root_certificate.to_owned());
        let stop = stop.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = run(controller, Arc::new(client)) => {}
            }
        });
    }
}

async fn run(controller: &Controller, client: Arc<ControllerClient>) {
    let store = client.store().clone();
    let mut changes = store.subscribe();
    loop {
        changes.mark_unchanged();
        let seen = store.revision();
        (controller.pass)(client.clone()).await;
        let resync = tokio::time::sleep(RESYNC);
        tokio::pin!(resync);
        loop {
            tokio::select! {
                () = &mut resync => break,
                changed = changes.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    let concerns = |(group, resource): &(&str, &str)| {
                        let collection = Collection { group, resource, namespace: None };
                        store.since(seen, collection).map_or(true, |(events, _)| !events.is_empty())
                    };
                    if controller.watches.is_empty() || controller.watches.iter().any(concerns) {
                        break;
                    }
                }
            }
        }
    }
}
