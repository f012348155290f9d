//! A path is that of a hook only if it is exactly the hook's own path, and a joined path stays below its
//! prefix.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use runtime_hooks::{Catalog, hook::join};

static CATALOG: LazyLock<Catalog> = LazyLock::new(Catalog::cluster_api);

fuzz_target!(|path: &str| {
    if let Some((hook, handler)) = CATALOG.at_path(path) {
        let expected = match handler {
            Some(handler) => hook.reference().handler_path(handler),
            None => hook.reference().path(),
        };
        assert_eq!(path, expected);
    }
    let joined = join(path, "/hook");
    assert!(joined.starts_with('/') && joined.ends_with("/hook"), "{joined}");
    assert!(
        joined
            .split('/')
            .skip(1)
            .all(|segment| !["", ".", ".."].contains(&segment)),
        "{joined}"
    );
    assert_eq!(join("", &joined), joined);
});
