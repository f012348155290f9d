//! Every program ends within its budget, deterministically, and its values stay within the memory limit.

#![no_main]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::{
        LazyLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use libfuzzer_sys::fuzz_target;
use policy_cue::{CueBudget, CueInputs, CueProgram};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

/// Counts the allocated bytes.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static USED: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

/// The time limit of a program with the budget below.
const PATIENCE: Duration = Duration::from_secs(2);

/// The limit on bytes of values.
const BYTES: usize = 1 << 20;

/// Memory that the budget does not count: spare capacity of vectors, and patterns.
const BESIDE: usize = 24 << 20;

static OBJECT: LazyLock<Value> = LazyLock::new(|| {
    json!({
        "kind": "Pod",
        "metadata": {"name": "web", "labels": {"app": "web", "a/b": "c"}},
        "spec": {"containers": [{"name": "a", "image": "b:1", "resources": {"limits": {"cpu": "500m"}}}], "replicas": 3, "half": 0.5, "none": null},
    })
});

// SAFETY: forwards to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let used = USED.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(used, Ordering::Relaxed);
        // SAFETY: the caller upholds the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        USED.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller upholds the contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// The processor time of this thread, which does not depend on the load of the machine.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fuzz_target!(|input: &[u8]| {
    let Ok(program) = CueProgram::compile(&String::from_utf8_lossy(input)) else {
        return;
    };
    let data = json!({"object": *OBJECT, "oldObject": {}, "extraParams": {}});
    let inputs = CueInputs::new()
        .with_input("object", &OBJECT)
        .with_input("data", &data)
        .with_input("n", &OBJECT);
    let budget = CueBudget {
        steps: 20_000,
        bytes: BYTES,
        ..CueBudget::default()
    };
    for output in ["patches", "validate"] {
        let before = USED.load(Ordering::Relaxed);
        MOST.store(before, Ordering::Relaxed);
        let started = processor_time();
        let first = program.evaluate(&inputs, output, &budget);
        let took = processor_time() - started;
        assert!(took < PATIENCE, "it took {took:?}");
        let most = MOST.load(Ordering::Relaxed) - before;
        assert!(most < BESIDE, "{most} bytes were in use");
        assert_eq!(first, program.evaluate(&inputs, output, &budget));
        match first {
            Ok(Some(value)) => assert!(value.to_string().len() < 16 * BYTES),
            Ok(None) => {}
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
});
