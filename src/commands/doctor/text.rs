//! The human-readable diagnosis. Messages are never cut, since they state what to do.

use windlass_doctor::{Diagnosis, DoctorFinding, DoctorSeverity};
use windlass_object::text::{OneLine, shortened};

/// The width of a line.
const SCREEN: usize = 120;

/// The width of the severity in front of a finding.
const INDENT: &str = "         ";

/// Formats the diagnosis of a cluster with this Kubernetes version. With `lacks_rights`, refers to
/// `--missing-rights`.
pub(super) fn format_diagnosis(diagnosis: &Diagnosis, kubernetes: &str, lacks_rights: bool) -> String {
    let mut text = String::new();
    let Diagnosis {
        errors,
        warnings,
        findings,
        left_out,
    } = diagnosis;
    for finding in findings {
        let DoctorFinding {
            severity,
            group,
            reason,
            subject,
            message,
        } = finding;
        // The name of a check without findings would read like a fault.
        if *severity == DoctorSeverity::Info {
            let finding = OneLine(&format!("{subject}: {message}")).to_string();
            for (number, line) in wrap(&finding, SCREEN - INDENT.len()).iter().enumerate() {
                match number {
                    0 => text += &format!("{severity:8} {line}\n"),
                    _ => text += &format!("{INDENT}{line}\n"),
                }
            }
            continue;
        }
        let head = format!("{subject}: {reason} ({group})");
        text += &format!("{severity:8} {}\n", OneLine(&head));
        for line in wrap(&OneLine(message).to_string(), SCREEN - INDENT.len()) {
            text += &format!("{INDENT}{line}\n");
        }
    }
    for more in left_out {
        let (severity, count, group) = (more.severity, more.count, more.group);
        text += &format!("{severity:8} {count} more findings about {group}\n");
    }
    if lacks_rights {
        text += "\nTo print roles and bindings that grant the missing rights, run windlass doctor --missing-rights.\n";
    }
    let kubernetes = shortened(kubernetes.to_owned(), 64);
    text += &format!(
        "\nKubernetes {}, windlass {}: errors: {errors}, warnings: {warnings}\n",
        OneLine(&kubernetes),
        env!("CARGO_PKG_VERSION")
    );
    text
}

/// Breaks text between words into lines of at most `width` characters; longer words have their own line.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use windlass_doctor::DoctorCheck;

    use super::*;

    #[test]
    fn errors_come_first_and_messages_are_complete_and_escaped() {
        let diagnosis = Diagnosis::new([
            DoctorCheck::KubernetesVersion.info("API server", "fine"),
            DoctorCheck::NoReadyEndpoint.error("a\nerror b\u{1b}[2J", "word ".repeat(40)),
        ]);
        let text = format_diagnosis(&diagnosis, "v1.36.3", true);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines[0],
            "error    a\\nerror b\\u{1b}[2J: NoReadyEndpoint (reachability)"
        );
        assert!(lines.iter().all(|line| line.chars().count() <= SCREEN), "{text}");
        assert_eq!(text.matches("word").count(), 40);
        assert!(text.contains("\ninfo     API server: fine\n"), "{text}");
        assert!(text.ends_with(": errors: 1, warnings: 0\n"), "{text}");
        assert_eq!(wrap("a bb ccc", 4), ["a bb", "ccc"]);
        assert_eq!(wrap("", 4), [""; 0]);
    }
}
