use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use tempfile::TempDir;
use tokio::time::Instant;

use super::*;
use crate::{NodeOptions, environment::Variables};

fn launcher(folder: &Path) -> Launcher {
    Launcher::new(&NodeOptions {
        directory: folder.to_owned(),
        ..NodeOptions::default()
    })
    .unwrap()
}

fn shell<'a>(script: &str, log: &'a Path) -> Launch<'a> {
    Launch {
        program: Path::new("sh"),
        arguments: vec!["-c".to_owned(), script.to_owned()],
        variables: Variables::from([("GREETING".to_owned(), "hello".to_owned())]),
        mounts: None,
        log: Some(log),
    }
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

#[tokio::test]
async fn a_process_has_its_variables_its_log_and_its_exit_code() {
    let folder = TempDir::new().unwrap();
    let (launcher, log) = (launcher(folder.path()), folder.path().join("log"));
    let mut process = launcher
        .start(shell("echo $GREETING; exit 3", &log))
        .await
        .unwrap();
    assert_eq!(process.wait().await, Exit { code: 3 });
    assert_eq!(fs::read_to_string(log).unwrap(), "hello\n");
}

#[tokio::test]
async fn a_process_may_end_by_itself_when_asked_and_is_killed_when_it_does_not() {
    let folder = TempDir::new().unwrap();
    let launcher = launcher(folder.path());
    let log = folder.path().join("log");
    let polite = "trap 'exit 7' TERM; echo ready; while :; do sleep 0.05; done";
    let mut process = launcher.start(shell(polite, &log)).await.unwrap();
    said(&log, "ready").await;
    assert_eq!(process.terminate(soon()).await, Exit { code: 7 });
    let log = folder.path().join("other");
    let stubborn = "trap '' TERM; echo ready; while :; do sleep 0.05; done";
    let mut process = launcher.start(shell(stubborn, &log)).await.unwrap();
    said(&log, "ready").await;
    assert_eq!(
        process
            .terminate(Instant::now() + Duration::from_millis(100))
            .await,
        Exit { code: 137 }
    );
}

#[tokio::test]
async fn what_a_process_started_ends_with_it() {
    let folder = TempDir::new().unwrap();
    let (launcher, log) = (launcher(folder.path()), folder.path().join("log"));
    let script = "sleep 600 & echo $!; wait";
    let process = launcher.start(shell(script, &log)).await.unwrap();
    said(&log, "\n").await;
    let child = fs::read_to_string(&log).unwrap();
    let entry = Path::new("/proc").join(child.trim());
    assert!(entry.exists());
    drop(process);
    until(|| fs::read_to_string(entry.join("stat")).map_or(true, |stat| stat.contains(") Z "))).await;
}

#[tokio::test]
async fn a_mounted_file_is_where_the_program_looks() {
    let folder = TempDir::new().unwrap();
    let launcher = launcher(folder.path());
    if !launcher.mount_namespaces() {
        return;
    }
    let source = folder.path().join("source");
    fs::create_dir(&source).unwrap();
    fs::write(source.join("tls.crt"), "certificate").unwrap();
    let mounts = BTreeMap::from([("/tmp/k8s-webhook-server/serving-certs".to_owned(), source)]);
    let log = folder.path().join("log");
    let launch = Launch {
        mounts: Some(&mounts),
        ..shell("cat /tmp/k8s-webhook-server/serving-certs/tls.crt", &log)
    };
    let exit = launcher.start(launch).await.unwrap().wait().await;
    assert_eq!(
        (exit.code, fs::read_to_string(&log).unwrap().as_str()),
        (0, "certificate")
    );
    assert!(
        !Path::new("/tmp/k8s-webhook-server").exists(),
        "the machine's own /tmp was changed"
    );
}

async fn said(log: &Path, text: &str) {
    until(|| fs::read_to_string(log).is_ok_and(|log| log.contains(text))).await;
}

async fn until(check: impl Fn() -> bool) {
    let end = soon();
    while !check() {
        assert!(Instant::now() < end, "timed out");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
