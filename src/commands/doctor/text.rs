//! A diagnosis as people read it: nothing is cut off, since messages say what to do.

use windlass_doctor::{Diagnosis, DoctorFinding, DoctorSeverity};
use windlass_object::text::{OneLine, shortened};

/// How wide a line may be.
const SCREEN: usize = 120;

/// What stands before what follows on the first line of a finding.
const INDENT: &str = "         ";

/// The diagnosis of a cluster of that version of Kubernetes; whether anything can be granted that is missing.
pub(super) fn shown(diagnosis: &Diagnosis, kubernetes: &str, lacks_rights: bool) -> String {
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
        // A check by its name, where all is well, reads like a fault.
        if *severity == DoctorSeverity::Info {
            let said = OneLine(&format!("{subject}: {message}")).to_string();
            for (number, line) in wrapped(&said, SCREEN - INDENT.len()).iter().enumerate() {
                match number {
                    0 => text += &format!("{severity:8} {line}\n"),
                    _ => text += &format!("{INDENT}{line}\n"),
                }
            }
            continue;
        }
        let head = format!("{subject}: {reason} ({group})");
        text += &format!("{severity:8} {}\n", OneLine(&head));
        for line in wrapped(&OneLine(message).to_string(), SCREEN - INDENT.len()) {
            text += &format!("{INDENT}{line}\n");
        }
    }
    for more in left_out {
        let (severity, count, group) = (more.severity, more.count, more.group);
        text += &format!("{severity:8} and {count} more about {group}\n");
    }
    if lacks_rights {
        text += "\nwindlass doctor --missing-rights prints what gives the rights that are missing.\n";
    }
    let kubernetes = shortened(kubernetes.to_owned(), 64);
    text += &format!(
        "\nKubernetes {}, windlass {}: errors: {errors}, warnings: {warnings}\n",
        OneLine(&kubernetes),
        env!("CARGO_PKG_VERSION")
    );
    text
}

/// Lines of at most `width` characters, broken between words; a word that is longer has a line of its own.
fn wrapped(text: &str, width: usize) -> Vec<String> {
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
    fn the_worst_is_on_top_and_nothing_is_cut_or_forged() {
        let diagnosis = Diagnosis::new([
            DoctorCheck::KubernetesVersion.info("API server", "fine"),
            DoctorCheck::NoReadyEndpoint.error("a\nerror b\u{1b}[2J", "word ".repeat(40)),
        ]);
        let text = shown(&diagnosis, "v1.36.3", true);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines[0],
            "error    a\\nerror b\\u{1b}[2J: NoReadyEndpoint (reachability)"
        );
        assert!(lines.iter().all(|line| line.chars().count() <= SCREEN), "{text}");
        assert_eq!(text.matches("word").count(), 40);
        assert!(text.contains("\ninfo     API server: fine\n"), "{text}");
        assert!(text.ends_with(": errors: 1, warnings: 0\n"), "{text}");
        assert_eq!(wrapped("a bb ccc", 4), ["a bb", "ccc"]);
        assert_eq!(wrapped("", 4), [""; 0]);
    }
}
