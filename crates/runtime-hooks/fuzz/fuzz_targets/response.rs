//! Any answer of a server is decoded or rejected: as a discovery, and as a response and request of each hook.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use runtime_hooks::{Catalog, discovery, go_json, response::HookOutcome};
use serde_json::Value;

static CATALOG: LazyLock<Catalog> = LazyLock::new(Catalog::cluster_api);

fuzz_target!(|body: &[u8]| {
    let discovered = discovery::read_answer(body, &CATALOG);
    for handler in discovered.into_iter().flat_map(|discovered| discovered.handlers) {
        let status = handler.to_status("ext1");
        assert_eq!(
            status["name"].as_str().map(|name| name.split('.').count()),
            Some(2)
        );
    }
    let Ok(value) = go_json::read::<Value>(body) else {
        assert!(go_json::read::<HookOutcome>(body).is_err());
        return;
    };
    for hook in CATALOG.hooks() {
        let _ = hook.check_request(&value);
        // Every valid response has an outcome.
        if hook.check_response(&value).is_ok() && !hook.metadata().singleton {
            assert!(value.is_null() || value.is_object());
        }
    }
});
