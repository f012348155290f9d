//! Identifies the converter of a CRD in one line.

use serde_json::Value;
use windlass_object::object;

/// Returns the converter of a CRD with this `spec.conversion`, regardless of its CA bundle: `None`, or the
/// address of the webhook.
pub fn converter(conversion: Option<&Value>) -> String {
    let text = |pointer: &str| conversion.and_then(|conversion| object::text(conversion, pointer));
    if text("/strategy") != Some("Webhook") {
        return "None".to_owned();
    }
    if let Some(url) = text("/webhook/clientConfig/url") {
        return url.to_owned();
    }
    let of_service = |field| {
        text(&format!("/webhook/clientConfig/service/{field}"))
            .unwrap_or_default()
            .to_owned()
    };
    // Default port and path of the API server.
    let port = conversion
        .and_then(|conversion| conversion.pointer("/webhook/clientConfig/service/port"))
        .and_then(Value::as_i64)
        .unwrap_or(443);
    let path = of_service("path");
    format!(
        "https://{}.{}.svc:{port}/{}",
        of_service("name"),
        of_service("namespace"),
        path.trim_start_matches('/')
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn client_converter(client: Value) -> String {
        converter(Some(
            &json!({"strategy": "Webhook", "webhook": {"clientConfig": client}}),
        ))
    }

    #[test]
    fn the_converter_includes_the_address_but_not_the_ca_bundle() {
        let service =
            json!({"namespace": "sample-system", "name": "webhooks", "path": "/convert", "port": 8443});
        assert_eq!(
            client_converter(json!({"service": service, "caBundle": "QQ=="})),
            "https://webhooks.sample-system.svc:8443/convert"
        );
        assert_eq!(
            client_converter(json!({"service": {"namespace": "a", "name": "b"}})),
            "https://b.a.svc:443/"
        );
        assert_eq!(
            client_converter(json!({"url": "https://example.com/c"})),
            "https://example.com/c"
        );
        assert_eq!(converter(Some(&json!({"strategy": "None"}))), "None");
        assert_eq!(converter(None), "None");
    }
}
