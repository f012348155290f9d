//! The documented commands: which ones run here, and where the others are tested.

use std::{collections::BTreeSet, fs};

use clap::CommandFactory as _;
use windlass::commands::Cli;

use crate::documentation::{CodeBlock, code_blocks, root};

/// A command that runs here.
#[derive(Clone, Copy, Debug)]
pub(super) struct DocumentedCommand {
    /// The command as documented, or an undocumented one.
    pub(super) line: &'static str,
    /// Additional arguments for this cluster.
    pub(super) extra_arguments: &'static [&'static str],
}

/// A command that another test runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct CommandTestedElsewhere {
    /// The documented command, or its start.
    pub(super) line: &'static str,
    /// The file with the test, relative to the root of the repository.
    pub(super) file: &'static str,
    /// The text in that file that runs the command.
    pub(super) mark: &'static str,
}

const fn documented(line: &'static str) -> DocumentedCommand {
    DocumentedCommand {
        line,
        extra_arguments: &[],
    }
}

/// A command that connects to the registry, which has an untrusted CA.
const fn with_registry_ca(line: &'static str) -> DocumentedCommand {
    DocumentedCommand {
        line,
        extra_arguments: &["--registry-ca", "registry-ca.pem"],
    }
}

/// The command that runs while all others run, for the hooks.
pub(super) const SERVER: DocumentedCommand = DocumentedCommand {
    line: "windlass hooks serve --responses answers --cert-dir certs",
    extra_arguments: &["--address", "127.0.0.1:0"],
};

/// The commands, in the order in which they run.
pub(super) const RUN: [DocumentedCommand; 47] = [
    documented("windlass manifests"),
    documented("windlass man --output-dir /usr/local/share/man/man1"),
    documented("windlass completions bash"),
    documented("windlass check ./my-operator"),
    documented("windlass render ./my-operator --namespace my-operator-system"),
    documented("windlass interpret -f customization.yaml --check"),
    documented(
        "windlass interpret -f customization.yaml --operation InterpretHealth --observed-file observed.yaml",
    ),
    documented(
        "windlass interpret -f customization.yaml --operation InterpretHealth --observed-file observed.yaml --trace",
    ),
    documented("windlass interpret --test crates/interpreter/customizations"),
    documented("windlass policy check -f policies/"),
    documented("windlass policy apply --policy mirror.yaml --object pod.yaml"),
    documented("windlass policy explain --policy policies/ --object pod.yaml --operation DELETE"),
    documented("windlass policy test policies/"),
    documented("windlass catalog list --catalog quay.io/operatorhubio/catalog:latest"),
    documented("windlass catalog search certificates --catalog quay.io/operatorhubio/catalog:latest"),
    documented("windlass catalog show cert-manager --catalog quay.io/operatorhubio/catalog:latest"),
    documented("windlass catalog list cert-manager --catalog quay.io/operatorhubio/catalog:latest"),
    documented("windlass catalog path widgets --from 1.0.0 --version '<3' --catalog ./catalog"),
    documented("windlass hooks list"),
    documented("windlass hooks describe BeforeClusterCreate"),
    documented("windlass hooks openapi"),
    documented("windlass hooks call BeforeClusterCreate --request request.yaml --dry-run"),
    documented("windlass hooks call BeforeClusterCreate --request request.yaml"),
    with_registry_ca("windlass bundle push ./my-operator registry.example.com/team/my-operator-bundle:v1"),
    with_registry_ca("windlass bundle show registry.example.com/team/my-operator-bundle:v1"),
    with_registry_ca("windlass bundle pull registry.example.com/team/my-operator-bundle:v1 ./copy"),
    documented("windlass install ./my-operator --namespace my-operator-system --dry-run"),
    with_registry_ca(
        "windlass install registry.example.com/team/my-operator-bundle:v1 --namespace my-operator-system --pull-secret registry-example",
    ),
    documented("windlass status"),
    documented("windlass doctor"),
    documented("windlass rotate my-operator-system/my-operator-service --wait"),
    documented("windlass rotate my-operator-system/my-operator-service --ca --wait"),
    documented("windlass report windlass.html"),
    documented("windlass uninstall sample"),
    documented("windlass install ./argocd-operator.v0.10.1 --namespace argocd-operator-system"),
    documented("windlass certs"),
    documented("windlass install ./later --namespace argocd-operator-system"),
    documented("windlass history sample"),
    documented("windlass uninstall sample"),
    documented(
        "windlass install widgets --namespace widgets-system --catalog ./catalog --channel stable --version '>=1.2 <3'",
    ),
    documented("windlass status widgets"),
    documented("windlass certs --namespace widgets-system"),
    documented("windlass history widgets"),
    documented("windlass report -"),
    documented("windlass status -o json"),
    documented("windlass certs -o yaml"),
    documented("windlass uninstall widgets"),
];

