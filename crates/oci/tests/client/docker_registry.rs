//! Tests with Debian's `docker-registry`, if it is installed or `DOCKER_REGISTRY` names it.

use std::{
    env, fs,
    io::{BufRead as _, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use oci::ContentDigest;
use serde_json::json;

use super::*;

/// Bcrypt with few rounds.
const HTPASSWD: &str = "user:$2y$04$abcdefghijklmnopqrstuuV3duMsC0HpUex6N9qapiuOHHWkwRXVm\n";

/// `docker-registry`, stopped at the end of the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn program() -> Option<PathBuf> {
    let named = env::var_os("DOCKER_REGISTRY").map(PathBuf::from);
    let path = env::var_os("PATH").unwrap_or_default();
    let mut installed = env::split_paths(&path).map(|folder| folder.join("docker-registry"));
    named.or_else(|| installed.find(|program| program.is_file()))
}

#[tokio::test]
async fn docker_registry_accepts_and_serves_images() {
    let Some(program) = program() else {
        eprintln!("skipped: docker-registry is not installed: install it, or name it in DOCKER_REGISTRY");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let passwords = folder.path().join("htpasswd");
    // user:hunter2, hashed by `htpasswd -B`.
    fs::write(&passwords, HTPASSWD).unwrap();
    let config = folder.path().join("config.yml");
    let settings = json!({
        "version": 0.1,
        "log": {"formatter": "json"},
        "storage": {"filesystem": {"rootdirectory": folder.path().join("data")}, "delete": {"enabled": true}},
        "http": {"addr": "127.0.0.1:0", "secret": "test"},
        "auth": {"htpasswd": {"realm": "test", "path": passwords}},
    });
    fs::write(&config, settings.to_string()).unwrap();
    let mut child = Command::new(&program)
        .arg("serve")
        .arg(&config)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let log = BufReader::new(child.stderr.take().unwrap());
    let _running = Running(child);
    let mut lines = log.lines().map_while(Result::ok);
    let host = lines.find_map(|line| {
        let address = line.split_once("listening on ")?.1;
        Some(address.split(['"', ' ', ',']).next()?.to_owned())
    });
    let host = host.unwrap();
    // The process would block if nothing read its log.
    std::thread::spawn(move || lines.for_each(drop));

    let client = RegistryClient::new(options(&[&host])).unwrap();
    let shown = credentials(&host, &json!({"username": "user", "password": "hunter2"}));
    let name = image(&format!("{host}/team/app:v1"));
    let error = client.pull(&name, &shown).await.unwrap_err();
    assert_eq!(error.reason(), "ImageNotFound", "{error}");
    for content_of in ["one", "two"] {
        let digest = client.push(&name, &shown, &packed(content_of)).await.unwrap();
        assert_eq!(client.resolve(&name, &shown).await.unwrap(), digest);
        for name in [&name, &name.with_digest(digest.clone())] {
            let pulled = client.pull(name, &shown).await.unwrap();
            assert_eq!((content(&pulled).as_str(), &pulled.digest), (content_of, &digest));
        }
    }
    let missing = name.with_digest(ContentDigest::compute(b"missing"));
    let error = client.pull(&missing, &shown).await.unwrap_err();
    assert_eq!(error.reason(), "ImageNotFound", "{error}");
    let error = client.pull(&name, &no_credentials()).await.unwrap_err();
    assert_eq!(error.reason(), "CredentialsMissing", "{error}");
    let wrong = credentials(&host, &json!({"username": "user", "password": "other"}));
    let error = client.pull(&name, &wrong).await.unwrap_err();
    assert_eq!(error.reason(), "CredentialsRefused", "{error}");
}
