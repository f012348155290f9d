use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use tar::{Builder, EntryType, Header};
use tempfile::TempDir;

use super::{reader::*, *};
use crate::parse::Files;

/// An archive with any entries, valid or not.
fn tar(entries: &[(EntryType, &str, &str)]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (kind, name, content) in entries {
        let mut header = Header::new_gnu();
        header.set_entry_type(*kind);
        header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
        let data = if kind.is_file() { content.as_bytes() } else { b"" };
        if !kind.is_file() {
            header.as_gnu_mut().unwrap().linkname[..content.len()].copy_from_slice(content.as_bytes());
        }
        header.set_size(data.len() as u64);
        header.set_cksum();
        builder.append(&header, data).unwrap();
    }
    builder.into_inner().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn names(files: &Files) -> Vec<&str> {
    files.keys().map(String::as_str).collect()
}

/// Returns the error for `archive`, prefixed with the path of the file in the error.
fn archive_error(archive: &[u8]) -> String {
    let error = archive::load(archive, "bundle.tar.gz").unwrap_err();
    format!("{}: {error}", error.file())
}

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().unwrap();
    for (file, content) in files {
        let path = folder.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    folder
}

/// Returns the error for the folder, prefixed with the path of the file in the error.
fn folder_error(folder: &TempDir) -> String {
    let error = directory::load(folder.path()).unwrap_err();
    format!("{}: {error}", error.file())
}

#[test]
fn the_bundle_is_at_the_top_of_an_archive_or_in_one_folder() {
    use EntryType::{Directory, Regular};

    let expected = ["manifests/a.yaml", "metadata/annotations.yaml"];
    let plain = [
        (Directory, "manifests/", ""),
        (Regular, "./manifests/a.yaml", "a"),
        (Regular, "metadata/annotations.yaml", "b"),
        (Regular, "tests/scorecard.yaml", "c"),
    ];
    let below = [
        (Regular, "top/manifests/a.yaml", "a"),
        (Regular, "top/metadata/annotations.yaml", "b"),
    ];
    for archive in [tar(&plain), tar(&below), gzip(&tar(&plain)), gzip(&tar(&below))] {
        assert_eq!(names(&archive::load(archive.as_slice(), "-").unwrap()), expected);
    }
}

#[test]
fn long_chains_and_cycles_of_links_take_linear_time() {
    let name = |index: usize| format!("manifests/{index}.yaml");
    let mut entries: Vec<(EntryType, String, String)> = (0..9000)
        .map(|index| (EntryType::Symlink, name(index), format!("{}.yaml", index + 1)))
        .collect();
    entries.push((EntryType::Regular, name(9000), "a".to_owned()));
    let load = |entries: &[(EntryType, String, String)]| {
        let entries: Vec<_> = entries
            .iter()
            .map(|(kind, name, content)| (*kind, name.as_str(), content.as_str()))
            .collect();
        archive::load(tar(&entries).as_slice(), "a.tar")
    };
    let started = std::time::Instant::now();
    assert_eq!(load(&entries).unwrap().len(), 9001);
    entries[9000] = (EntryType::Symlink, name(9000), "4500.yaml".to_owned());
    let error = load(&entries).unwrap_err().to_string();
    assert!(error.contains("is a link to"), "{error}");
    // Following each link to its end separately takes many times as long.
    assert!(started.elapsed() < std::time::Duration::from_secs(10));
}

#[test]
fn links_within_an_archive_are_followed() {
    let archive = tar(&[
        (EntryType::Symlink, "manifests/a.yaml", "../shared/a.yaml"),
        (EntryType::Symlink, "manifests/b.yaml", "a.yaml"),
        (EntryType::Link, "manifests/c.yaml", "shared/a.yaml"),
        (EntryType::Regular, "shared/a.yaml", "content"),
    ]);
    let files = archive::load(archive.as_slice(), "-").unwrap();
    assert_eq!(
        names(&files),
        ["manifests/a.yaml", "manifests/b.yaml", "manifests/c.yaml"]
    );
    assert!(files.values().all(|content| content == b"content"));
}

#[test]
fn paths_and_links_outside_of_an_archive_are_refused() {
    use EntryType::{Fifo, Link, Regular, Symlink};

    for (entries, expected) in [
        (
            [(Regular, "../manifests/a.yaml", "a")].as_slice(),
            "../manifests/a.yaml: has a path outside of the bundle",
        ),
        (
            &[(Regular, "/manifests/a.yaml", "a")],
            "/manifests/a.yaml: has a path outside of the bundle",
        ),
        (
            &[(Regular, "manifests/../../a.yaml", "a")],
            "manifests/../../a.yaml: has a path outside of the bundle",
        ),
        (
            &[(Symlink, "manifests/a.yaml", "../../etc/passwd")],
            "manifests/a.yaml: is a link to ../../etc/passwd, which is not a file of the bundle",
        ),
        (
            &[(Symlink, "manifests/a.yaml", "/etc/passwd")],
            "manifests/a.yaml: is a link to /etc/passwd, which is not a file of the bundle",
        ),
        (
            &[
                (Symlink, "manifests/a.yaml", "b.yaml"),
                (Symlink, "manifests/b.yaml", "a.yaml"),
            ],
            "manifests/a.yaml: is a link to manifests/b.yaml, which is not a file of the bundle",
        ),
        (
            &[(Link, "manifests/a.yaml", "gone.yaml")],
            "manifests/a.yaml: is a link to gone.yaml, which is not a file of the bundle",
        ),
        (
            &[(Fifo, "manifests/a.yaml", "")],
            "manifests/a.yaml: is neither a file nor a directory",
        ),
        (
            &[
                (Regular, "manifests/a.yaml", "a"),
                (Regular, "manifests/a.yaml", "b"),
            ],
            "manifests/a.yaml: occurs twice in the archive",
        ),
        (
            &[(Regular, "a.yaml", "a")],
            "bundle.tar.gz: is not a bundle: directory \"manifests\" not found",
        ),
    ] {
        assert_eq!(archive_error(&tar(entries)), expected);
    }
}

#[test]
fn other_files_than_archives_are_refused() {
    let unsupported = "bundle.tar.gz: is neither a directory nor a .tar.gz archive";
    assert_eq!(archive_error(b""), unsupported);
    assert_eq!(archive_error(&[0; 4096]), unsupported);
    let archive = gzip(&tar(&[(
        EntryType::Regular,
        "manifests/a.yaml",
        &"a".repeat(100_000),
    )]));
    assert!(archive_error(&archive[..archive.len() / 2]).contains("cannot be read"));
}

#[test]
fn archives_above_the_limits_are_refused() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let mut header = Header::new_gnu();
    header.set_path("manifests/large.yaml").unwrap();
    header.set_size(UNPACKED_BYTES + 1);
    header.set_cksum();
    encoder.write_all(header.as_bytes()).unwrap();
    assert_eq!(
        archive_error(&encoder.finish().unwrap()),
        "manifests/large.yaml: is too large: the limit of a bundle is 64 MiB unpacked"
    );

    let mut builder = Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for index in 0..=FILES {
        let mut header = Header::new_gnu();
        header.set_size(0);
        builder
            .append_data(&mut header, format!("manifests/{index}"), &b""[..])
            .unwrap();
    }
    assert_eq!(
        archive_error(&builder.into_inner().unwrap().finish().unwrap()),
        "manifests/10000: is one file too many: the limit of a bundle is 10000 files"
    );
}

