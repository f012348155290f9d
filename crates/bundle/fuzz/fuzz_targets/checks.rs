//! Invariants that hold for every bundle.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_bundle::{
    Bundle, Files, check,
    render::{CertificateProvider, DeploymentConfig, InstallOptions, RenderError, Rendered, render},
    requirements::Requirements,
    sources::{StoredBundle, archive, config_maps},
    upgrade::{Predecessors, Release},
};
use windlass_object::{ObjectKey, Problem};

/// Checks the files of a bundle, and renders a bundle without problems.
pub fn check(files: &Files, options: &InstallOptions, tolerance: check::Tolerance) {
    let parsed = Bundle::read(files);
    check_problems(&parsed.problems);
    if let Some(bundle) = &parsed.bundle {
        read_all(bundle);
        // Accessors must not panic on an unchecked bundle either.
        let _ = render(bundle, options);
    }
    match check::parse_for(files, tolerance) {
        Ok(bundle) => {
            assert_eq!(Some(&bundle), parsed.bundle.as_ref());
            assert!(parsed.problems.is_empty());
            check_rendered(&bundle, options);
        }
        Err(problems) => {
            check_problems(&problems);
            assert!(
                parsed.problems.iter().all(|problem| problems.contains(problem)),
                "{problems:?}"
            );
        }
    }
}

/// Each problem is one line; problems are sorted and unique.
pub fn check_problems(problems: &[Problem]) {
    let mut seen = BTreeSet::new();
    for problem in problems {
        let line = problem.to_string();
        assert!(!line.chars().any(char::is_control), "{line:?}");
        assert!(problem.path.starts_with('$'), "{line}");
        assert!(!problem.message.is_empty(), "{line}");
        assert!(seen.insert(problem), "{line}: twice");
    }
    let mut sorted = problems.to_vec();
    Problem::sort(&mut sorted);
    assert_eq!(sorted, problems);
}

fn read_all(bundle: &Bundle) {
    let (requirements, problems) = Requirements::read(bundle);
    check_problems(&problems);
    let _ = (requirements.is_empty(), requirements.apis().len());
    let csv = bundle.csv();
    let release = Release {
        package: bundle.package.clone(),
        name: csv.name().to_owned(),
        version: csv.version().to_owned(),
    };
    let _ = release.may_follow(&release, &Predecessors::from_csv(csv), false);
}

fn check_rendered(bundle: &Bundle, options: &InstallOptions) {
    let rendered = render(bundle, options);
    assert_eq!(rendered, render(bundle, options));
    match rendered {
        Ok(rendered) => check_objects(&rendered, options),
        Err(errors) => {
            assert!(!errors.is_empty());
            errors.iter().for_each(check_error);
        }
    }
}

fn check_error(error: &RenderError) {
    assert!(!error.to_string().is_empty());
}

fn check_objects(rendered: &Rendered, options: &InstallOptions) {
    assert_eq!(rendered.namespace, options.namespace);
    let manifests = rendered.manifests();
    let mut keys = BTreeSet::new();
    for object in &manifests {
        let key =
            ObjectKey::from_object(object).unwrap_or_else(|| panic!("the object has no name: {object}"));
        if let Some(namespace) = &key.namespace {
            let is_asked = *namespace == options.namespace || options.watch_namespaces.contains(namespace);
            assert!(is_asked, "{key}: unexpected namespace");
        }
        assert!(keys.insert(key), "{object}: twice");
    }
    for object in &rendered.objects {
        let is_converted =
            object["kind"] == "CustomResourceDefinition" && object.pointer("/spec/conversion").is_some();
        assert!(!is_converted, "{object}");
    }
    for caller in &rendered.callers {
        assert!(!holds(caller, "caBundle"), "{caller}");
    }
    for conversion in &rendered.conversions {
        let is_there = rendered
            .objects
            .iter()
            .any(|object| object["metadata"]["name"] == *conversion.crd);
        assert!(is_there, "{conversion:?}");
    }
    if options.certificates == CertificateProvider::None {
        assert!(rendered.certificates.is_empty());
    }
}

fn holds(value: &Value, name: &str) -> bool {
    match value {
        Value::Object(fields) => fields
            .iter()
            .any(|(field, value)| field == name || holds(value, name)),
        Value::Array(items) => items.iter().any(|item| holds(item, name)),
        _ => false,
    }
}

/// A stored bundle reads back unchanged.
pub fn check_stored(files: &Files) {
    let Ok(stored) = StoredBundle::from_files(files) else {
        return;
    };
    let config_maps = stored.config_maps("name", "windlass-system");
    let archive = config_maps::assemble(&config_maps).expect("the stored bundle is readable");
    let read = archive::load(archive.as_slice(), "-").expect("the files are a bundle");
    assert_eq!(read, *files);
}

/// Parses a configuration; an invalid one counts as empty.
pub fn config(bytes: &[u8]) -> DeploymentConfig {
    let read = DeploymentConfig::document("config", bytes)
        .and_then(|value| DeploymentConfig::from_value("config", &value));
    read.unwrap_or_else(|problems| {
        assert!(!problems.is_empty());
        DeploymentConfig::default()
    })
}
