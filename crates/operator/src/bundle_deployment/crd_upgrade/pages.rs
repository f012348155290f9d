//! Reading the objects that are tried.

use windlass_cluster::{Cluster, Kind, RequestError, page::PAGE_SIZE};
use windlass_crd::upgrade_safety::{Extent, Trial, TrialResult};

use crate::bundle_deployment::halt::BundleDeploymentError;

/// How many objects are tried.
const MOST: u64 = 10_000;

/// Tries the objects of a kind, a page at a time: there may be more than fit into memory.
pub(super) async fn try_objects(
    cluster: &Cluster,
    kind: &Kind,
    mut trial: Trial,
) -> Result<TrialResult, BundleDeploymentError> {
    let mut from = None;
    loop {
        let page = match cluster.objects(kind, None, PAGE_SIZE, from.as_deref()).await {
            Ok(page) => page,
            Err(error) => {
                from = Some(resumed(error)?);
                continue;
            }
        };
        let objects = page.objects;
        trial = tokio::task::spawn_blocking(move || {
            objects.iter().for_each(|object| trial.add(object));
            trial
        })
        .await?;
        from = page.next;
        if from.is_none() {
            return Ok(trial.finish(Extent::All));
        }
        let tried = trial.object_count();
        if tried >= MOST {
            let of = page.remaining.map(|remaining| tried + remaining);
            return Ok(trial.finish(Extent::Sample { of }));
        }
    }
}

/// Where a list goes on whose next page the API server has forgotten, if that is what is wrong.
fn resumed(error: RequestError) -> Result<String, RequestError> {
    match error.expired_page() {
        Some(Some(next)) => Ok(next.to_owned()),
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::{Request, Response};
    use kube::{Client, client::Body};
    use serde_json::{Value, json};
    use tower::{BoxError, service_fn};

    use super::*;
    use windlass_crd::upgrade_safety::Policy;

    const KIND: Kind = Kind::new("example.com/v1", "Widget");

    /// Tries all that an API server has, which answers for the page that begins at some object; the findings.
    async fn tried(page: fn(u64) -> Result<Value, Value>) -> Result<Vec<String>, BundleDeploymentError> {
        let serving = service_fn(move |request: Request<Body>| {
            let query = request.uri().query().unwrap_or_default().to_owned();
            let from = query.split('&').find_map(|part| part.strip_prefix("continue="));
            let answer = if request.uri().path().ends_with("/widgets") {
                page(from.map_or(0, |from| from.parse().unwrap()))
            } else {
                Ok(json!({"resources": [{"name": "widgets", "kind": "Widget", "namespaced": true}]}))
            };
            let (code, body) = match answer {
                Ok(body) => (200, body),
                Err(status) => (status["code"].as_u64().unwrap_or(500), status),
            };
            async move {
                let answer = Response::builder().status(u16::try_from(code)?);
                Ok::<_, BoxError>(answer.body(Body::from(body.to_string().into_bytes()))?)
            }
        });
        let cluster = Cluster::new(Client::new(serving, "default"), Duration::from_secs(60));
        let crd = |most: u64| {
            let schema =
                json!({"type": "object", "properties": {"size": {"type": "integer", "maximum": most}}});
            json!({"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]}})
        };
        let trial = Trial::new("v1", &crd(2), &crd(1));
        let tried = try_objects(&cluster, &KIND, trial).await?;
        let findings = tried.findings("widgets", &Policy::default());
        Ok(findings.into_iter().map(|finding| finding.message).collect())
    }

    /// A page of 500 objects of size 1, of which `from` is the first, of a list of `all`.
    fn page(from: u64, all: u64) -> Value {
        let objects = from..all.min(from + 500);
        let next = if objects.end < all {
            objects.end.to_string()
        } else {
            String::new()
        };
        let items: Vec<_> = objects
            .clone()
            .map(|number| json!({"metadata": {"name": format!("w{number}")}, "size": 1}))
            .collect();
        json!({"metadata": {"continue": next, "remainingItemCount": all - objects.end}, "items": items})
    }

    fn expired(next: Option<&str>) -> Value {
        json!({"kind": "Status", "code": 410, "reason": "Expired", "message": "", "metadata": {"continue": next}})
    }

    #[tokio::test]
    async fn every_page_is_tried() {
        let last_is_bad = |from| {
            let mut page = page(from, 1200);
            page["items"].as_array_mut().unwrap().last_mut().unwrap()["size"] = json!(2);
            Ok(page)
        };
        let found = tried(last_is_bad).await.unwrap();
        let [message] = &found[..] else {
            panic!("{found:?}")
        };
        let expected = "3 of 1200 objects would become invalid: w499 (size: ";
        assert!(message.starts_with(expected), "{message}");
    }

    #[tokio::test]
    async fn more_than_ten_thousand_are_sampled() {
        assert_eq!(tried(|from| Ok(page(from, 10_000))).await.unwrap(), [""; 0]);
        let found = tried(|from| Ok(page(from, 10_500))).await.unwrap();
        assert_eq!(found, ["only the first 10000 of 10500 objects were tried"]);
    }

    #[tokio::test]
    async fn a_list_goes_on_where_the_api_server_says_when_a_page_has_expired() {
        let once = |from| match from {
            500 => Err(expired(Some("501"))),
            from => Ok(page(from, 1200)),
        };
        assert_eq!(tried(once).await.unwrap(), [""; 0]);
    }

    #[tokio::test]
    async fn what_cannot_be_listed_is_no_success() {
        let forbidden =
            |_| Err(json!({"kind": "Status", "code": 403, "reason": "Forbidden", "message": "no"}));
        assert!(tried(forbidden).await.is_err());
        let later = |from| match from {
            500 => Err(expired(None)),
            from => Ok(page(from, 1200)),
        };
        assert!(tried(later).await.is_err());
    }
}
