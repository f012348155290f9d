//! A copy of a sample bundle with edited manifests.

use std::{fs, path::Path, time::Duration};

/// Edits of a sample bundle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Variant {
    replaced: Vec<(String, String)>,
    /// Arguments of the container.
    arguments: Vec<String>,
    /// Additional lines of the container.
    container: Vec<String>,
    /// Additional lines of the pod.
    pod: Vec<String>,
    /// Additional files.
    files: Vec<(&'static str, String)>,
}

const ROLE: &str = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n  name: sample-operator-reader\nrules:\n\
     - apiGroups: [\"\"]\n  resources: RESOURCES\n  verbs: [get]\n";

const BINDING: &str = "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata:\n  name: sample-operator-reader\n\
     roleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: Role\n  name: sample-operator-reader\nsubjects:\n\
     - kind: ServiceAccount\n  name: sample-operator\n  namespace: sample-system\n";

const POLICY: &str = "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata:\n  name: sample-operator\nspec:\n  \
     podSelector:\n    matchLabels:\n      app.kubernetes.io/name: sample-operator\n  policyTypes: [Ingress]\n  ingress:\n  \
     - ports:\n    - protocol: TCP\n      port: PORT\n";

/// A second Deployment.
const DEPLOYMENT: &str = "      - name: NAME
        spec:
          replicas: 1
          selector:
            matchLabels:
              app: LABEL
          template:
            metadata:
              labels:
                app: LABEL
            spec:
              serviceAccountName: sample-operator
              containers:
              - name: manager
                image: example.com/windlass/sample-operator:v2
                ports: [{name: webhook, containerPort: 9443}]
                env:
ENVIRONMENT                - name: POD_IP
                  valueFrom:
                    fieldRef:
                      fieldPath: status.podIP
";

/// The environment variable of a program that serves no certificate.
const WITHOUT_CERTIFICATE: &str = "                - {name: STAND_IN, value: 'true'}\n";

impl Variant {
    /// Replaces each occurrence of a text; fails if none exists.
    pub(super) fn replace(&mut self, from: &str, to: &str) {
        self.replaced.push((from.to_owned(), to.to_owned()));
    }

    pub(super) fn add_arguments(&mut self, arguments: &[&str]) {
        self.arguments
            .extend(arguments.iter().map(|argument| (*argument).to_owned()));
    }

    /// Changes the port of the pods.
    pub(super) fn change_port(&mut self) {
        let port = "--port=8443";
        if self.arguments.iter().any(|argument| argument == port) {
            return;
        }
        self.replace("targetPort: 9443\n", "targetPort: 8443\n");
        self.replace("containerPort: 9443\n", "containerPort: 8443\n");
        self.add_arguments(&[port]);
    }

    /// Adds a label to the pod selector.
    pub(super) fn add_selector_label(&mut self) {
        let label = "app.kubernetes.io/name: sample-operator\n";
        for (above, indent) in [("matchLabels:\n", 14), ("labels:\n", 16)] {
            let line = format!("{above}{}{label}", " ".repeat(indent));
            let more = format!("{line}{}control-plane: controller-manager\n", " ".repeat(indent));
            self.replace(&line, &more);
        }
    }

    /// Sets one replica and a strategy.
    pub(super) fn set_strategy(&mut self, strategy: &str) {
        self.replace(
            "replicas: 2\n",
            &format!("replicas: 1\n          strategy: {strategy}\n"),
        );
    }

    /// Delays the readiness of pods.
    pub(super) fn delay_readiness(&mut self, time: Duration) {
        self.arguments
            .push(format!("--ready-after={}ms", time.as_millis()));
        let probe = "readinessProbe: {httpGet: {path: /readyz, port: 8081}, periodSeconds: 1}";
        self.container.push(probe.to_owned());
    }

    /// Adds a NetworkPolicy for the pods' port; the newer release has another port.
    pub(super) fn add_network_policy(&mut self, newer: bool) {
        if newer {
            self.change_port();
        }
        let port = if newer { "8443" } else { "9443" };
        self.files.push(("policy.yaml", POLICY.replace("PORT", port)));
    }

    /// Mounts a ConfigMap with a key that only one of the releases accepts.
    pub(super) fn mount_config_map(&mut self, newer: bool) {
        let (key, flag) = if newer {
            ("v2.yaml", "--config=/etc/sample/v2.yaml")
        } else {
            ("v1.yaml", "--config=/etc/sample/v1.yaml")
        };
        self.replace(
            "data:\n  color: blue\n",
            &format!("data:\n  {key}: 'color: blue'\n"),
        );
        self.add_arguments(&[flag]);
        self.container
            .push("volumeMounts: [{name: config, mountPath: /etc/sample}]".to_owned());
        self.pod
            .push("volumes: [{name: config, configMap: {name: sample-operator-config}}]".to_owned());
    }

    /// Adds a Role; the newer release has fewer rules.
    pub(super) fn add_role(&mut self, newer: bool) {
        let resources = if newer {
            "[configmaps]"
        } else {
            "[configmaps, secrets]"
        };
        self.files
            .push(("role.yaml", ROLE.replace("RESOURCES", resources)));
        self.files.push(("binding.yaml", BINDING.to_owned()));
    }

    /// Adds a Deployment that serves the webhooks, and keeps the old one.
    pub(super) fn move_webhooks(&mut self) {
        self.replace(
            "deploymentName: sample-operator\n",
            "deploymentName: webhook-operator\n",
        );
        let environment = "                env:\n";
        self.replace(environment, &format!("{environment}{WITHOUT_CERTIFICATE}"));
        self.add_deployment("webhook-operator", "webhook-operator", "");
    }

    /// Adds a Deployment without webhooks, with a selector and a ConfigMap key that differ between the
    /// releases.
    pub(super) fn add_second_deployment(&mut self, newer: bool) {
        self.mount_config_map(newer);
        let label = if newer { "newer" } else { "older" };
        self.add_deployment("companion", label, WITHOUT_CERTIFICATE);
    }

    fn add_deployment(&mut self, name: &str, label: &str, environment: &str) {
        let deployment = DEPLOYMENT
            .replace("NAME", name)
            .replace("LABEL", label)
            .replace("ENVIRONMENT", environment);
        self.replace(
            "      deployments:\n",
            &format!("      deployments:\n{deployment}"),
        );
    }

    /// Applies the edits to a copy of a sample.
    pub(super) fn write(&self, folder: &Path) -> anyhow::Result<()> {
        let manifests = folder.join("manifests");
        let arguments = format!("args: [{}]", self.arguments.join(", "));
        let given = (!self.arguments.is_empty()).then_some(&arguments);
        let lines = |lines: &mut dyn Iterator<Item = &String>, indent: usize| -> String {
            lines
                .map(|line| format!("{}{line}\n", " ".repeat(indent)))
                .collect()
        };
        let container = lines(&mut self.container.iter().chain(given), 16);
        let pod = lines(&mut self.pod.iter(), 14);
        let inserted = [
            ("                env:\n".to_owned(), container),
            ("              containers:\n".to_owned(), pod),
        ];
        let inserted = inserted
            .into_iter()
            .filter(|(_, lines)| !lines.is_empty())
            .map(|(before, lines)| (before.clone(), lines + &before));
        for (from, to) in self.replaced.iter().cloned().chain(inserted) {
            replace_all(&manifests, &from, &to)?;
        }
        for (name, text) in &self.files {
            fs::write(manifests.join(name), text)?;
        }
        Ok(())
    }
}

/// Replaces each occurrence of a text in the files of a folder; fails if none exists.
pub(super) fn replace_all(folder: &Path, from: &str, to: &str) -> anyhow::Result<()> {
    let mut found = false;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let text = fs::read_to_string(&path)?;
        if text.contains(from) {
            found = true;
            fs::write(&path, text.replace(from, to))?;
        }
    }
    anyhow::ensure!(found, "nothing in {} contains {from:?}", folder.display());
    Ok(())
}
