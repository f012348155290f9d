//! Callers of an install's webhooks, and their CA bundles.

use std::collections::BTreeSet;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;
use windlass_object::{
    ca_injectors::{CERT_MANAGER_API_SERVER, CERT_MANAGER_CERTIFICATE, CERT_MANAGER_SECRET, SERVICE_CA},
    object,
};

/// The annotations that request CA bundles from other injectors.
pub const CA_INJECTORS: [&str; 5] = [
    CERT_MANAGER_CERTIFICATE,
    CERT_MANAGER_SECRET,
    CERT_MANAGER_API_SERVER,
    SERVICE_CA[0],
    SERVICE_CA[1],
];

/// Returns the Services, by namespace and name, that an object calls.
pub fn called_services(caller: &Value) -> BTreeSet<(String, String)> {
    let text = |pointer: String| object::text(caller, &pointer).map(str::to_owned);
    client_configs(caller)
        .into_iter()
        .filter_map(|client| {
            let part = |field: &str| text(format!("{client}/service/{field}"));
            Some((part("namespace")?, part("name")?))
        })
        .collect()
}

/// Reports whether an object calls a Service without a CA bundle.
pub fn lacks_ca_bundle(caller: &Value) -> bool {
    client_configs(caller).iter().any(|client| {
        let text = |field: &str| object::text(caller, &format!("{client}/{field}")).unwrap_or_default();
        caller.pointer(&format!("{client}/service")).is_some() && text("caBundle").is_empty()
    })
}

/// Returns the CA bundles of an object's clientConfigs, in PEM.
pub fn trusted_pem(caller: &Value) -> String {
    let mut trusted = String::new();
    for client in client_configs(caller) {
        let bundle = object::text(caller, &format!("{client}/caBundle")).unwrap_or_default();
        trusted.push_str(&String::from_utf8_lossy(
            &STANDARD.decode(bundle).unwrap_or_default(),
        ));
        trusted.push('\n');
    }
    trusted
}

/// Adds the CAs in `pem` to the CA bundles of a caller.
#[must_use]
pub fn with_trusted_pem(caller: &Value, pem: &str) -> Value {
    let mut trusting = caller.clone();
    for client in client_configs(caller) {
        let Some(client) = trusting.pointer_mut(&client).and_then(Value::as_object_mut) else {
            continue;
        };
        if !client.contains_key("service") {
            continue;
        }
        let bundle = client.get("caBundle").and_then(Value::as_str);
        // Bundles may contain comments in any encoding, so their bytes are preserved.
        let mut united = STANDARD.decode(bundle.unwrap_or_default()).unwrap_or_default();
        for certificate in certificates(pem) {
            if String::from_utf8_lossy(&united).contains(certificate) {
                continue;
            }
            if !united.is_empty() && !united.ends_with(b"\n") {
                united.push(b'\n');
            }
            united.extend([certificate, "\n"].concat().bytes());
        }
        client.insert("caBundle".to_owned(), STANDARD.encode(united).into());
    }
    trusting
}

/// The prefix of the line after the certificates of a marked bundle.
const MARK: &str = "# windlass: ";

/// Adds a comment to the CA bundles of a caller, or removes it. A comment that was not used before makes API
/// servers open new connections: they cache connections by bundle.
#[must_use]
pub fn with_bundle_mark(caller: &Value, mark: Option<&str>) -> Value {
    let mut marked = caller.clone();
    for client in client_configs(caller) {
        let bundle = object::text(caller, &format!("{client}/caBundle")).unwrap_or_default();
        let Ok(bundle) = STANDARD.decode(bundle) else {
            continue;
        };
        let text = String::from_utf8_lossy(&bundle);
        let unmarked = text.rfind(MARK).map_or(&*text, |at| &text[..at]);
        let mut bytes = unmarked.trim_end().to_owned() + "\n";
        if let Some(mark) = mark {
            bytes.extend([MARK, mark, "\n"]);
        }
        if let Some(client) = marked.pointer_mut(&client).and_then(Value::as_object_mut)
            && !bundle.is_empty()
        {
            client.insert("caBundle".to_owned(), STANDARD.encode(bytes).into());
        }
    }
    marked
}

