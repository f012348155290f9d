//! Which commands are run, and which elsewhere.

use std::{collections::BTreeSet, fs};

use clap::CommandFactory as _;
use windlass::commands::Cli;

use crate::documentation::{CodeBlock, code_blocks, root};

/// A command that is run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Typed {
    /// As a page shows it, or as nobody does.
    pub(super) line: &'static str,
    /// What it takes in this cluster besides.
    pub(super) besides: &'static [&'static str],
}

/// A command that a test of its own runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct TypedElsewhere {
    /// As a page shows it, or as it begins.
    pub(super) line: &'static str,
    /// The file with the test, from the root of the repository.
    pub(super) file: &'static str,
    /// What is in the file where the command is run.
    pub(super) mark: &'static str,
}

const fn typed(line: &'static str) -> Typed {
    Typed { line, besides: &[] }
}

/// Of a command that asks the registry, whose CA nobody knows.
const fn asking_registry(line: &'static str) -> Typed {
    Typed {
        line,
        besides: &["--registry-ca", "registry-ca.pem"],
    }
}

/// What is run beside all others, for the hooks.
pub(super) const SERVER: Typed = Typed {
    line: "windlass hooks serve --responses answers --cert-dir certs",
    besides: &["--address", "127.0.0.1:0"],
};

/// What is run, in this order.
pub(super) const RUN: [Typed; 47] = [
    typed("windlass manifests"),
    typed("windlass man --output-dir /usr/local/share/man/man1"),
    typed("windlass completions bash"),
    typed("windlass check ./my-operator"),
    typed("windlass render ./my-operator --namespace my-operator-system"),
    typed("windlass interpret -f customization.yaml --check"),
    typed(
        "windlass interpret -f customization.yaml --operation InterpretHealth --observed-file observed.yaml",
    ),
    typed(
        "windlass interpret -f customization.yaml --operation InterpretHealth --observed-file observed.yaml --trace",
    ),
    typed("windlass interpret --test crates/interpreter/customizations"),
    typed("windlass policy check -f policies/"),
    typed("windlass policy apply --policy mirror.yaml --object pod.yaml"),
    typed("windlass policy explain --policy policies/ --object pod.yaml --operation DELETE"),
    typed("windlass policy test policies/"),
    typed("windlass catalog list --catalog quay.io/operatorhubio/catalog:latest"),
    typed("windlass catalog search certificates --catalog quay.io/operatorhubio/catalog:latest"),
    typed("windlass catalog show cert-manager --catalog quay.io/operatorhubio/catalog:latest"),
    typed("windlass catalog list cert-manager --catalog quay.io/operatorhubio/catalog:latest"),
    typed("windlass catalog path widgets --from 1.0.0 --version '<3' --catalog ./catalog"),
    typed("windlass hooks list"),
    typed("windlass hooks describe BeforeClusterCreate"),
    typed("windlass hooks openapi"),
    typed("windlass hooks call BeforeClusterCreate --request request.yaml --dry-run"),
    typed("windlass hooks call BeforeClusterCreate --request request.yaml"),
    asking_registry("windlass bundle push ./my-operator registry.example.com/team/my-operator-bundle:v1"),
    asking_registry("windlass bundle show registry.example.com/team/my-operator-bundle:v1"),
    asking_registry("windlass bundle pull registry.example.com/team/my-operator-bundle:v1 ./copy"),
    typed("windlass install ./my-operator --namespace my-operator-system --dry-run"),
    asking_registry(
        "windlass install registry.example.com/team/my-operator-bundle:v1 --namespace my-operator-system --pull-secret registry-example",
    ),
    typed("windlass status"),
    typed("windlass doctor"),
    typed("windlass rotate my-operator-system/my-operator-service --wait"),
    typed("windlass rotate my-operator-system/my-operator-service --ca --wait"),
    typed("windlass report windlass.html"),
    typed("windlass uninstall sample"),
    typed("windlass install ./argocd-operator.v0.10.1 --namespace argocd-operator-system"),
    typed("windlass certs"),
    typed("windlass install ./later --namespace argocd-operator-system"),
    typed("windlass history sample"),
    typed("windlass uninstall sample"),
    typed(
        "windlass install widgets --namespace widgets-system --catalog ./catalog --channel stable --version '>=1.2 <3'",
    ),
    typed("windlass status widgets"),
    typed("windlass certs --namespace widgets-system"),
    typed("windlass history widgets"),
    typed("windlass report -"),
    typed("windlass status -o json"),
    typed("windlass certs -o yaml"),
    typed("windlass uninstall widgets"),
];