#[test]
fn links_within_a_folder_are_followed() {
    let bundle = folder(&[
        ("manifests/a.yaml", "a"),
        ("metadata/annotations.yaml", "b"),
        ("shared/c.yaml", "c"),
        ("README.md", "not part of it"),
    ]);
    symlink("../shared/c.yaml", bundle.path().join("manifests/c.yaml")).unwrap();
    let files = directory::load(bundle.path()).unwrap();
    assert_eq!(
        names(&files),
        [
            "manifests/a.yaml",
            "manifests/c.yaml",
            "metadata/annotations.yaml"
        ]
    );
    assert_eq!(files["manifests/c.yaml"], b"c");
}

#[test]
fn links_outside_of_a_folder_are_refused() {
    for target in ["/etc/hostname", "../../elsewhere", "gone.yaml", "..", "."] {
        let bundle = folder(&[("manifests/a.yaml", "a")]);
        symlink(target, bundle.path().join("manifests/link")).unwrap();
        assert_eq!(
            folder_error(&bundle),
            format!("manifests/link: is a link to {target}, which is not a file of the bundle")
        );
    }
}

#[test]
fn sockets_large_files_and_empty_folders_are_refused() {
    let bundle = folder(&[("manifests/a.yaml", "a")]);
    let _listener = UnixListener::bind(bundle.path().join("manifests/socket")).unwrap();
    assert_eq!(
        folder_error(&bundle),
        "manifests/socket: is neither a file nor a directory"
    );

    let bundle = folder(&[("manifests/a.yaml", "")]);
    // A sparse file takes no disk space.
    let file = File::options()
        .write(true)
        .open(bundle.path().join("manifests/a.yaml"))
        .unwrap();
    file.set_len(100 << 20).unwrap();
    assert_eq!(
        folder_error(&bundle),
        "manifests/a.yaml: is too large: the limit of a bundle is 64 MiB unpacked"
    );

    let bundle = folder(&[("README.md", "")]);
    assert!(folder_error(&bundle).ends_with("is not a bundle: directory \"manifests\" not found"));
}

#[test]
fn folders_and_archives_are_detected_by_content() {
    let bundle = folder(&[("manifests/a.yaml", "a")]);
    assert_eq!(names(&load(bundle.path()).unwrap()), ["manifests/a.yaml"]);
    let archive = bundle.path().join("bundle.tar.gz");
    fs::write(
        &archive,
        gzip(&tar(&[(EntryType::Regular, "manifests/b.yaml", "b")])),
    )
    .unwrap();
    assert_eq!(names(&load(&archive).unwrap()), ["manifests/b.yaml"]);
    assert!(matches!(
        load(&bundle.path().join("gone")),
        Err(SourceError::Read { .. })
    ));
    assert!(matches!(
        load(&bundle.path().join("manifests/a.yaml")),
        Err(SourceError::Unsupported { .. })
    ));
}

proptest! {
    #[test]
    fn archives_of_arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let _ = archive::load(bytes.as_slice(), "-");
        let _ = archive::load(gzip(&bytes).as_slice(), "-");
    }

    #[test]
    fn damaged_archives_never_panic(position in 0_usize..4096, byte in any::<u8>()) {
        let mut bytes = tar(&[
            (EntryType::Symlink, "manifests/a.yaml", "b.yaml"),
            (EntryType::Regular, "manifests/b.yaml", "content"),
        ]);
        let position = position % bytes.len();
        bytes[position] = byte;
        let _ = archive::load(bytes.as_slice(), "-");
        let _ = archive::load(gzip(&bytes).as_slice(), "-");
    }
}
