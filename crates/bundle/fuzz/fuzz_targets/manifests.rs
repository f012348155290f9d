//! Any change to the objects of a valid bundle yields problems or renders deterministically.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::{arbitrary, fuzz_target};
use serde_json::{Value, json};
use windlass_bundle::{
    Bundle, Files, Manifest,
    check::{Tolerance, parse},
    render::{CertificateProvider, ConversionMode, DeploymentConfig, InstallOptions},
};

#[allow(dead_code, reason = "other targets use more of it")]
mod checks;

/// The changes to a valid bundle, and the options of its install.
#[derive(arbitrary::Arbitrary, Debug)]
struct Input<'a> {
    base: u8,
    edits: Vec<(u8, u16, Edit<'a>)>,
    watched: Vec<Namespace>,
    is_without_certificates: bool,
    is_external: bool,
    may_block: bool,
}

#[derive(arbitrary::Arbitrary, Debug)]
enum Namespace {
    Own,
    First,
    Second,
}

/// A change to one value of an object.
#[derive(arbitrary::Arbitrary, Debug)]
enum Edit<'a> {
    Remove,
    Repeat,
    /// Replaces the value by one from another place in the same object.
    Copy(u16),
    Put(Replacement<'a>),
    Add(&'a str, Replacement<'a>),
    /// Appends a copy of the object to the bundle.
    AddObject(u8),
}

#[derive(arbitrary::Arbitrary, Debug)]
enum Replacement<'a> {
    Null,
    Bool(bool),
    Number(i64),
    Fraction(f64),
    Empty,
    Items,
    Text(&'a str),
    Long(u16),
    Known(u8),
    Json(&'a str),
}

/// Names with a meaning in Kubernetes or OLM.
const KNOWN: [&str; 24] = [
    "CustomResourceDefinition",
    "Service",
    "ValidatingWebhookConfiguration",
    "APIService",
    "ExtensionConfig",
    "Role",
    "ConfigMap",
    "ServiceAccount",
    "PodDisruptionBudget",
    "List",
    "ValidatingAdmissionWebhook",
    "MutatingAdmissionWebhook",
    "ConversionWebhook",
    "OwnNamespace",
    "SingleNamespace",
    "MultiNamespace",
    "widgets.example.com",
    "v1",
    "v1beta1",
    "*",
    "Cluster",
    "Always",
    "/convert",
    "olm.targetNamespaces",
];

macro_rules! files {
    ($folder:literal, $($file:literal),*) => {
        Files::from([$(($file.to_owned(), include_bytes!(concat!("../../../../bundles/", $folder, "/", $file)).to_vec())),*])
    };
}

static BUNDLES: LazyLock<Vec<(Files, Bundle)>> = LazyLock::new(|| {
    let bundles = [
        files!(
            "sample.v1",
            "metadata/annotations.yaml",
            "manifests/sample-operator-config_v1_configmap.yaml",
            "manifests/sample.clusterserviceversion.yaml",
            "manifests/sample.windlass.dev_widgets.yaml"
        ),
        files!(
            "own-namespace",
            "metadata/annotations.yaml",
            "manifests/own-namespace.clusterserviceversion.yaml",
            "manifests/sample.windlass.dev_trinkets.yaml"
        ),
        files!(
            "runtime-extension",
            "metadata/annotations.yaml",
            "manifests/extensionconfig.yaml",
            "manifests/runtime-extension.clusterserviceversion.yaml",
            "manifests/service.yaml"
        ),
        files!(
            "conversion-only",
            "metadata/annotations.yaml",
            "manifests/conversion-only.clusterserviceversion.yaml",
            "manifests/sample.windlass.dev_gadgets.yaml"
        ),
    ];
    bundles
        .into_iter()
        .map(|files| (files.clone(), parse(&files).expect("the bundle is valid")))
        .collect()
});

impl Replacement<'_> {
    fn value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => (*value).into(),
            Self::Number(number) => (*number).into(),
            Self::Fraction(number) => (*number).into(),
            Self::Empty => json!({}),
            Self::Items => json!([{}, null, ["a"]]),
            Self::Text(text) => (*text).into(),
            Self::Long(length) => "a".repeat(usize::from(*length)).into(),
            Self::Known(index) => KNOWN[usize::from(*index) % KNOWN.len()].into(),
            Self::Json(text) => serde_json::from_str(text).unwrap_or_default(),
        }
    }
}

