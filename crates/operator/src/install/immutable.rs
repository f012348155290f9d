//! Fields that cannot change: an object that differs in one of them has to be deleted and made anew.

use serde_json::Value;
use windlass_object::object;

/// Reports whether `desired` can be applied to an object that was applied as `installed`, by the API server's
/// rules for immutable fields (`ValidateConfigMapUpdate`, `ValidateSecretUpdate`,
/// `ValidateRoleBindingUpdate`, `ValidatePriorityClassUpdate`, `ValidateServiceClusterIPsRelatedFields` of
/// kubernetes/pkg/apis).
pub fn may_become(installed: &Value, desired: &Value) -> bool {
    let same = |pointer: &str| installed.pointer(pointer) == desired.pointer(pointer);
    match object::text(installed, "/kind") {
        Some("ConfigMap" | "Secret") => {
            installed.get("immutable") != Some(&Value::Bool(true))
                || ["/data", "/binaryData", "/stringData", "/immutable"]
                    .iter()
                    .all(|pointer| same(pointer))
        }
        Some("RoleBinding" | "ClusterRoleBinding") => same("/roleRef"),
        Some("PriorityClass") => same("/value") && same("/preemptionPolicy"),
        Some("Service") => same("/spec/clusterIP"),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_cannot_change_in_place_is_known() {
        let map = |color: &str, immutable: bool| json!({"kind": "ConfigMap", "immutable": immutable, "data": {"color": color}});
        let binding = |role: &str| json!({"kind": "RoleBinding", "roleRef": {"name": role}});
        let service = |address: Value| json!({"kind": "Service", "spec": {"clusterIP": address}});
        for (installed, desired, expected) in [
            (map("blue", true), map("green", true), false),
            (map("blue", true), map("blue", true), true),
            (map("blue", false), map("green", true), true),
            (binding("a"), binding("b"), false),
            (binding("a"), binding("a"), true),
            (service(json!(null)), service(json!("None")), false),
            (
                json!({"kind": "Role"}),
                json!({"kind": "Role", "rules": []}),
                true,
            ),
        ] {
            assert_eq!(
                may_become(&installed, &desired),
                expected,
                "{installed} {desired}"
            );
        }
    }
}
