//! Paginated lists.

use kube::api::ListParams;
use serde_json::Value;
use windlass_object::object;

use crate::{
    kind::Kind,
    requests::{Cluster, RequestError},
};

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// The parsed items of this page.
    pub objects: Vec<T>,
    /// The resourceVersion of the list.
    pub resource_version: String,
    /// The number of objects after this page, if the API server reports it.
    pub remaining: Option<u64>,
    /// The continue token; `None` for the last page.
    pub next: Option<String>,
}

/// The number of objects per page: each may have 1.5 MiB, and a page is completely in memory.
pub const PAGE_SIZE: u32 = 50;

impl<T> Page<T> {
    /// Parses a list, and its items by `read`.
    pub(super) fn from_list(mut list: Value, read: impl FnMut(Value) -> Option<T>) -> Self {
        let items = match list.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => items,
            _ => Vec::new(),
        };
        let text = |pointer| object::text(&list, pointer).unwrap_or_default().to_owned();
        Self {
            resource_version: text("/metadata/resourceVersion"),
            remaining: list
                .pointer("/metadata/remainingItemCount")
                .and_then(Value::as_u64),
            next: Some(text("/metadata/continue")).filter(|next| !next.is_empty()),
            objects: items.into_iter().filter_map(read).collect(),
        }
    }

    /// Returns the number of objects on this page and after it, if the API server reports it.
    pub fn count(&self) -> Option<u64> {
        let here = u64::try_from(self.objects.len()).ok()?;
        let after = if self.next.is_none() {
            Some(0)
        } else {
            self.remaining
        };
        after.map(|after| here + after)
    }
}

impl Cluster {
    /// Lists the objects of a kind, in one namespace or in all, page by page. Items have apiVersion and kind.
    ///
    /// # Errors
    ///
    /// As [`Cluster::read`].
    pub async fn list(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        label_selector: Option<&str>,
    ) -> Result<Vec<Value>, RequestError> {
        self.list_as(kind, namespace, label_selector, Some).await
    }

    /// Lists the objects of a kind as [`Cluster::list`] does, and returns the results of `read`.
    ///
    /// # Errors
    ///
    /// As [`Cluster::read`].
    pub async fn list_as<T>(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        label_selector: Option<&str>,
        mut read: impl FnMut(Value) -> Option<T>,
    ) -> Result<Vec<T>, RequestError> {
        let mut objects = Vec::new();
        let mut params = ListParams::default().limit(PAGE_SIZE);
        if let Some(selector) = label_selector {
            params = params.labels(selector);
        }
        loop {
            let page = self.list_page(kind, namespace, &params).await?;
            objects.extend(page.objects.into_iter().filter_map(&mut read));
            let Some(next) = page.next else {
                return Ok(objects);
            };
            params = params.continue_token(&next);
        }
    }

    /// Returns any object of a kind; `None` if there is none.
    ///
    /// # Errors
    ///
    /// As [`Cluster::read`].
    pub async fn find_any(&self, kind: &Kind) -> Result<Option<Value>, RequestError> {
        let page = self.objects(kind, None, 1, None).await?;
        Ok(page.objects.into_iter().next())
    }

    /// Lists the metadata of up to `limit` objects of a kind, in all namespaces, from the continue token `next`, and returns the
    /// results of `read`.
    pub(super) async fn metadata_page<T>(
        &self,
        kind: &Kind,
        limit: u32,
        next: Option<&str>,
        read: impl FnMut(Value) -> Option<T>,
    ) -> Result<Page<T>, RequestError> {
        let requests = self.requests(kind, None).await?;
        let request = requests.list_metadata(&list_params(limit, next));
        let list = self.send("list", kind, request).await?;
        Ok(Page::from_list(list, read))
    }

    /// Lists up to `limit` objects of a kind, in one namespace or in all, from the continue token `next`.
    /// Items have apiVersion and kind.
    ///
    /// # Errors
    ///
    /// As [`Cluster::read`]; [`RequestError::expired_page`] if the continue token has expired.
    pub async fn objects(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        limit: u32,
        next: Option<&str>,
    ) -> Result<Page<Value>, RequestError> {
        self.list_page(kind, namespace, &list_params(limit, next)).await
    }

