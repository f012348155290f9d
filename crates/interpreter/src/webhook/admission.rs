//! Validation of webhook configurations before they are written.

use serde_json::Value;
use windlass_object::object;

use super::webhook_configuration::WebhookConfiguration;
use crate::customization::CustomizationProblem;

/// Validates a new ResourceInterpreterWebhookConfiguration, which replaces `old` if that exists.
///
/// It rejects what Karmada rejects (`/validate-resourceinterpreterwebhookconfiguration`), and also a
/// `caBundle` with anything but PEM certificates, and invalid names of Services.
///
/// An object whose webhooks do not change, or that is being deleted, is never rejected: its metadata must
/// remain writable.
///
/// # Errors
///
/// All problems, each with its field.
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
