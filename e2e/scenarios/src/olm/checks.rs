//! OLM's checks for an installed operator: `CheckInstalled` and `areWebhooksAvailable`.

use base64::{Engine, engine::general_purpose::STANDARD};
use kube::Client;
use serde_json::{Value, json};

use super::{
    certificates::authority_of,
    deployment::{SPEC_HASH, descriptions, expected, hash, serves, service_name, webhooks},
    install::{GENERATE_NAME, configuration},
    objects::{collection, is_labelled, path, selector},
};
use crate::{
    request::text,
    steps::{get, is_rolled_out, list},
};

/// Describes what an operator lacks; `None` if it is installed.
pub(super) async fn missing(client: &Client, csv: &Value) -> anyhow::Result<Option<String>> {
    let namespace = text(csv, "/metadata/namespace");
    for description in descriptions(csv) {
        let name = text(description, "/name");
        let is_serving = serves(csv, name);
        if is_serving {
            let secret = path("Secret", namespace, &format!("{}-cert", service_name(name)));
            let secret = get(client, &secret).await?;
            let managed = secret.filter(|secret| secret["metadata"]["labels"]["olm.managed"] == "true");
            if managed.as_ref().and_then(authority_of).is_none() {
                return Ok(Some(
                    "NeedsCertRotation: CSV owns resources that require a cert refresh".to_owned(),
                ));
            }
        }
        let ca_hash = match is_serving {
            true => match trusted(client, csv).await? {
                Some(hash) => Some(hash),
                None => {
                    return Ok(Some(
                        "NeedsReinstall: calculated deployment install is bad".to_owned(),
                    ));
                }
            },
            false => None,
        };
        let live = get(client, &path("Deployment", namespace, name)).await?;
        let Some(live) = live.filter(|live| is_labelled(live, csv)) else {
            return Ok(Some(format!("deployment {name} not found by its owner")));
        };
        let expected = expected(csv, description, ca_hash.as_deref());
        if live["metadata"]["labels"][SPEC_HASH] != expected["metadata"]["labels"][SPEC_HASH] {
            return Ok(Some(format!("deployment {name} changed old hash")));
        }
        if !is_rolled_out(&live) {
            return Ok(Some(format!("waiting for deployment {name}")));
        }
    }
    for webhook in webhooks(csv) {
        let is_there = match configuration(webhook) {
            Some(kind) => !configurations(client, csv, kind, webhook).await?.is_empty(),
            None => bundle(client, webhook).await?.is_some(),
        };
        if !is_there {
            return Ok(Some("Webhooks not installed".to_owned()));
        }
    }
    Ok(None)
}

/// The configurations of a webhook that have the labels.
async fn configurations(
    client: &Client,
    csv: &Value,
    kind: &str,
    webhook: &Value,
) -> anyhow::Result<Vec<Value>> {
    let mut found = list(client, &format!("{}{}", collection(kind, ""), selector(csv))).await?;
    found.retain(|one| one["metadata"]["labels"][GENERATE_NAME] == webhook["generateName"]);
    Ok(found)
}

/// The hash of the CA that the first webhook trusts: from a configuration with the labels, or from a CRD.
async fn trusted(client: &Client, csv: &Value) -> anyhow::Result<Option<String>> {
    for webhook in webhooks(csv) {
        let bundle = match configuration(webhook) {
            Some(kind) => {
                let found = configurations(client, csv, kind, webhook).await?;
                found
                    .first()
                    .map(|one| one["webhooks"][0]["clientConfig"]["caBundle"].clone())
            }
            None => bundle(client, webhook).await?,
        };
        let bundle = bundle
            .as_ref()
            .and_then(Value::as_str)
            .and_then(|bundle| STANDARD.decode(bundle).ok());
        if let Some(bundle) = bundle.and_then(|bundle| String::from_utf8(bundle).ok()) {
            return Ok(Some(hash(&json!(bundle))));
        }
    }
    Ok(None)
}

/// The CA bundle of the first CRD that a webhook converts.
async fn bundle(client: &Client, webhook: &Value) -> anyhow::Result<Option<Value>> {
    let name = webhook["conversionCRDs"][0].as_str().unwrap_or_default();
    let crd = get(client, &path("CustomResourceDefinition", "", name)).await?;
    let bundle = crd
        .as_ref()
        .and_then(|crd| crd.pointer("/spec/conversion/webhook/clientConfig/caBundle"));
    Ok(bundle.cloned())
}
