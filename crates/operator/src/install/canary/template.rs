//! Pod templates and their revisions.

use serde_json::Value;
use sha2::{Digest, Sha256};
use windlass_object::{json, names, object, text::hexadecimal};

/// How many hexadecimal digits name a revision.
const DIGITS: usize = 16;

/// Labels a Deployment's pod template with the revision that it is: a hash of the template and of the Deployment's name, the
/// same at any time. Every pod carries it, and no pod of another Deployment does.
pub fn stamp(deployment: &mut Value) {
    let name = object::text(deployment, "/metadata/name")
        .unwrap_or_default()
        .to_owned();
    let Some(template) = deployment
        .pointer_mut("/spec/template")
        .filter(|template| template.is_object())
    else {
        return;
    };
    // They are part of the template that is hashed, empty or not.
    json::fields(template, &["metadata", "labels"]);
    let revision = hash(&name, template);
    json::fields(template, &["metadata", "labels"]).insert(names::REVISION.to_owned(), revision.into());
}

/// The revision that a Deployment's template is.
pub fn revision(deployment: &Value) -> Option<&str> {
    object::label(deployment.pointer("/spec/template")?, names::REVISION)
}

fn hash(name: &str, template: &Value) -> String {
    let mut template = template.clone();
    if let Some(labels) = template
        .pointer_mut("/metadata/labels")
        .and_then(Value::as_object_mut)
    {
        labels.shift_remove(names::REVISION);
    }
    template.sort_all_objects();
    let digest = Sha256::digest(format!("{name}\n{template}"));
    let mut digits = hexadecimal(&digest);
    digits.truncate(DIGITS);
    digits
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_same_template_is_the_same_revision_however_often_it_is_stamped() {
        let written = json!({"spec": {"replicas": 1, "template": {
            "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}
        }}});
        let mut one = written.clone();
        stamp(&mut one);
        let first = revision(&one).unwrap().to_owned();
        assert_eq!(first.len(), DIGITS);
        stamp(&mut one);
        one["spec"]["replicas"] = json!(5);
        assert_eq!(revision(&one), Some(first.as_str()));
        let mut other = written;
        other["spec"]["template"]["spec"]["containers"][0]["image"] = json!("j");
        stamp(&mut other);
        assert_ne!(revision(&other), Some(first.as_str()));
    }

    #[test]
    fn what_is_no_deployment_is_left_alone() {
        for written in [
            json!(null),
            json!({"spec": 1}),
            json!({"spec": {"template": "x"}}),
        ] {
            let mut stamped = written.clone();
            stamp(&mut stamped);
            assert_eq!(stamped, written);
            assert_eq!(revision(&stamped), None);
        }
        let mut odd = json!({"spec": {"template": {"metadata": null}}});
        stamp(&mut odd);
        assert!(revision(&odd).is_some());
    }
}
