//! Helm templates made from YAML.

use serde_json::Value;

use crate::commands::manifests::document::NAMESPACE;

/// The placeholders of a document. They are plain scalars in the object, each alone at the end of a line, and
/// are replaced in the YAML text.
#[derive(Debug, Default)]
pub(super) struct Template {
    slots: Vec<Slot>,
}

#[derive(Debug)]
enum Slot {
    /// Text after a key.
    Scalar(String),
    /// A field with the value of this name, left out if it is empty.
    Field(String),
    /// The last items of a list.
    Items(String),
}

impl Template {
    /// Returns a placeholder for this template text.
    pub(super) fn scalar(&mut self, template: &str) -> Value {
        self.slot(Slot::Scalar(template.to_owned()))
    }

    /// Returns a placeholder for a field with the value `name`, which is left out if it is empty.
    pub(super) fn field(&mut self, name: &str) -> Value {
        self.slot(Slot::Field(name.to_owned()))
    }

    /// Returns a placeholder for the items of the value `name` at the end of a list.
    pub(super) fn items(&mut self, name: &str) -> Value {
        self.slot(Slot::Items(name.to_owned()))
    }

    fn slot(&mut self, slot: Slot) -> Value {
        self.slots.push(slot);
        word(self.slots.len() - 1).into()
    }

    /// Returns the template of a document. Escapes `{{` in it, and replaces the namespace with that of the
    /// release.
    pub(super) fn text(&self, yaml: &str) -> String {
        let lines = yaml.lines().map(|line| self.line(line) + "\n");
        lines.collect()
    }

    fn line(&self, line: &str) -> String {
        let line = line.replace("{{", r#"{{ "{{" }}"#);
        // Quoted, since a name of digits would be read as a number.
        let line = match line.strip_suffix(NAMESPACE).filter(|rest| rest.ends_with(": ")) {
            Some(key) if !line.starts_with('#') => format!("{key}{{{{ .Release.Namespace | quote }}}}"),
            _ => line.replace(NAMESPACE, "{{ .Release.Namespace }}"),
        };
        let slot = self.slots.iter().enumerate().find_map(|(nth, slot)| {
            let before = line.strip_suffix(&word(nth))?;
            before.ends_with(' ').then_some((slot, before))
        });
        let Some((slot, before)) = slot else {
            return line;
        };
        let indent = before.len() - before.trim_start().len();
        let pad = " ".repeat(indent);
        match slot {
            Slot::Scalar(template) => format!("{before}{template}"),
            Slot::Field(name) => format!(
                "{pad}{{{{- with .Values.{name} }}}}\n{}\n{pad}  {{{{- toYaml . | nindent {} }}}}\n{pad}{{{{- end }}}}",
                before.trim_end(),
                indent + 2,
            ),
            Slot::Items(name) => format!(
                "{pad}{{{{- with .Values.{name} }}}}\n{pad}{{{{- toYaml . | nindent {indent} }}}}\n{pad}{{{{- end }}}}"
            ),
        }
    }
}

/// Returns the placeholder of a slot.
fn word(nth: usize) -> String {
    format!("windlass-slot-{nth}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_left_out_where_its_value_is_empty() {
        let mut template = Template::default();
        let [replicas, selector, items] = [
            template.scalar("{{ .Values.replicas }}"),
            template.field("nodeSelector"),
            template.items("a.extraArgs"),
        ]
        .map(|slot| slot.as_str().unwrap().to_owned());
        let yaml = format!(
            "spec:\n  replicas: {replicas}\n  nodeSelector: {selector}\n  args:\n  - a\n  - {items}\n"
        );
        insta::assert_snapshot!(template.text(&yaml), @r"
        spec:
          replicas: {{ .Values.replicas }}
          {{- with .Values.nodeSelector }}
          nodeSelector:
            {{- toYaml . | nindent 4 }}
          {{- end }}
          args:
          - a
          {{- with .Values.a.extraArgs }}
          {{- toYaml . | nindent 2 }}
          {{- end }}
        ");
    }

    #[test]
    fn foreign_braces_are_escaped_and_the_namespace_is_the_releases() {
        let yaml = "# in windlass-system\nsummary: of {{ $labels.name }}\nnamespace: windlass-system\nuser: a:windlass-system:b\n";
        insta::assert_snapshot!(Template::default().text(yaml), @r#"
        # in {{ .Release.Namespace }}
        summary: of {{ "{{" }} $labels.name }}
        namespace: {{ .Release.Namespace | quote }}
        user: a:{{ .Release.Namespace }}:b
        "#);
    }
}
