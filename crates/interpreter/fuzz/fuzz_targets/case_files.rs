//! Any file content is read as customizations and test cases, as `windlass interpret --test` does, or
//! rejected with an error. A line `# cases` divides the two.

#![no_main]

use std::{sync::Arc, time::Duration};

use futures::executor::block_on;
use interpreter::{
    ResourceInterpreter,
    cases::InterpretationCase,
    customization::{CustomizationState, Customizations, admit},
};
use libfuzzer_sys::fuzz_target;
use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;
use windlass_object::yaml;

/// Limits the number of documents, and so the time of a run.
const MOST: usize = 4;

/// The CPU time that reading may take.
const PATIENCE: Duration = Duration::from_millis(500);

fuzz_target!(|input: &[u8]| {
    const DIVIDER: &[u8] = b"\n# cases\n";
    let divided = input.windows(DIVIDER.len()).position(|line| line == DIVIDER);
    let (customizations, cases) = input.split_at(divided.unwrap_or(input.len()));
    let started = cpu_time();
    let customizations = documents(customizations);
    let cases = documents(cases);
    assert!(
        cpu_time() - started < PATIENCE,
        "reading took {:?}",
        cpu_time() - started
    );

    let source = Customizations::default();
    let states = source.replace(&customizations);
    assert_eq!(states.len(), customizations.len());
    for (index, (customization, state)) in customizations.iter().zip(&states).enumerate() {
        let mut others = customizations.clone();
        others.remove(index);
        let admitted = admit(customization, None, &others);
        let problems = match state {
            CustomizationState::Used => &[][..],
            CustomizationState::Kept(problems) | CustomizationState::Unusable(problems) => {
                assert!(!problems.is_empty());
                problems
            }
        };
        let is_terminating = customization.pointer("/metadata/deletionTimestamp").is_some();
        let is_duplicate = problems
            .iter()
            .any(|problem| problem.message.starts_with("duplicate"));
        // Admission rejects an invalid customization.
        assert!(
            admitted.is_err() || problems.is_empty() || is_terminating || is_duplicate,
            "{problems:?}"
        );
        for problem in admitted.err().iter().flatten().chain(problems) {
            assert!(!problem.message.is_empty());
            assert!(problem.to_string().len() < 4096, "{problem}");
        }
    }
    // Reading again gives the same result.
    assert_eq!(source.replace(&customizations), states);

    let interpreter = ResourceInterpreter::new(vec![Arc::new(source)]);
    for document in &cases {
        match InterpretationCase::read(document) {
            Ok(case) => {
                let _ = block_on(case.run(&interpreter)).map_err(|failure| failure.to_string());
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
});

fn documents(bytes: &[u8]) -> Vec<Value> {
    match yaml::documents(bytes) {
        Ok(mut documents) => {
            documents.truncate(MOST);
            documents
        }
        Err(problem) => {
            assert!(!problem.is_empty() && !problem.contains('\n'), "{problem:?}");
            Vec::new()
        }
    }
}

/// The CPU time of this process, which is independent of other load.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::from_secs(time.tv_sec as u64) + Duration::from_nanos(time.tv_nsec as u64)
}