/// What runs until it is stopped, or takes what is not here.
pub(super) const ELSEWHERE: [TypedElsewhere; 15] = [
    TypedElsewhere {
        line: "windlass uninstall argocd-operator",
        file: "e2e/scenarios/src/scenarios/commands.rs",
        mark: "\"uninstall\", \"sample\"",
    },
    TypedElsewhere {
        line: "windlass install ./my-operator --namespace my-operator-system --adopt-from helm/my-operator",
        file: "e2e/scenarios/src/scenarios/arrivals/steps.rs",
        mark: "\"--adopt-from\"",
    },
    TypedElsewhere {
        line: "windlass install ./my-operator --namespace my-operator-system --adopt-from helm/my-operator --dry-run",
        file: "e2e/scenarios/src/scenarios/arrivals/steps.rs",
        mark: "\"--dry-run\"",
    },
    TypedElsewhere {
        line: "windlass adoption confirm my-operator",
        file: "e2e/scenarios/src/scenarios/arrivals/steps.rs",
        mark: "\"confirm\"",
    },
    TypedElsewhere {
        line: "windlass adoption undo",
        file: "e2e/scenarios/src/scenarios/arrivals/steps.rs",
        mark: "\"undo\"",
    },
    TypedElsewhere {
        line: "windlass install widgets --namespace widgets-system --catalog registry.example.com/team/catalog:latest --follow",
        file: "e2e/scenarios/src/scenarios/catalogs.rs",
        mark: "\"--follow\"",
    },
    TypedElsewhere {
        line: "windlass catalog approve widgets",
        file: "e2e/scenarios/src/scenarios/catalogs.rs",
        mark: "\"approve\"",
    },
    TypedElsewhere {
        line: "windlass ui",
        file: "e2e/scenarios/src/scenarios/ui.rs",
        mark: "manifests::ui_objects",
    },
    TypedElsewhere {
        line: "windlass run",
        file: "e2e/scenarios/src/test_cluster/options.rs",
        mark: "programs::RUN",
    },
    TypedElsewhere {
        line: "windlass run --otlp-endpoint http://collector.monitoring:4318",
        file: "e2e/scenarios/src/scenarios/traces.rs",
        mark: "--otlp-endpoint",
    },
    TypedElsewhere {
        line: "windlass run --remote-kubeconfig-secret karmada-system/karmada-kubeconfig",
        file: "e2e/scenarios/src/scenarios/remote/second_cluster.rs",
        mark: "--remote-kubeconfig-secret",
    },
    TypedElsewhere {
        line: "windlass policy disarm",
        file: "e2e/scenarios/src/scenarios/policies_disarming.rs",
        mark: "\"disarm\"",
    },
    TypedElsewhere {
        line: "windlass rollback",
        file: "e2e/scenarios/src/scenarios/revisions.rs",
        mark: "\"rollback\"",
    },
    // As an account that lacks rights: not every cluster lets it be one.
    TypedElsewhere {
        line: "windlass status sample --missing-rights",
        file: "e2e/scenarios/src/scenarios/tenancy.rs",
        mark: "\"--missing-rights\"",
    },
    TypedElsewhere {
        line: "windlass doctor --missing-rights",
        file: "e2e/scenarios/src/scenarios/doctor.rs",
        mark: "\"--missing-rights\"",
    },
];

/// What is missing in these tables: commands that pages show, commands that there are, and what runs them elsewhere.
///
/// # Errors
///
/// When a page cannot be read.
pub(super) fn gaps() -> anyhow::Result<Vec<String>> {
    let blocks = code_blocks()?;
    let shown: BTreeSet<_> = blocks.iter().flat_map(CodeBlock::commands).collect();
    anyhow::ensure!(shown.len() > 25, "only {shown:?} are shown");
    let unknown = shown
        .into_iter()
        .filter(|line| !known().any(|known| known == line));

    let mut leaves = Vec::new();
    collect_leaves(&Cli::command(), "windlass", &mut leaves);
    anyhow::ensure!(leaves.len() > 20, "there are only {leaves:?}");
    leaves.retain(|leaf| !known().any(|line| line == leaf || line.starts_with(&format!("{leaf} "))));

    let mut gaps: Vec<_> = unknown
        .chain(leaves)
        .map(|line| format!("{line}: say in RUN or ELSEWHERE how it is tried"))
        .collect();
    for TypedElsewhere { line, file, mark } in ELSEWHERE {
        if !fs::read_to_string(root().join(file))?.contains(mark) {
            gaps.push(format!("{line}: {file} has no {mark}"));
        }
    }
    Ok(gaps)
}

fn known() -> impl Iterator<Item = &'static str> {
    let here = RUN.iter().chain([&SERVER]).map(|typed| typed.line);
    here.chain(ELSEWHERE.iter().map(|typed| typed.line))
}

fn collect_leaves(command: &clap::Command, path: &str, leaves: &mut Vec<String>) {
    let mut below = command
        .get_subcommands()
        .filter(|below| !below.is_hide_set())
        .peekable();
    if below.peek().is_none() {
        leaves.push(path.to_owned());
    }
    for below in below {
        collect_leaves(below, &format!("{path} {}", below.get_name()), leaves);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_row() {
        let gaps = gaps().unwrap();
        assert!(gaps.is_empty(), "{}", gaps.join("\n"));
    }
}
