//! Roles and bindings that grant the missing rights of a BundleDeployment's ServiceAccount.

use windlass_api::{BundleDeployment, BundleDeploymentStatus};
use windlass_operator::install::tenancy::grant;

use crate::terminal::yaml;

/// Returns a role and a binding for each namespace with missing rights, as YAML documents; empty if no rights
/// are missing.
///
/// # Errors
///
/// When they cannot be written as YAML.
pub(super) fn documents(deployment: &BundleDeployment) -> anyhow::Result<String> {
    let Some(account) = &deployment.spec.service_account_name else {
        return Ok(String::new());
    };
    let name = deployment.metadata.name.as_deref().unwrap_or_default();
    let status = deployment.status.as_ref();
    let missing = status.map_or(&[][..], |BundleDeploymentStatus { missing_rights, .. }| {
        missing_rights
    });
    let granted = grant(missing, name, &deployment.spec.namespace, account);
    let documents: anyhow::Result<Vec<_>> = granted.iter().map(yaml::document).collect();
    Ok(documents?.join("---\n"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use windlass_object::names;

    use super::*;

    fn deployment(account: Value, missing: Value) -> BundleDeployment {
        serde_json::from_value(json!({
            "apiVersion": names::API_VERSION, "kind": "BundleDeployment", "metadata": {"name": "sample"},
            "spec": {"namespace": "n", "serviceAccountName": account, "source": {}},
            "status": {"missingRights": missing},
        }))
        .unwrap()
    }

    #[test]
    fn the_printed_roles_can_be_applied() {
        let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]);
        let missing = json!([{"rules": rules}, {"namespace": "n", "rules": rules}]);
        let printed = documents(&deployment(json!("tenant"), missing.clone())).unwrap();
        let read = windlass_object::yaml::documents(printed.as_bytes()).unwrap();
        assert_eq!(read.len(), 4, "{printed}");
        assert_eq!(documents(&deployment(json!("tenant"), json!([]))).unwrap(), "");
        assert_eq!(documents(&deployment(Value::Null, missing)).unwrap(), "");
    }
}
