//! Every source is a program or has problems, each with a position in the source; quoted text reads back
//! unchanged.

#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use policy_cue::{CueBudget, CueInputs, CueProgram, quote};
use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;

/// The time limit for a source of a few kilobytes.
const PATIENCE: Duration = Duration::from_secs(2);

/// The processor time of this thread, which does not depend on the load of the machine.
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
    let output = program
        .evaluate(&CueInputs::new(), "a", &CueBudget::default())
        .unwrap();
    assert_eq!(output, Some(Value::from(&*source)));
});
