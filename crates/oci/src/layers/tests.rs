//! Valid and invalid layers.

use std::{collections::BTreeMap, io::Write};

use flate2::{Compression, write::GzEncoder};
use proptest::{collection, prelude::*};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use tar::{Builder, EntryType, Header};

use super::{paths::parents, *};
use crate::manifest::{LAYER, LAYER_GZIP};

const ZSTD: &str = "application/vnd.oci.image.layer.v1.tar+zstd";
const LIMITS: LayerLimits = LayerLimits {
    bytes: 8 << 20,
    entries: 100,
};

/// A path, its type, and its content or target.
type Entry<'a> = (&'a str, EntryType, &'a str);

fn tar_of(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut archive = Builder::new(Vec::new());
    for (path, kind, content) in entries {
        let mut header = Header::new_ustar();
        // `set_path` rejects invalid paths, so the field is written directly.
        header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
        header.set_entry_type(*kind);
        header.set_mode(0o644);
        let is_file = *kind == EntryType::Regular;
        if is_file {
            header.set_size(content.len() as u64);
        } else {
            header.set_size(0);
            header.as_mut_bytes()[157..157 + content.len()].copy_from_slice(content.as_bytes());
        }
        header.set_cksum();
        let content = if is_file { content.as_bytes() } else { b"" };
        archive.append(&header, content).unwrap();
    }
    archive.into_inner().unwrap()
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn file<'a>(path: &'a str, content: &'a str) -> Entry<'a> {
    (path, EntryType::Regular, content)
}

fn flatten(layers: &[&[Entry<'_>]]) -> Result<Vec<(String, String)>, String> {
    let mut files = ImageFiles::new(&["manifests", "metadata"], LIMITS);
    for (index, entries) in layers.iter().enumerate() {
        let name = index.to_string();
        files
            .add(&name, LAYER, &tar_of(entries))
            .map_err(|error| error.to_string())?;
    }
    let files = files.into_files().map_err(|error| error.to_string())?;
    let text = |content: Vec<u8>| String::from_utf8(content).unwrap();
    Ok(files
        .into_iter()
        .map(|(path, content)| (path, text(content)))
        .collect())
}

fn pairs(expected: &[(&str, &str)]) -> Result<Vec<(String, String)>, String> {
    let owned = expected
        .iter()
        .map(|(path, content)| ((*path).to_owned(), (*content).to_owned()));
    Ok(owned.collect())
}

#[test]
fn a_layer_replaces_and_removes_files_of_lower_layers() {
    let base: &[Entry<'_>] = &[
        ("manifests/", EntryType::Directory, ""),
        file("./manifests/a", "1"),
        file("manifests/b", "1"),
        file("manifests/sub/c", "1"),
        file("metadata/d", "1"),
        file("bin/sh", "x"),
    ];
    let (a, b, c, d) = (
        ("manifests/a", "1"),
        ("manifests/b", "1"),
        ("manifests/sub/c", "1"),
        ("metadata/d", "1"),
    );
    for (top, expected) in [
        (vec![], vec![a, b, c, d]),
        (
            vec![file("manifests/a", "2")],
            vec![("manifests/a", "2"), b, c, d],
        ),
        (vec![file("manifests/.wh.a", "")], vec![b, c, d]),
        (vec![file("manifests/.wh.sub", "")], vec![a, b, d]),
        (vec![file(".wh.manifests", "")], vec![d]),
        // A whiteout hides only lower layers, wherever it is in its own layer.
        (
            vec![file("manifests/x", "2"), file("manifests/.wh..wh..opq", "")],
            vec![d].into_iter().chain([]).collect::<Vec<_>>(),
        ),
        (
            vec![file("manifests/a", "2"), file("manifests/.wh.a", "")],
            vec![("manifests/a", "2"), b, c, d],
        ),
        (vec![file(".wh..wh..opq", "")], vec![]),
        (
            vec![file("manifests/sub", "2")],
            vec![a, b, ("manifests/sub", "2"), d],
        ),
        (vec![file("manifests/.wh.missing", "")], vec![a, b, c, d]),
    ] {
        let mut expected = expected;
        if top.iter().any(|(path, ..)| *path == "manifests/x") {
            expected.insert(0, ("manifests/x", "2"));
        }
        assert_eq!(flatten(&[base, &top]), pairs(&expected), "{top:?}");
    }
}

#[test]
fn a_file_instead_of_a_wanted_folder_is_refused() {
    let link = ("manifests", EntryType::Symlink, "metadata/a");
    for layer in [
        vec![file("manifests", "1"), file("metadata/a", "1")],
        vec![link, file("metadata/a", "1")],
    ] {
        let refused = Err("manifests is not a folder in the image".to_owned());
        assert_eq!(flatten(&[&layer]), refused);
    }
}

#[test]
fn links_are_followed_within_the_image_only() {
    let link = |path, target| (path, EntryType::Symlink, target);
    let hard = |path, target| (path, EntryType::Link, target);
    let good = flatten(&[&[
        file("manifests/a", "1"),
        link("metadata/up", "../manifests/a"),
        link("metadata/root", "/manifests/a"),
        link("metadata/twice", "up"),
        hard("metadata/hard", "manifests/a"),
    ]]);
    let paths = [
        "manifests/a",
        "metadata/hard",
        "metadata/root",
        "metadata/twice",
        "metadata/up",
    ];
    assert_eq!(good, pairs(&paths.map(|path| (path, "1"))));
    for entry in [
        link("manifests/x", "../../etc/passwd"),
        link("manifests/x", "/etc/passwd"),
        link("manifests/x", "x"),
        link("manifests/x", "missing"),
        link("manifests/x", "."),
        hard("manifests/x", "../etc/passwd"),
    ] {
        let error = flatten(&[&[file("manifests/a", "1"), entry]]).unwrap_err();
        assert!(error.starts_with("manifests/x is a link to "), "{error}");
    }
    let through = flatten(&[&[link("manifests/sub", "/etc")], &[file("manifests/sub/x", "1")]]).unwrap_err();
    assert_eq!(
        through,
        "layer 1: manifests/sub/x is below manifests/sub, which is not a folder"
    );
}

#[test]
fn paths_outside_of_the_image_and_devices_are_refused() {
    for path in ["../a", "/manifests/a", "manifests/../../a", "bin/../../../a"] {
        let error = flatten(&[&[file(path, "1")]]).unwrap_err();
        assert_eq!(error, format!("layer 0: {path:?} is outside of the image"));
    }
    for kind in [EntryType::Char, EntryType::Block, EntryType::Fifo] {
        let error = flatten(&[&[("manifests/a", kind, "")]]).unwrap_err();
        assert!(
            error.ends_with("is neither a file nor a folder nor a link"),
            "{error}"
        );
        assert_eq!(flatten(&[&[("dev/null", kind, "")]]), pairs(&[]));
    }
}

#[test]
fn bombs_are_refused_before_they_fill_memory() {
    let add = |media_type: &str, content: &[u8]| {
        let mut files = ImageFiles::new(&["manifests"], LIMITS);
        files.add("0", media_type, content).unwrap_err().to_string()
    };
    let zeros = "\0".repeat(7 << 20);
    let bomb = tar_of(&[file("manifests/a", &zeros)]);
    let ratio = "layer 0: it unpacks to more than 200 times its size";
    assert_eq!(add(LAYER_GZIP, &gzip(&bomb)), ratio);
    assert_eq!(
        add(ZSTD, &compress_to_vec(bomb.as_slice(), CompressionLevel::Fastest)),
        ratio
    );
    // Also in folders that are not extracted.
    let elsewhere = tar_of(&[file("bin/a", &"\0".repeat(9 << 20))]);
    assert_eq!(
        add(LAYER, &elsewhere),
        "layer 0: unpacked, the image has more than 8 MiB"
    );
    let many: Vec<_> = (0..101).map(|number| format!("bin/{number}")).collect();
    let many: Vec<_> = many.iter().map(|path| file(path, "")).collect();
    assert!(add(LAYER, &tar_of(&many)).ends_with("more than 100 files, folders and links"));
    // A window of 3.75 TiB.
    let window = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xff, 0x00, 0x00, 0x00];
    assert!(add(ZSTD, &window).contains("a window of 8 MiB at most"));
    assert!(add("application/vnd.cncf.helm.chart.content.v1.tar+gzip", &[]).contains("media type"));
}

#[test]
fn gzip_and_zstd_are_unpacked_and_truncated_layers_refused() {
    let archive = tar_of(&[file("manifests/a", "content")]);
    for (media_type, packed) in [
        (LAYER_GZIP, gzip(&archive)),
        (
            ZSTD,
            compress_to_vec(archive.as_slice(), CompressionLevel::Fastest),
        ),
        (LAYER, archive.clone()),
    ] {
        let mut files = ImageFiles::new(&["manifests"], LIMITS);
        files.add("0", media_type, &packed).unwrap();
        assert_eq!(files.into_files().unwrap()["manifests/a"], b"content");
        let mut files = ImageFiles::new(&["manifests"], LIMITS);
        let cut = &packed[..packed.len().min(600) / 2];
        files.add("0", media_type, cut).unwrap_err();
    }
}

#[test]
fn layers_of_several_members_or_frames_are_read_to_their_end() {
    let archive = tar_of(&[file("manifests/a", "1"), file("manifests/b", "2")]);
    let parts = || archive.chunks(600);
    let zstd = |part: &[u8]| compress_to_vec(part, CompressionLevel::Fastest);
    let skipped = b"\x50\x2a\x4d\x18\x04\x00\x00\x00toc!".to_vec();
    let chunked = parts().map(zstd).collect::<Vec<_>>().join(&skipped[..]);
    for (name, media_type, packed) in [
        // eStargz compresses each file as a member.
        ("gzip", LAYER_GZIP, parts().flat_map(gzip).collect()),
        ("pzstd", ZSTD, parts().flat_map(zstd).collect()),
        ("zstd:chunked", ZSTD, [chunked, skipped].concat()),
    ] {
        let packed: Vec<u8> = packed;
        let mut files = ImageFiles::new(&["manifests"], LIMITS);
        files.add("0", media_type, &packed).unwrap();
        let files = files.into_files().unwrap();
        assert_eq!(
            (&files["manifests/a"][..], &files["manifests/b"][..]),
            (&b"1"[..], &b"2"[..]),
            "{name}"
        );
        let mut files = ImageFiles::new(&["manifests"], LIMITS);
        files
            .add("0", media_type, &packed[..packed.len() / 2])
            .unwrap_err();
    }
    // The limits apply to the sum.
    let bomb = tar_of(&[file("manifests/a", &"\0".repeat(7 << 20))]);
    let packed: Vec<u8> = bomb.chunks(1 << 20).flat_map(gzip).collect();
    let refused = ImageFiles::new(&["manifests"], LIMITS).add("0", LAYER_GZIP, &packed);
    assert!(matches!(refused, Err(LayerError::Ratio { .. })), "{refused:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn arbitrary_bytes_never_panic(
        content in collection::vec(any::<u8>(), 0..600),
        start in prop_oneof![Just(&[][..]), Just(&[0x1f, 0x8b, 8][..]), Just(&[0x28, 0xb5, 0x2f, 0xfd][..])],
    ) {
        let content = [start, &content].concat();
        for media_type in [LAYER_GZIP, ZSTD, LAYER] {
            let mut files = ImageFiles::new(&["manifests"], LIMITS);
            let _ = files.add("0", media_type, &content);
            let _ = files.into_files();
        }
    }

    /// The result is that of unpacking each layer over the previous ones in a file system.
    #[test]
    fn layers_equal_a_file_system_they_are_unpacked_into(
        layers in collection::vec(collection::btree_map("[ab](/[ab])?", prop_oneof![Just(None), "[xy]".prop_map(Some)], 0..4), 1..5),
    ) {
        let mut files = ImageFiles::new(&["manifests"], LIMITS);
        let mut model: BTreeMap<String, String> = BTreeMap::new();
        for layer in &layers {
            // A layer does not contain a file together with entries below it.
            let is_below = |path: &str| path.len() > 1 && layer.get(&path[..1]).is_some_and(Option::is_some);
            let mut entries = Vec::new();
            for (path, content) in layer.iter().filter(|(path, _)| !is_below(path)) {
                let path = format!("manifests/{path}");
                let (folder, name) = path.rsplit_once('/').unwrap();
                entries.push(match content {
                    Some(content) => (path.clone(), content.clone()),
                    None => (format!("{folder}/.wh.{name}"), String::new()),
                });
            }
            let entries: Vec<_> = entries.iter().map(|(path, content)| file(path, content)).collect();
            let is_refused = files.add("-", LAYER, &tar_of(&entries)).is_err();
            let is_gone = |path: &str| entries.iter().any(|(whiteout, ..)| {
                let gone = whiteout.replace(".wh.", "");
                whiteout.contains(".wh.") && (path == gone || path.starts_with(&format!("{gone}/")))
            });
            model.retain(|path, _| !is_gone(path));
            let mut would_be_refused = false;
            for (path, _, content) in entries.iter().filter(|(path, ..)| !path.contains(".wh.")) {
                let mut upper = parents(path);
                would_be_refused |= upper.any(|parent| model.contains_key(parent));
                model.retain(|known, _| !known.starts_with(&format!("{path}/")));
                model.insert((*path).to_owned(), (*content).to_owned());
            }
            prop_assert_eq!(is_refused, would_be_refused);
            if is_refused {
                return Ok(());
            }
        }
        let files = files.into_files().unwrap();
        let text = |content: &Vec<u8>| String::from_utf8(content.clone()).unwrap();
        let files: BTreeMap<_, _> = files.iter().map(|(path, content)| (path.clone(), text(content))).collect();
        prop_assert_eq!(files, model);
    }
}

/// Returns the files from a scan of a folder, and whether it was complete before the lowest layer.
fn scan(folder: &str, layers: &[&[Entry<'_>]]) -> Result<Vec<(String, String)>, String> {
    let mut scan = ImageScan::new(folder, LIMITS);
    let mut found = Vec::new();
    for (index, entries) in layers.iter().enumerate().rev() {
        let archive = gzip(&tar_of(entries));
        let mut each = |path: &str, content: &mut dyn std::io::Read| {
            let mut text = String::new();
            content.read_to_string(&mut text)?;
            found.push((path.to_owned(), text));
            Ok(())
        };
        let size = archive.len() as u64;
        scan.read(
            &index.to_string(),
            LAYER_GZIP,
            size,
            archive.as_slice(),
            &mut each,
        )
        .map_err(|error| error.to_string())?;
    }
    found.sort();
    Ok(found)
}

#[test]
fn a_scan_yields_the_visible_files() {
    let folder = |path| (path, EntryType::Directory, "");
    let found = scan(
        "configs",
        &[
            &[
                folder("configs"),
                file("configs/a/catalog.json", "old a"),
                file("configs/b/catalog.json", "old b"),
                file("configs/c/catalog.json", "c"),
                file("configs/d", "old d"),
                file("tmp/cache", "other"),
            ],
            &[
                file("configs/a/catalog.json", "a"),
                file("configs/.wh.b", ""),
                file("configs/d/catalog.json", "d"),
                file("configs/e/.wh..wh..opq", ""),
            ],
        ],
    );
    let expected = pairs(&[
        ("a/catalog.json", "a"),
        ("c/catalog.json", "c"),
        ("d/catalog.json", "d"),
    ]);
    assert_eq!(found, expected);
    let opaque: &[Entry<'_>] = &[file("configs/.wh..wh..opq", ""), file("configs/a", "a")];
    assert_eq!(
        scan("configs", &[&[file("configs/b", "b")], opaque]),
        pairs(&[("a", "a")])
    );
    let removed: &[Entry<'_>] = &[file(".wh.configs", "")];
    assert_eq!(scan("configs", &[&[file("configs/b", "b")], removed]), pairs(&[]));
}

#[test]
fn a_scan_refuses_links() {
    let link = ("configs/a", EntryType::Symlink, "../b");
    let error = scan("configs", &[&[link]]).unwrap_err();
    assert_eq!(
        error,
        "configs/a is a link to \"../b\", which is not a file in the image's configs"
    );
    assert!(scan("configs", &[&[("configs", EntryType::Symlink, "b")]]).is_err());
    assert_eq!(
        scan("configs", &[&[("other", EntryType::Symlink, "b")]]),
        pairs(&[])
    );
    assert!(
        scan("configs", &[&[file("../a", "")]])
            .unwrap_err()
            .contains("is outside of the image")
    );
    let bomb = "0".repeat(9 << 20);
    assert!(scan("configs", &[&[file("other", &bomb)]]).is_err());
}

#[test]
fn header_memory_of_a_scan_is_limited() {
    let mut archive = Builder::new(Vec::new());
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::GNULongName);
    let name = vec![b'a'; 3 << 20];
    header.set_size(name.len() as u64);
    header.set_cksum();
    archive.append(&header, name.as_slice()).unwrap();
    let archive = archive.into_inner().unwrap();
    let mut scan = ImageScan::new("configs", LIMITS);
    let error = scan.read(
        "0",
        LAYER,
        archive.len() as u64,
        archive.as_slice(),
        &mut |_, _| Ok(()),
    );
    assert!(error.unwrap_err().to_string().contains("more than 1 MiB"));
}

proptest! {
    #[test]
    fn a_scan_yields_the_same_files_as_image_files(
        layers in collection::vec(collection::vec(("[ab](/[ab])?", "[a-z]{0,3}", any::<bool>()), 0..5), 1..4),
    ) {
        let layers: Vec<Vec<(String, String)>> = layers
            .into_iter()
            .map(|layer| {
                let mut entries: Vec<(String, String)> = Vec::new();
                for (path, content, is_whiteout) in layer {
                    let path = match (is_whiteout, path.rsplit_once('/')) {
                        (true, Some((folder, file))) => format!("manifests/{folder}/.wh.{file}"),
                        (true, None) => format!("manifests/.wh.{path}"),
                        (false, _) => format!("manifests/{path}"),
                    };
                    // `ImageFiles` rejects duplicates in a layer, and entries below a file.
                    let clashes = |(other, _): &(String, String)| {
                        *other == path || other.starts_with(&format!("{path}/")) || path.starts_with(&format!("{other}/"))
                    };
                    if !entries.iter().any(clashes) {
                        entries.push((path, content));
                    }
                }
                entries
            })
            .collect();
        let borrowed: Vec<Vec<Entry<'_>>> =
            layers.iter().map(|layer| layer.iter().map(|(path, content)| file(path, content)).collect()).collect();
        let slices: Vec<&[Entry<'_>]> = borrowed.iter().map(Vec::as_slice).collect();
        if let Ok(expected) = flatten(&slices) {
            let found = scan("manifests", &slices).unwrap();
            let found: Vec<_> = found.into_iter().map(|(path, content)| (format!("manifests/{path}"), content)).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
