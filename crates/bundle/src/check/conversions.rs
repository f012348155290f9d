//! Conversion webhooks: each converted CustomResourceDefinition has exactly one.

use std::collections::{BTreeMap, BTreeSet};

use windlass_object::{JsonPath, Problem, object};

use super::webhook_definitions::{conversion_webhooks, converted};
use crate::parse::{Bundle, InstallMode, rule};

pub(super) fn check(bundle: &Bundle, problems: &mut Vec<Problem>) {
    check_install_modes(bundle, problems);
    check_listed(bundle, problems);
    check_single_converter(bundle, problems);
    check_crds(bundle, problems);
}

fn check_install_modes(bundle: &Bundle, problems: &mut Vec<Problem>) {
    let supported = bundle.csv().install_modes();
    // Another check reports that no mode is supported.
    if supported.is_empty() || supported == [InstallMode::AllNamespaces] {
        return;
    }
    let mut names: Vec<&str> = supported.iter().map(|mode| mode.name()).collect();
    names.sort_unstable();
    let names = names.join(" ");
    for (path, webhook) in conversion_webhooks(bundle) {
        let message = format!(
            "bundle contains conversion webhook \"{}\" and supports install modes [{names}] - conversion webhooks are \
             only supported for bundles that only support AllNamespaces install mode",
            webhook.generate_name()
        );
        problems.push(bundle.csv.problem(&path, rule::CONVERSION_INSTALL_MODES, message));
    }
}

fn check_listed(bundle: &Bundle, problems: &mut Vec<Problem>) {
    let owned: BTreeSet<&str> = bundle.csv().owned_crds().collect();
    for (path, webhook) in conversion_webhooks(bundle) {
        let name = webhook.generate_name();
        let list = path.field("conversionCRDs");
        if webhook.conversion_crds().next().is_none() {
            let message = format!("conversion webhook '{name}' must have at least one CRD specified");
            problems.push(bundle.csv.problem(&list, rule::CONVERSION_CRDS_MISSING, message));
        }
        for (index, crd) in webhook.conversion_crds().enumerate() {
            if !owned.contains(crd) {
                // The wording is OLM's.
                let message = format!(
                    "conversion webhook '{name}' references custom resource definition '{crd}' not owned bundle"
                );
                problems.push(
                    bundle
                        .csv
                        .problem(&list.item(index), rule::CONVERSION_CRD_NOT_OWNED, message),
                );
            }
        }
    }
}

/// Each CustomResourceDefinition is converted by one webhook, which lists it once.
fn check_single_converter(bundle: &Bundle, problems: &mut Vec<Problem>) {
    let mut converters: BTreeMap<&str, Vec<(JsonPath, &str)>> = BTreeMap::new();
    for (path, webhook) in conversion_webhooks(bundle) {
        for (index, crd) in webhook.conversion_crds().enumerate() {
            let path = path.field("conversionCRDs").item(index);
            converters
                .entry(crd)
                .or_default()
                .push((path, webhook.generate_name()));
        }
    }
    for (crd, converters) in converters {
        let [_, (second, _), ..] = converters.as_slice() else {
            continue;
        };
        let mut names: Vec<&str> = converters.iter().map(|(_, name)| *name).collect();
        names.sort_unstable();
        let names = names.join(",");
        let message =
            format!("conversion webhooks [{names}] reference same custom resource definition '{crd}'");
        problems.push(
            bundle
                .csv
                .problem(second, rule::CONVERSION_CRD_DUPLICATE, message),
        );
    }
}

fn check_crds(bundle: &Bundle, problems: &mut Vec<Problem>) {
    let converted = converted(bundle);
    for crd in &bundle.crds {
        let name = crd.name();
        let strategy = object::text(&crd.object, "/spec/conversion/strategy").unwrap_or_default();
        if strategy == "Webhook" && !converted.contains(name) {
            let message = format!(
                "custom resource definition '{name}' is converted by a webhook that the ClusterServiceVersion does not \
                 define: define it there; or, if the operator manages its conversion itself, install the bundle with \
                 spec.conversion: External"
            );
            let path = JsonPath::from_fields("spec.conversion.strategy");
            problems.push(crd.problem(&path, rule::CONVERSION_UNDECLARED, message));
        }
    }
}