/// Commands that run until they are stopped, or need something that this cluster lacks.
pub(super) const ELSEWHERE: [CommandTestedElsewhere; 15] = [
    CommandTestedElsewhere {
        line: "windlass uninstall argocd-operator",
        file: "e2e/scenarios/src/scenarios/commands.rs",
        mark: "\"uninstall\", \"sample\"",
    },
    CommandTestedElsewhere {
        line: "windlass install ./my-operator --namespace my-operator-system --adopt-from helm/my-operator",
        file: "e2e/scenarios/src/scenarios/adopted_installs/steps.rs",
        mark: "\"--adopt-from\"",
    },
    CommandTestedElsewhere {
        line: "windlass install ./my-operator --namespace my-operator-system --adopt-from helm/my-operator --dry-run",
        file: "e2e/scenarios/src/scenarios/adopted_installs/steps.rs",
        mark: "\"--dry-run\"",
    },
    CommandTestedElsewhere {
        line: "windlass adoption confirm my-operator",
        file: "e2e/scenarios/src/scenarios/adopted_installs/steps.rs",
        mark: "\"confirm\"",
    },
    CommandTestedElsewhere {
        line: "windlass adoption undo",
        file: "e2e/scenarios/src/scenarios/adopted_installs/steps.rs",
        mark: "\"undo\"",
    },
    CommandTestedElsewhere {
        line: "windlass install widgets --namespace widgets-system --catalog registry.example.com/team/catalog:latest --follow",
        file: "e2e/scenarios/src/scenarios/catalogs.rs",
        mark: "\"--follow\"",
    },
    CommandTestedElsewhere {
        line: "windlass catalog approve widgets",
        file: "e2e/scenarios/src/scenarios/catalogs.rs",
        mark: "\"approve\"",
    },
    CommandTestedElsewhere {
        line: "windlass ui",
        file: "e2e/scenarios/src/scenarios/ui.rs",
        mark: "manifests::ui_objects",
    },
    CommandTestedElsewhere {
        line: "windlass run",
        file: "e2e/scenarios/src/test_cluster/options.rs",
        mark: "programs::RUN",
    },
    CommandTestedElsewhere {
        line: "windlass run --otlp-endpoint http://collector.monitoring:4318",
        file: "e2e/scenarios/src/scenarios/traces.rs",
        mark: "--otlp-endpoint",
    },
    CommandTestedElsewhere {
        line: "windlass run --remote-kubeconfig-secret karmada-system/karmada-kubeconfig",
        file: "e2e/scenarios/src/scenarios/remote/second_cluster.rs",
        mark: "--remote-kubeconfig-secret",
    },
    CommandTestedElsewhere {
        line: "windlass policy disarm",
        file: "e2e/scenarios/src/scenarios/policies_disarming.rs",
        mark: "\"disarm\"",
    },
    CommandTestedElsewhere {
        line: "windlass rollback",
        file: "e2e/scenarios/src/scenarios/revisions.rs",
        mark: "\"rollback\"",
    },
    // It runs as a user without rights, which some clusters cannot provide.
    CommandTestedElsewhere {
        line: "windlass status sample --missing-rights",
        file: "e2e/scenarios/src/scenarios/tenancy.rs",
        mark: "\"--missing-rights\"",
    },
    CommandTestedElsewhere {
        line: "windlass doctor --missing-rights",
        file: "e2e/scenarios/src/scenarios/doctor.rs",
        mark: "\"--missing-rights\"",
    },
];

/// Returns the commands that the tables lack: documented ones, those of the program, and tests that no longer
/// exist.
///
/// # Errors
///
/// When a page cannot be read.
pub(super) fn missing_rows() -> anyhow::Result<Vec<String>> {
    let blocks = code_blocks()?;
    let shown: BTreeSet<_> = blocks.iter().flat_map(CodeBlock::commands).collect();
    anyhow::ensure!(shown.len() > 25, "only these commands are documented: {shown:?}");
    let unknown = shown
        .into_iter()
        .filter(|line| !tested_commands().any(|known| known == line));

    let mut leaves = Vec::new();
    collect_leaves(&Cli::command(), "windlass", &mut leaves);
    anyhow::ensure!(
        leaves.len() > 20,
        "the program has only these commands: {leaves:?}"
    );
    leaves
        .retain(|leaf| !tested_commands().any(|line| line == leaf || line.starts_with(&format!("{leaf} "))));

    let mut missing_rows: Vec<_> = unknown
        .chain(leaves)
        .map(|line| format!("{line}: add the command to RUN or ELSEWHERE"))
        .collect();
    for CommandTestedElsewhere { line, file, mark } in ELSEWHERE {
        if !fs::read_to_string(root().join(file))?.contains(mark) {
            missing_rows.push(format!("{line}: {file} does not contain {mark}"));
        }
    }
    Ok(missing_rows)
}

fn tested_commands() -> impl Iterator<Item = &'static str> {
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
        let missing_rows = missing_rows().unwrap();
        assert!(missing_rows.is_empty(), "{}", missing_rows.join("\n"));
    }
}
