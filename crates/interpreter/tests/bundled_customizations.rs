//! The bundled customizations pass their test cases.

#![expect(clippy::panic, clippy::unwrap_used, reason = "panics are how tests fail")]

use std::{
    collections::BTreeSet,
    error::Error,
    fs,
    path::{Path, PathBuf},
    slice,
    sync::Arc,
};

use interpreter::{
    Operation, Question, ResourceInterpreter,
    cases::InterpretationCase,
    customization::{CustomizationRules, CustomizationState, Customizations, admit},
};
use serde_json::{Value, json};
use windlass_object::yaml;

/// A bundled customization with its test cases.
struct BundledCustomization {
    /// `<group>/<version>/<Kind>`
    path: String,
    document: Value,
    scripts: BTreeSet<Operation>,
    cases: Vec<InterpretationCase>,
}

impl BundledCustomization {
    fn all() -> Vec<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("customizations");
        let groups = children(&root).into_iter().filter(|path| path.is_dir());
        let versions = groups.flat_map(|group| children(&group));
        let mut kinds: Vec<_> = versions.flat_map(|version| children(&version)).collect();
        kinds.sort();
        kinds.iter().map(|kind| Self::read(&root, kind)).collect()
    }

    fn read(root: &Path, folder: &Path) -> Self {
        let [document] = &documents(&folder.join("customizations.yaml"))[..] else {
            panic!("{} is not one document", folder.display())
        };
        let path = folder.strip_prefix(root).unwrap().display().to_string();
        let customizations = document["spec"]["customizations"].as_object().unwrap();
        let scripts = customizations.keys().map(|name| {
            let known = Operation::ALL
                .into_iter()
                .find(|known| CustomizationRules::field(*known) == name);
            known.unwrap_or_else(|| panic!("{path}: {name} is not a customization"))
        });
        let cases = children(&folder.join("testdata"));
        let cases = cases.iter().flat_map(|file| {
            let read = |document: &Value| match InterpretationCase::read(document) {
                Ok(case) if case.unknown.is_empty() => case,
                Ok(case) => panic!("{}: unknown fields {:?}", file.display(), case.unknown),
                Err(error) => panic!("{}: {error}", file.display()),
            };
            documents(file).iter().map(read).collect::<Vec<_>>()
        });
        Self {
            scripts: scripts.collect(),
            cases: cases.collect(),
            document: document.clone(),
            path,
        }
    }

    fn target(&self) -> &Value {
        &self.document["spec"]["target"]
    }

    fn interpreter(&self) -> ResourceInterpreter {
        let customizations = Customizations::default();
        let states = customizations.replace(slice::from_ref(&self.document));
        assert_eq!(states, [CustomizationState::Used], "{}", self.path);
        ResourceInterpreter::new(vec![Arc::new(customizations)])
    }

    /// The operations that test cases of the customization cover.
    fn tested_operations(&self) -> BTreeSet<Operation> {
        let operations = self.cases.iter().map(|case| case.operation().unwrap());
        operations.collect()
    }
}

fn children(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut children: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    children.sort();
    children
}

fn documents(file: &Path) -> Vec<Value> {
    let bytes = fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    yaml::documents(&bytes).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// Formats an error with its causes.
fn chain(error: &dyn Error) -> String {
    let mut said = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        said = format!("{said}: {error}");
        cause = error.source();
    }
    said
}

#[tokio::test]
async fn every_case_passes() {
    let mut failures = Vec::new();
    let mut count = 0;
    for bundled in BundledCustomization::all() {
        let interpreter = bundled.interpreter();
        for case in &bundled.cases {
            count += 1;
            if let Err(error) = case.run(&interpreter).await {
                let error = chain(&error);
                failures.push(format!(
                    "{} {} {:?}:\n{error}",
                    bundled.path, case.operation, case.name
                ));
            }
        }
    }
    assert!(count > 0, "the folder of customizations is empty");
    assert!(
        failures.is_empty(),
        "{} of {count} cases fail\n{}",
        failures.len(),
        failures.join("\n")
    );
}

#[test]
fn every_script_has_cases() {
    let all = BundledCustomization::all();
    for bundled in &all {
        assert_eq!(bundled.scripts, bundled.tested_operations(), "{}", bundled.path);
    }
    let asked: BTreeSet<_> = all
        .iter()
        .flat_map(BundledCustomization::tested_operations)
        .collect();
    assert_eq!(asked, BTreeSet::from(Operation::ALL));
}

#[test]
fn every_customization_is_in_the_folder_of_its_target() {
    for bundled in BundledCustomization::all() {
        let target = bundled.target();
        let (api_version, kind) = (
            target["apiVersion"].as_str().unwrap(),
            target["kind"].as_str().unwrap(),
        );
        assert_eq!(bundled.path, format!("{api_version}/{kind}"));
        let (group, _) = api_version.split_once('/').unwrap();
        let name = format!("{}-{group}", kind.to_lowercase());
        assert_eq!(bundled.document["metadata"]["name"], name);
        assert_eq!(bundled.document["apiVersion"], "config.karmada.io/v1alpha1");
        assert_eq!(bundled.document["kind"], "ResourceInterpreterCustomization");
    }
}

#[test]
fn every_customization_is_admitted_with_the_others() {
    let all = BundledCustomization::all();
    let others: Vec<_> = all.iter().map(|bundled| bundled.document.clone()).collect();
    for bundled in &all {
        assert_eq!(
            admit(&bundled.document, None, &others),
            Ok(()),
            "{}",
            bundled.path
        );
    }
}

#[tokio::test]
async fn every_script_answers_a_minimal_object() {
    for bundled in BundledCustomization::all() {
        let interpreter = bundled.interpreter();
        let mut bare = bundled.target().clone();
        bare["metadata"] = json!({"name": "bare"});
        let mut empty = bare.clone();
        empty["spec"] = json!({});
        empty["status"] = json!({});
        for object in [&bare, &empty] {
            for question in [
                Question::Retain {
                    desired: object,
                    observed: object,
                },
                Question::Replica { object },
                Question::Component { object },
                Question::ReviseReplica { object, replicas: 1 },
                Question::Status { object },
                Question::AggregateStatus { object, items: None },
                Question::AggregateStatus {
                    object,
                    items: Some(&[]),
                },
                Question::Health { object },
                Question::Dependency { object },
            ] {
                if let Err(error) = interpreter.ask(question).await {
                    panic!("{}", chain(&error));
                }
            }
        }
    }
}
