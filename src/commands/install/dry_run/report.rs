//! The human-readable and structured form of a preview.

use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::json;
use windlass_object::{ObjectKey, text::OneLine};

use super::{
    preview::Preview,
    rights::{Grant, GrantedRule},
};

/// Maximum number of changed fields to print per object.
const FIELDS: usize = 12;

impl fmt::Display for Preview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        section(f, "Would be refused", &self.refusals)?;
        section(f, "Would break clients or stored objects", &self.findings)?;
        section(f, "Would be created", &self.created)?;
        let changed = self.changed.iter().map(|(key, fields)| {
            let mut named = fields.iter().take(FIELDS).cloned().collect::<Vec<_>>().join(", ");
            if fields.len() > FIELDS {
                named = format!("{named} and {} more", fields.len() - FIELDS);
            }
            format!("{key}: {named}")
        });
        section(f, "Would be changed", &changed.collect::<Vec<_>>())?;
        section(f, "Would be removed", &self.removed)?;
        section(f, "Would be kept with all their objects", &self.released)?;
        section(f, "Would be left out", &self.left_out)?;
        section(f, "Would be overridden by policies", &self.overridden)?;
        section(
            f,
            "Not validated: the namespace does not exist yet, or a webhook does not support dry runs",
            &self.untried,
        )?;
        if !self.grants.is_empty() {
            writeln!(f, "Rights granted (! allows escalation):")?;
        }
        for grant in &self.grants {
            write!(f, "{grant}")?;
        }
        let is_empty = [&self.created, &self.removed, &self.released]
            .iter()
            .all(|keys| keys.is_empty());
        if self.is_refused() {
            writeln!(f, "The install would be refused; nothing was written.")
        } else if is_empty && self.changed.is_empty() {
            writeln!(f, "Nothing would change.")
        } else {
            writeln!(f, "Nothing was written.")
        }
    }
}

/// The structured form, with objects named as in the text.
impl Serialize for Preview {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let named = |keys: &[ObjectKey]| keys.iter().map(ObjectKey::to_string).collect::<Vec<_>>();
        let changed = self.changed.iter();
        let changed: Vec<_> = changed
            .map(|(key, fields)| json!({ "object": key.to_string(), "fields": fields }))
            .collect();
        let fields = json!({
            "isRefused": self.is_refused(),
            "refusals": self.refusals,
            "findings": self.findings,
            "created": named(&self.created),
            "changed": changed,
            "removed": named(&self.removed),
            "released": named(&self.released),
            "leftOut": self.left_out,
            "overridden": self.overridden,
            "untried": named(&self.untried),
            "grants": self.grants,
        });
        fields.serialize(serializer)
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match &self.namespace {
            None => "in the whole cluster".to_owned(),
            Some(namespace) => format!("in namespace {namespace}"),
        };
        let subjects: Vec<_> = self.subjects.iter().map(String::as_str).collect();
        let whom = if subjects.is_empty() {
            "not bound yet".to_owned()
        } else {
            format!("to {}", subjects.join(", "))
        };
        writeln!(f, "  {} {place}, {}:", OneLine(&self.role), OneLine(&whom))?;
        for GrantedRule { danger, text } in &self.rules {
            match danger {
                Some(danger) => writeln!(f, "    ! {} ({danger})", OneLine(text))?,
                None => writeln!(f, "      {}", OneLine(text))?,
            }
        }
        Ok(())
    }
}

fn section(f: &mut fmt::Formatter<'_>, title: &str, lines: &[impl fmt::Display]) -> fmt::Result {
    if lines.is_empty() {
        return Ok(());
    }
    writeln!(f, "{title}:")?;
    for line in lines {
        writeln!(f, "  {}", OneLine(&line.to_string()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_object::ObjectKey;

    use super::{super::rights::grants, *};

    #[test]
    fn a_preview_lists_all_changes_and_rights() {
        let key = |kind: &str, name: &str| {
            ObjectKey::from_object(
                &json!({"apiVersion": "v1", "kind": kind, "metadata": {"namespace": "n", "name": name}}),
            )
            .unwrap()
        };
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "wide"},
            "rules": [
                {"apiGroups": ["example.com"], "resources": ["widgets"], "verbs": ["get"]},
                {"apiGroups": [""], "resources": ["secrets"], "verbs": ["list"]},
            ],
        });
        let preview = Preview {
            created: vec![key("Service", "new")],
            changed: vec![(key("ConfigMap", "other"), vec![".data.a".to_owned()])],
            removed: vec![key("Secret", "old")],
            grants: grants([&role]),
            ..Preview::default()
        };
        insta::assert_snapshot!(preview);
        assert!(!preview.is_refused());
        let refused = Preview {
            refusals: vec!["Service n/new: exceeded\nquota".to_owned()],
            ..preview
        };
        assert!(refused.is_refused());
        assert!(refused.to_string().contains("exceeded\\nquota"));
        assert_eq!(Preview::default().to_string(), "Nothing would change.\n");
    }
}
