//! Whether webhooks may be written.

use serde_json::Value;
use windlass_object::object;

use super::read::WebhookConfiguration;
use crate::customization::CustomizationProblem;

/// Whether a ResourceInterpreterWebhookConfiguration may be written, in place of `old` where it was there before.
///
/// Refused is what Karmada refuses (`/validate-resourceinterpreterwebhookconfiguration`), and beyond that a `caBundle` that is
/// anything but certificates in PEM, and Services by names that none has.
///
/// An object whose webhooks do not change, or that is being deleted, is never refused: its metadata must remain writable.
///
/// # Errors
///
/// With all that is wrong, each with its field.
pub fn admit_webhooks(new: &Value, old: Option<&Value>) -> Result<(), Vec<CustomizationProblem>> {
    let is_unchanged = old.is_some_and(|old| old.get("webhooks") == new.get("webhooks"));
    if object::is_terminating(new) || is_unchanged {
        return Ok(());
    }
    let name = WebhookConfiguration::name(new)?;
    let problems = WebhookConfiguration::read(name, new).problems;
    match problems.is_empty() {
        true => Ok(()),
        false => Err(problems),
    }
}
