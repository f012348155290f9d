//! ResourceInterpreterWebhookConfigurations of a cluster.

use std::{collections::BTreeMap, mem, sync::Arc, time::Duration};

use futures::{TryStreamExt, pin_mut};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject},
    discovery,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use serde_json::Value;
use tracing::{info, warn};
use windlass_object::object;

use crate::webhook::{WebhookConfigurationState, WebhookUsage, Webhooks};

/// How long to wait before the kind is discovered again, if it is not served or the API server does not
/// answer.
const LOOK: Duration = Duration::from_secs(30);

const GROUP: &str = "config.karmada.io";

const VERSION: &str = "v1alpha1";

const KIND: &str = "ResourceInterpreterWebhookConfiguration";

/// Keeps webhooks in sync with the ResourceInterpreterWebhookConfigurations of a cluster, until the future is
/// dropped. It writes nothing to the cluster; invalid and shadowed webhooks are logged. While the kind is not
/// served, there are no webhooks.
pub async fn follow_webhook_configurations(client: Client, webhooks: Arc<Webhooks>) {
    loop {
        match resource(&client).await {
            Ok(Some(resource)) => follow(&client, &resource, &webhooks).await,
            Ok(None) => drop(webhooks.replace(&[])),
            Err(error) => warn!(%error, "Cannot discover whether {KIND}s are served"),
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Returns the kind as served; [`None`] if it is not served.
async fn resource(client: &Client) -> Result<Option<ApiResource>, kube::Error> {
    let groups = client.list_api_groups().await?;
    if !groups.groups.iter().any(|group| group.name == GROUP) {
        return Ok(None);
    }
    let group = discovery::group(client, GROUP).await?;
    let mut served = group.versioned_resources(VERSION).into_iter();
    let found = served.find(|(resource, _)| resource.kind == KIND);
    Ok(found.map(|(resource, _)| resource))
}

/// Returns when the kind is no longer served.
async fn follow(client: &Client, resource: &ApiResource, webhooks: &Webhooks) {
    let configurations: Api<DynamicObject> = Api::all_with(client.clone(), resource);
    let events = watcher(configurations, watcher::Config::default()).default_backoff();
    pin_mut!(events);
    let (mut known, mut listed) = (BTreeMap::new(), BTreeMap::new());
    loop {
        match events.try_next().await {
            Ok(Some(Event::Init)) => {
                listed.clear();
                continue;
            }
            Ok(Some(Event::InitApply(configuration))) => {
                listed.insert(configuration.name_any(), value(configuration));
                continue;
            }
            Ok(Some(Event::InitDone)) => known = mem::take(&mut listed),
            Ok(Some(Event::Apply(configuration))) => {
                known.insert(configuration.name_any(), value(configuration));
            }
            Ok(Some(Event::Delete(configuration))) => {
                known.remove(&configuration.name_any());
            }
            Ok(None) => return,
            Err(error) if is_absent(&error) => {
                info!("{KIND}s are no longer served");
                return;
            }
            Err(error) => {
                warn!(%error, "Cannot watch {KIND}s");
                continue;
            }
        }
        let objects: Vec<_> = known.values().cloned().collect();
        for (object, state) in objects.iter().zip(webhooks.replace(&objects)) {
            log_state(object, &state);
        }
    }
}

/// Adds `apiVersion` and `kind`, which items of a list lack.
fn value(configuration: DynamicObject) -> Value {
    let mut value = serde_json::to_value(configuration).unwrap_or_default();
    value["apiVersion"] = format!("{GROUP}/{VERSION}").into();
    value["kind"] = KIND.into();
    value
}

fn log_state(configuration: &Value, state: &WebhookConfigurationState) {
    let name = object::text(configuration, "/metadata/name").unwrap_or_default();
    let (outcome, problems) = match &state.usage {
        WebhookUsage::Used => ("", &[][..]),
        WebhookUsage::Kept(problems) => (
            "The configuration is invalid, its previous webhooks stay in use",
            problems.as_slice(),
        ),
        WebhookUsage::Failing(problems) => ("A webhook is invalid, its calls fail", problems.as_slice()),
        WebhookUsage::Unusable(problems) => (
            "The configuration is invalid, none of its webhooks is in use",
            problems.as_slice(),
        ),
    };
    for problem in problems {
        warn!(configuration = name, %problem, "{outcome}");
    }
    for shadowed in &state.shadowed {
        info!(configuration = name, "{shadowed}");
    }
}

fn is_absent(error: &watcher::Error) -> bool {
    use watcher::Error::{InitialListFailed, WatchFailed, WatchStartFailed};
    let (InitialListFailed(error) | WatchStartFailed(error) | WatchFailed(error)) = error else {
        return false;
    };
    matches!(error, kube::Error::Api(status) if status.code == 404)
}