/// Returns the certificates of a bundle verbatim, including those that Go reads and other parsers reject.
fn certificates(pem: &str) -> impl Iterator<Item = &str> {
    let blocks = pem.split_inclusive("-----END CERTIFICATE-----");
    blocks.filter_map(|block| block.get(block.find("-----BEGIN CERTIFICATE-----")?..))
}

/// Returns the JSON pointers of an object's clientConfigs.
fn client_configs(caller: &Value) -> Vec<String> {
    match object::text(caller, "/kind") {
        Some("CustomResourceDefinition") => vec!["/spec/conversion/webhook/clientConfig".to_owned()],
        Some("APIService") => vec!["/spec".to_owned()],
        Some("ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration") => {
            let count = object::items(caller, "/webhooks").len();
            (0..count)
                .map(|index| format!("/webhooks/{index}/clientConfig"))
                .collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn client(name: &str, bundle: &str) -> Value {
        json!({"service": {"namespace": "n", "name": name}, "caBundle": STANDARD.encode(bundle)})
    }

    fn pem(content: &str) -> String {
        format!("-----BEGIN CERTIFICATE-----\n{content}\n-----END CERTIFICATE-----\n")
    }

    #[test]
    fn called_services_of_each_kind_are_found() {
        let services = |caller: Value| {
            let called = called_services(&caller);
            called.into_iter().map(|(_, name)| name).collect::<Vec<_>>()
        };
        assert_eq!(
            services(json!({"kind": "MutatingWebhookConfiguration", "webhooks": [
                {"clientConfig": client("a", "")}, {"clientConfig": {"url": "https://example.com"}}, {"clientConfig": client("b", "")}]})),
            ["a", "b"]
        );
        let conversion = json!({"strategy": "Webhook", "webhook": {"clientConfig": client("c", "")}});
        assert_eq!(
            services(json!({"kind": "CustomResourceDefinition", "spec": {"conversion": conversion}})),
            ["c"]
        );
        assert_eq!(
            services(json!({"kind": "APIService", "spec": client("d", "")})),
            ["d"]
        );
        assert_eq!(
            services(json!({"kind": "Service", "spec": client("e", "")})),
            [""; 0]
        );
    }

    #[test]
    fn cas_are_added_once_and_comments_keep_them() {
        let caller = |bundle: &str| json!({"kind": "APIService", "spec": client("d", bundle)});
        let (a, b) = (pem("QQ=="), pem("Qg=="));
        let united = with_trusted_pem(&caller(&a), &format!("{a}{b}"));
        assert_eq!(united, caller(&format!("{a}{b}")));
        assert_eq!(with_trusted_pem(&united, &b), united);
        assert_eq!(
            with_trusted_pem(&caller(a.trim()), &b),
            caller(&format!("{a}{b}"))
        );
        assert_eq!(with_trusted_pem(&caller(&a), "garbage"), caller(&a));
        // Formats of trust-manager and other tools.
        assert_eq!(
            with_trusted_pem(&caller(&a), &format!("# CN=b\n{b}# end")),
            caller(&format!("{a}{b}"))
        );
        let latin = |rest: &str| {
            let bytes = [b"# Z\xfcrich\n", rest.as_bytes()].concat();
            json!({"kind": "APIService", "spec": {"service": {"namespace": "n", "name": "d"}, "caBundle": STANDARD.encode(bytes)}})
        };
        assert_eq!(with_trusted_pem(&latin(&a), &b), latin(&format!("{a}{b}")));
        assert_eq!(with_trusted_pem(&caller(&a), &a), caller(&a));
        let once = super::with_bundle_mark(&caller(&a), Some("1"));
        assert_eq!(once, caller(&format!("{a}# windlass: 1\n")));
        assert_eq!(super::with_bundle_mark(&once, Some("1")), once);
        assert_ne!(super::with_bundle_mark(&once, Some("2")), once);
        assert_eq!(super::with_bundle_mark(&once, None), caller(&a));
        assert_eq!(super::with_bundle_mark(&caller(""), Some("1")), caller(""));
        assert_eq!(trusted_pem(&caller(&a)), format!("{a}\n"));
        assert!(lacks_ca_bundle(&caller("")) && !lacks_ca_bundle(&caller(&a)));
        let url = json!({"kind": "APIService", "spec": {"url": "https://example.com"}});
        assert!(!lacks_ca_bundle(&url));
        assert_eq!(with_trusted_pem(&url, &a), url);
    }
}
