//! Measures answers of scripts and of the built-in rules: `cargo bench -p interpreter --features lua`. First
//! a script compared with the same work in plain `mlua`, alternating in one run, with the memory of the
//! process before and after; then time and allocations.

#![expect(clippy::expect_used, reason = "a failed setup ends the benchmark")]

use std::{
    fs,
    future::Future,
    pin::pin,
    sync::LazyLock,
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use divan::{AllocProfiler, Bencher};
use interpreter::{
    Answer, InterpreterSource, NativeInterpreter, Operation, Question,
    lua::{LuaLimits, LuaProgram},
};
use jiff::Timestamp;
use mlua::{
    Function, Lua,
    serde::{DeserializeOptions, LuaSerdeExt, SerializeOptions},
};
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

/// The number of calls of each.
const CALLS: usize = 10_000;

const HEALTH: &str = "function InterpretHealth(obj)
  local wanted, status = obj.spec.replicas, obj.status
  if status.observedGeneration ~= obj.metadata.generation then return false end
  return status.updatedReplicas >= wanted and status.availableReplicas >= status.updatedReplicas
end";

const RETAIN: &str = "function Retain(desired, observed)
  desired.spec.replicas = observed.spec.replicas
  return desired
end";

static DEPLOYMENT: LazyLock<Value> = LazyLock::new(deployment);
static BY_SCRIPT: LazyLock<[LuaProgram; 2]> = LazyLock::new(|| {
    [HEALTH, RETAIN].map(|script| LuaProgram::compile("bench", script).expect("the script compiles"))
});
static PLAIN: LazyLock<Plain> = LazyLock::new(Plain::new);

/// The same scripts in plain `mlua`.
struct Plain {
    lua: Lua,
    health: Function,
    retain: Function,
}

fn main() {
    println!(
        "a Deployment of {} bytes, {CALLS} calls each",
        DEPLOYMENT.to_string().len()
    );
    let before = resident_kib();
    for (name, ours, plain) in [
        ("health", health as fn(), plain_health as fn()),
        ("retain", retain, plain_retain),
    ] {
        let (mut of_ours, mut of_plain) = (Vec::new(), Vec::new());
        for _ in 0..CALLS {
            of_ours.push(measure(ours));
            of_plain.push(measure(plain));
        }
        let (of_ours, of_plain) = (
            print_latencies(name, &mut of_ours),
            print_latencies("plain mlua", &mut of_plain),
        );
        println!(
            "  {:.2} times as long",
            of_ours.as_secs_f64() / of_plain.as_secs_f64()
        );
    }
    println!("resident before {before} KiB, after {} KiB\n", resident_kib());
    divan::main();
}

fn measure(run: fn()) -> Duration {
    let started = Instant::now();
    run();
    started.elapsed()
}

/// Prints the latencies and returns their sum.
fn print_latencies(name: &str, took: &mut [Duration]) -> Duration {
    took.sort_unstable();
    let at = |part: usize| took[took.len() * part / 100];
    println!("  {name:<12} p50 {:>8.1?}   p99 {:>8.1?}", at(50), at(99));
    took.iter().sum()
}

/// The resident memory of the process, in KiB.
fn resident_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or(0)
}

fn health() {
    let question = Question::Health { object: &DEPLOYMENT };
    let answer = BY_SCRIPT[0].interpret(question, &LuaLimits::default());
    assert_eq!(answer, Ok(Answer::Health(true)));
}

fn retain() {
    let question = Question::Retain {
        desired: &DEPLOYMENT,
        observed: &DEPLOYMENT,
    };
    let answer = BY_SCRIPT[1].interpret(question, &LuaLimits::default());
    assert!(matches!(answer, Ok(Answer::Object(_))));
}

fn plain_health() {
    let Plain { lua, health, .. } = &*PLAIN;
    let object = lua
        .to_value_with(&*DEPLOYMENT, SerializeOptions::new())
        .expect("the result is JSON");
    assert!(health.call::<bool>(object).expect("it succeeds"));
}

fn plain_retain() {
    let Plain { lua, retain, .. } = &*PLAIN;
    let object = || {
        lua.to_value_with(&*DEPLOYMENT, SerializeOptions::new())
            .expect("the result is JSON")
    };
    let kept = retain
        .call::<mlua::Value>((object(), object()))
        .expect("it succeeds");
    let kept: Value = lua
        .from_value_with(kept, DeserializeOptions::new())
        .expect("the result is JSON");
    assert!(kept.is_object());
}

#[divan::bench]
fn health_by_script(bencher: Bencher<'_, '_>) {
    bencher.bench_local(health);
}

#[divan::bench]
fn retain_by_script(bencher: Bencher<'_, '_>) {
    bencher.bench_local(retain);
}

#[divan::bench]
fn native_health(bencher: Bencher<'_, '_>) {
    bencher.bench_local(|| native(Question::Health { object: &DEPLOYMENT }));
}

#[divan::bench]
fn native_retain(bencher: Bencher<'_, '_>) {
    bencher.bench_local(|| {
        native(Question::Retain {
            desired: &DEPLOYMENT,
            observed: &DEPLOYMENT,
        })
    });
}

fn native(question: Question<'_>) -> Answer {
    let found = NativeInterpreter::new(Timestamp::now).interpreters(question.operation(), question.object());
    let interpreter = found.first().expect("a built-in kind");
    let mut answering = pin!(interpreter.interpret(question));
    // The built-in rules never wait.
    match answering.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer.expect("it succeeds"),
        Poll::Pending => unreachable!("{}", Operation::InterpretHealth),
    }
}

impl Plain {
    fn new() -> Self {
        let lua = Lua::new();
        lua.load(HEALTH).exec().expect("the script compiles");
        lua.load(RETAIN).exec().expect("the script compiles");
        let function = |name| lua.globals().get(name).expect("the function exists");
        Self {
            health: function("InterpretHealth"),
            retain: function("Retain"),
            lua,
        }
    }
}

/// A Deployment of about 4 kB.
fn deployment() -> Value {
    let container = |name: &str| {
        let environment: Vec<_> = (0..19)
            .map(|number| json!({"name": format!("VARIABLE_{number}"), "value": format!("value of it {number}")}))
            .collect();
        json!({
            "name": name, "image": format!("registry.example.com/{name}:v1.2.3"), "env": environment,
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
            "ports": [{"containerPort": 8080, "name": "http"}],
            "readinessProbe": {"httpGet": {"path": "/readyz", "port": 8080}, "periodSeconds": 10},
        })
    };
    let containers = ["app", "proxy", "metrics"].map(container);
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "app", "namespace": "default", "generation": 3,
            "labels": {"app": "app", "resourcetemplate.karmada.io/retain-replicas": "true"}},
        "spec": {
            "replicas": 3, "selector": {"matchLabels": {"app": "app"}},
            "template": {
                "metadata": {"labels": {"app": "app"}, "annotations": {}},
                "spec": {"containers": containers, "serviceAccountName": "app"},
            },
        },
        "status": {"observedGeneration": 3, "replicas": 3, "updatedReplicas": 3, "availableReplicas": 3},
    })
}