impl Edit<'_> {
    fn make(&self, objects: &mut Vec<Value>, index: usize, place: u16) {
        if let Self::AddObject(kind) = self {
            let mut again = objects[index].clone();
            if let Value::Object(fields) = &mut again {
                fields.insert("kind".to_owned(), KNOWN[usize::from(*kind) % KNOWN.len()].into());
            }
            objects.push(again);
            return;
        }
        let object = &mut objects[index];
        let mut places = Vec::new();
        list_places(object, &mut String::new(), &mut places);
        let at = |place: u16| places[usize::from(place) % places.len()].as_str();
        let place = at(place);
        let (parent, own) = place.rsplit_once('/').unwrap_or_default();
        match self {
            Self::Put(replacement) => {
                *object.pointer_mut(place).expect("the value exists") = replacement.value()
            }
            Self::Copy(from) => {
                let value = object.pointer(at(*from)).expect("the value exists").clone();
                *object.pointer_mut(place).expect("the value exists") = value;
            }
            Self::Add(name, replacement) => match object.pointer_mut(place).expect("the value exists") {
                Value::Object(fields) => drop(fields.insert((*name).to_owned(), replacement.value())),
                Value::Array(items) => items.push(replacement.value()),
                other => *other = replacement.value(),
            },
            Self::Remove if !place.is_empty() => {
                match object.pointer_mut(parent).expect("the value exists") {
                    Value::Object(fields) => {
                        drop(fields.shift_remove(&own.replace("~1", "/").replace("~0", "~")))
                    }
                    Value::Array(items) => drop(items.remove(own.parse().expect("the key is an index"))),
                    _ => {}
                }
            }
            Self::Repeat if !place.is_empty() => {
                let value = object.pointer(place).expect("the value exists").clone();
                if let Value::Array(items) = object.pointer_mut(parent).expect("the value exists") {
                    items.push(value);
                }
            }
            Self::Remove | Self::Repeat | Self::AddObject(_) => {}
        }
    }
}

fn list_places(value: &Value, here: &mut String, places: &mut Vec<String>) {
    places.push(here.clone());
    let length = here.len();
    let mut below = |name: &str, value| {
        here.push('/');
        here.push_str(&name.replace('~', "~0").replace('/', "~1"));
        list_places(value, here, places);
        here.truncate(length);
    };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| below(name, value)),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .for_each(|(index, value)| below(&index.to_string(), value)),
        _ => {}
    }
}

impl Namespace {
    fn name(&self) -> String {
        match self {
            Self::Own => "widgets-system",
            Self::First => "first",
            Self::Second => "second",
        }
        .to_owned()
    }
}

fuzz_target!(|input: Input<'_>| {
    let (files, bundle) = &BUNDLES[usize::from(input.base) % BUNDLES.len()];
    let mut objects: Vec<_> = bundle
        .manifests()
        .map(|manifest: &Manifest| manifest.object.clone())
        .collect();
    for (object, place, edit) in input.edits.iter().take(16) {
        let index = usize::from(*object) % objects.len();
        edit.make(&mut objects, index, *place);
    }
    let mut files = files.clone();
    files.retain(|file, _| file.starts_with("metadata/"));
    for (index, object) in objects.iter().enumerate() {
        files.insert(format!("manifests/{index}.yaml"), object.to_string().into_bytes());
    }
    let options = InstallOptions {
        namespace: Namespace::Own.name(),
        watch_namespaces: input.watched.iter().take(3).map(Namespace::name).collect(),
        config: DeploymentConfig::default(),
        certificates: if input.is_without_certificates {
            CertificateProvider::None
        } else {
            CertificateProvider::default()
        },
        conversion: if input.is_external {
            ConversionMode::External
        } else {
            ConversionMode::Managed
        },
        blocking_webhooks: input.may_block,
    };
    let tolerance = Tolerance {
        undeclared_conversions: input.is_external,
        blocking_webhooks: input.may_block,
    };
    checks::check(&files, &options, tolerance);
});
