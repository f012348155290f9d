//! Built-in kinds that admission webhooks ask for, each with the smallest object of it that is worth a question.

use serde_json::{Value, json};
use windlass_crd::SAMPLE_NAME as NAME;

/// A kind of the API server's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BuiltinKind {
    pub(super) group: &'static str,
    pub(super) version: &'static str,
    pub(super) plural: &'static str,
    pub(super) kind: &'static str,
    pub(super) namespaced: bool,
    body: Body,
}

/// What stands in an object beside its metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Body {
    Nothing,
    Pod,
    /// A pod template, with a selector of its pods.
    Workload,
    Job,
    CronJob,
    Service,
    Claim,
    Ingress,
    Rules,
    Binding,
    Autoscaler,
}

const LABEL: &str = "app.kubernetes.io/name";

const RBAC: &str = "rbac.authorization.k8s.io";

impl BuiltinKind {
    /// Those that webhooks ask for; others are not asked about.
    pub(super) const ALL: [Self; 24] = [
        namespaced("", "pods", "Pod", Body::Pod),
        namespaced("apps", "deployments", "Deployment", Body::Workload),
        namespaced("apps", "statefulsets", "StatefulSet", Body::Workload),
        namespaced("apps", "daemonsets", "DaemonSet", Body::Workload),
        namespaced("apps", "replicasets", "ReplicaSet", Body::Workload),
        namespaced("batch", "jobs", "Job", Body::Job),
        namespaced("batch", "cronjobs", "CronJob", Body::CronJob),
        namespaced("", "services", "Service", Body::Service),
        namespaced("", "configmaps", "ConfigMap", Body::Nothing),
        namespaced("", "secrets", "Secret", Body::Nothing),
        namespaced("", "serviceaccounts", "ServiceAccount", Body::Nothing),
        namespaced("", "persistentvolumeclaims", "PersistentVolumeClaim", Body::Claim),
        namespaced("networking.k8s.io", "ingresses", "Ingress", Body::Ingress),
        namespaced(
            "networking.k8s.io",
            "networkpolicies",
            "NetworkPolicy",
            Body::Nothing,
        ),
        namespaced(
            "policy",
            "poddisruptionbudgets",
            "PodDisruptionBudget",
            Body::Nothing,
        ),
        namespaced("coordination.k8s.io", "leases", "Lease", Body::Nothing),
        namespaced(RBAC, "roles", "Role", Body::Rules),
        namespaced(RBAC, "rolebindings", "RoleBinding", Body::Binding),
        cluster_scoped(RBAC, "clusterroles", "ClusterRole", Body::Rules),
        cluster_scoped(RBAC, "clusterrolebindings", "ClusterRoleBinding", Body::Binding),
        cluster_scoped("", "namespaces", "Namespace", Body::Nothing),
        cluster_scoped("", "nodes", "Node", Body::Nothing),
        cluster_scoped("storage.k8s.io", "storageclasses", "StorageClass", Body::Nothing),
        Self {
            version: "v2",
            ..namespaced(
                "autoscaling",
                "horizontalpodautoscalers",
                "HorizontalPodAutoscaler",
                Body::Autoscaler,
            )
        },
    ];

    /// The smallest object.
    pub(super) fn minimal(&self) -> Value {
        let api_version = match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        };
        let mut metadata = json!({
            "name": NAME, "uid": "00000000-0000-4000-8000-000000000000",
            "creationTimestamp": "2000-01-01T00:00:00Z",
        });
        if self.namespaced {
            metadata["namespace"] = "default".into();
        }
        let mut object = json!({"apiVersion": api_version, "kind": self.kind, "metadata": metadata});
        let body = self.body.fields();
        if let (Value::Object(body), Some(object)) = (body, object.as_object_mut()) {
            object.extend(body);
        }
        object
    }
}

impl Body {
    fn fields(self) -> Value {
        let pod = json!({"containers": [{"name": "main", "image": "example.com/windlass/proof"}]});
        let template = |spec: &Value| json!({"metadata": {"labels": {LABEL: NAME}}, "spec": spec});
        let job = || {
            let mut once = pod.clone();
            once["restartPolicy"] = "Never".into();
            json!({"template": template(&once)})
        };
        let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": NAME});
        let role = json!({"apiGroup": RBAC, "kind": "ClusterRole", "name": NAME});
        match self {
            Self::Nothing => json!({}),
            Self::Pod => json!({"spec": pod}),
            Self::Workload => {
                json!({"spec": {"selector": {"matchLabels": {LABEL: NAME}}, "template": template(&pod)}})
            }
            Self::Job => json!({"spec": job()}),
            Self::CronJob => json!({"spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": job()}}}),
            Self::Service => {
                json!({"spec": {"selector": {LABEL: NAME}, "ports": [{"port": 80, "protocol": "TCP"}]}})
            }
            Self::Claim => json!({"spec": {
                "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
            }}),
            Self::Ingress => json!({"spec": {
                "defaultBackend": {"service": {"name": NAME, "port": {"number": 80}}},
            }}),
            Self::Rules => json!({"rules": []}),
            Self::Binding => json!({"roleRef": role, "subjects": []}),
            Self::Autoscaler => json!({"spec": {"scaleTargetRef": target, "maxReplicas": 1}}),
        }
    }
}

const fn namespaced(
    group: &'static str,
    plural: &'static str,
    kind: &'static str,
    body: Body,
) -> BuiltinKind {
    BuiltinKind {
        group,
        version: "v1",
        plural,
        kind,
        namespaced: true,
        body,
    }
}

const fn cluster_scoped(
    group: &'static str,
    plural: &'static str,
    kind: &'static str,
    body: Body,
) -> BuiltinKind {
    BuiltinKind {
        namespaced: false,
        ..namespaced(group, plural, kind, body)
    }
}

#[cfg(test)]
mod tests {
    use windlass_object::ObjectKey;

    use super::*;

    #[test]
    fn each_kind_has_an_object_in_its_scope() {
        for kind in BuiltinKind::ALL {
            let key = ObjectKey::from_object(&kind.minimal()).unwrap();
            assert_eq!((key.group(), key.kind.as_str()), (kind.group, kind.kind));
            assert_eq!(key.namespace.is_some(), kind.namespaced, "{key}");
        }
    }

    #[test]
    fn what_runs_pods_has_one() {
        let container = |kind: &str, pointer: &str| {
            let kind = BuiltinKind::ALL.iter().find(|of| of.kind == kind).unwrap();
            kind.minimal().pointer(pointer).is_some()
        };
        assert!(container("Pod", "/spec/containers/0/image"));
        assert!(container("Deployment", "/spec/template/spec/containers/0/image"));
        assert!(container(
            "CronJob",
            "/spec/jobTemplate/spec/template/spec/containers/0/image"
        ));
    }
}
