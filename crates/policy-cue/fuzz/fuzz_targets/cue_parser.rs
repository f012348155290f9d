//! Whatever a source says, it is a program or its problems are named, each with a place in the source; and it reads back what is quoted.

#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use policy_cue::{CueBudget, CueInputs, CueProgram, quote};
use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;

/// How long a source of a few kilobytes may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// What this thread has had of a processor: on a busy machine a clock says nothing of a program.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fuzz_target!(|input: &[u8]| {
    let source = String::from_utf8_lossy(input);
    let started = processor_time();
    let compiled = CueProgram::compile(&source);
    let took = processor_time() - started;
    assert!(took < PATIENCE, "compiling took {took:?}");
    if let Err(problems) = compiled {
        let lines = u32::try_from(source.split('\n').count()).unwrap();
        assert!(!problems.as_slice().is_empty());
        for problem in problems.as_slice() {
            assert!((1..=lines).contains(&problem.position.line), "{problem}");
            assert!(problem.position.column >= 1, "{problem}");
            assert!(!problem.construct.is_empty() && !problem.message.is_empty());
        }
    }

    let quoted = format!("a: {}", quote(&source));
    let program = CueProgram::compile(&quoted).unwrap();
    let output = program.evaluate(&CueInputs::new(), "a", &CueBudget::default()).unwrap();
    assert_eq!(output, Some(Value::from(&*source)));
});
