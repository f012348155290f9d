use kube::client::Body;
use parking_lot::Mutex;
use tower::{BoxError, service_fn};

use super::*;
use crate::kind::kinds;

#[tokio::test]
async fn names_that_change_the_path_are_not_sent() {
    let asked = Arc::<Mutex<Vec<String>>>::default();
    let log = asked.clone();
    let service = service_fn(move |request: Request<Body>| {
        log.lock().push(request.uri().path().to_owned());
        async {
            let secrets = json!({"name": "secrets", "kind": "Secret", "namespaced": true});
            let list = json!({"resources": [secrets]}).to_string().into_bytes();
            Ok::<_, BoxError>(http::Response::new(Body::from(list)))
        }
    });
    let cluster = Cluster::new(Client::new(service, "default"), Duration::from_secs(1));
    for (namespace, name) in [
        ("n", "../../kube-system/secrets/x"),
        ("n", ".."),
        ("n", "a?watch=true"),
        ("n", "%2e%2e"),
        ("n/pods", "a"),
    ] {
        let key = kinds::SECRET.object(Some(namespace), name);
        for error in [
            cluster.read(&key).await.unwrap_err(),
            cluster.delete(&key, None).await.unwrap_err(),
            cluster.patch_status(&key, &json!({}), "m").await.unwrap_err(),
        ] {
            assert!(error.is_rejection(), "{error}");
        }
    }
    assert_eq!(*asked.lock(), [""; 0]);
    let plain = kinds::SECRET.object(Some("n"), "system:a.b");
    cluster.read(&plain).await.unwrap();
    let paths = ["/api/v1", "/api/v1/namespaces/n/secrets/system:a.b"];
    assert_eq!(*asked.lock(), paths);
}