    async fn list_page(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        params: &ListParams,
    ) -> Result<Page<Value>, RequestError> {
        let send = async || {
            let requests = self.requests(kind, namespace).await?;
            self.send("list", kind, requests.list(params)).await
        };
        let mut listed = send().await;
        if listed.as_ref().is_err_and(RequestError::is_not_found) {
            // An empty list is not a 404: the kind is not served, or by another path.
            self.forget(kind);
            listed = send().await;
        }
        Ok(Page::from_list(listed?, |item| Some(with_kind(item, kind))))
    }
}

/// Returns the parameters for a page of up to `limit` objects from the continue token `next`.
fn list_params(limit: u32, next: Option<&str>) -> ListParams {
    let params = ListParams::default().limit(limit);
    match next {
        Some(next) => params.continue_token(next),
        None => params,
    }
}

/// Adds apiVersion and kind, which the API server omits in lists.
fn with_kind(mut item: Value, kind: &Kind) -> Value {
    item["apiVersion"] = Value::from(kind.api_version.as_ref());
    item["kind"] = Value::from(kind.kind.as_ref());
    item
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use http::Request;
    use kube::{Client, client::Body};
    use parking_lot::Mutex;
    use serde_json::json;
    use tower::{BoxError, service_fn};

    use super::*;
    use crate::kind::kinds;

    #[test]
    fn a_page_has_its_objects_and_the_number_of_remaining_ones() {
        let list = json!({
            "metadata": {"resourceVersion": "70", "continue": "token", "remainingItemCount": 3},
            "items": [{"metadata": {"name": "a"}}, {"metadata": {}}, {"metadata": {"name": "b"}}],
        });
        let name = |item: Value| object::text(&item, "/metadata/name").map(str::to_owned);
        let page = Page::from_list(list, name);
        assert_eq!(page.objects, ["a", "b"]);
        assert_eq!(page.next.as_deref(), Some("token"));
        assert_eq!((page.remaining, page.resource_version.as_str()), (Some(3), "70"));
        assert_eq!(page.count(), Some(5));
        let last = Page::from_list(json!({"metadata": {"continue": ""}, "items": null}), name);
        assert_eq!(
            (last.objects.len(), &last.next, last.count()),
            (0, &None, Some(0))
        );
    }

    #[tokio::test]
    async fn lists_are_read_in_pages() {
        let received = Arc::<Mutex<Vec<String>>>::default();
        let log = received.clone();
        let service = service_fn(move |request: Request<Body>| {
            let query = request.uri().query().map(str::to_owned);
            let answer = match &query {
                None => json!({"resources": [{"name": "secrets", "kind": "Secret", "namespaced": true}]}),
                Some(query) => {
                    let next = if query.contains("continue") { "" } else { "token" };
                    json!({"metadata": {"continue": next}, "items": [{"metadata": {"name": "a"}}]})
                }
            };
            log.lock().extend(query);
            let body = Body::from(answer.to_string().into_bytes());
            async { Ok::<_, BoxError>(http::Response::new(body)) }
        });
        let cluster = Cluster::new(Client::new(service, "default"), Duration::from_secs(1));
        let listed = cluster.list(&kinds::SECRET, None, Some("a=b")).await.unwrap();
        assert_eq!(listed.len(), 2);
        let received = received.lock();
        assert!(
            received.iter().all(|query| query.contains("limit=50")),
            "{received:?}"
        );
        assert_eq!(received.len(), 2);
    }

    #[test]
    fn items_get_their_api_version_and_kind() {
        let kind = Kind::new("example.com/v2", "Widget");
        let item = with_kind(json!({"metadata": {"name": "a"}}), &kind);
        assert_eq!(
            item,
            json!({"metadata": {"name": "a"}, "apiVersion": "example.com/v2", "kind": "Widget"})
        );
    }
}
