//! A view of the file system in which a pod's volumes are at their mount paths.
//!
//! Everything else is as on the machine, but for `/tmp`, which is the pod's own where something is mounted below it. The
//! view is a new root in a user and mount namespace, made of bind mounts: nothing is changed outside, nothing needs
//! root.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Component, Path, PathBuf},
};

/// What `unshare` makes anew.
pub(super) const NAMESPACES: [&str; 4] = ["--user", "--map-root-user", "--mount", "--"];

/// Where the new root is put together. Only the namespace sees it.
const ROOT: &str = "/mnt";

/// One thing to do for the new root; paths are those of the machine, and of the view.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Folder(PathBuf),
    File(PathBuf),
    Link { at: PathBuf, to: PathBuf },
    Bind { from: PathBuf, at: PathBuf },
}

/// The words that run what follows them in a view with these mounts; the folders in `keep` stay visible.
pub(super) fn enter(mounts: &BTreeMap<String, PathBuf>, keep: &[&Path]) -> io::Result<Vec<String>> {
    let mut sources = BTreeMap::new();
    for (path, source) in mounts {
        sources.insert(resolve(Path::new(path)), source.clone());
    }
    for folder in keep {
        sources
            .entry((*folder).to_owned())
            .or_insert_with(|| (*folder).to_owned());
    }
    let mut words: Vec<_> = ["unshare"]
        .iter()
        .chain(&NAMESPACES)
        .map(ToString::to_string)
        .collect();
    words.extend(["sh".to_owned(), "-ec".to_owned(), script(&plan(&sources)?)]);
    words.push("view".to_owned());
    Ok(words)
}

/// A path with the links of its existing part resolved.
fn resolve(path: &Path) -> PathBuf {
    let inside: PathBuf = path
        .components()
        .filter(|part| !matches!(part, Component::ParentDir))
        .collect();
    for existing in inside.ancestors() {
        if let (Ok(real), Ok(rest)) = (fs::canonicalize(existing), inside.strip_prefix(existing)) {
            return real.join(rest);
        }
    }
    inside
}

/// The steps that make the view.
fn plan(sources: &BTreeMap<PathBuf, PathBuf>) -> io::Result<Vec<Step>> {
    let mut steps = Vec::new();
    mirror(Path::new("/"), sources, &mut steps)?;
    Ok(steps)
}

/// Shows a folder of which something below is replaced: its other entries are bound one by one.
fn mirror(folder: &Path, sources: &BTreeMap<PathBuf, PathBuf>, steps: &mut Vec<Step>) -> io::Result<()> {
    let mut names = BTreeSet::new();
    // The pod's own /tmp shows only what is mounted.
    if folder != Path::new("/tmp") && folder.is_dir() {
        for entry in fs::read_dir(folder)? {
            names.insert(entry?.path());
        }
    }
    for path in sources.keys() {
        if let Some(child) = path.strip_prefix(folder).ok().and_then(|rest| rest.iter().next()) {
            names.insert(folder.join(child));
        }
    }
    for path in names {
        if let Some(source) = sources.get(&path) {
            steps.push(if source.is_dir() {
                Step::Folder(path.clone())
            } else {
                Step::File(path.clone())
            });
            steps.push(Step::Bind {
                from: source.clone(),
                at: path,
            });
        } else if sources.keys().any(|below| below.starts_with(&path)) {
            steps.push(Step::Folder(path.clone()));
            mirror(&path, sources, steps)?;
        } else if path.is_symlink() {
            steps.push(Step::Link {
                to: fs::read_link(&path)?,
                at: path,
            });
        } else {
            steps.push(if path.is_dir() {
                Step::Folder(path.clone())
            } else {
                Step::File(path.clone())
            });
            steps.push(Step::Bind {
                from: path.clone(),
                at: path,
            });
        }
    }
    Ok(())
}

/// The steps as a shell script that ends in the view, running its arguments.
fn script(steps: &[Step]) -> String {
    let at = |path: &Path| quote(&format!("{ROOT}{}", path.display()));
    let mut lines = vec![format!("mount -t tmpfs tmpfs {ROOT}")];
    for step in steps {
        lines.push(match step {
            Step::Folder(path) => format!("mkdir -p {}", at(path)),
            Step::File(path) => format!(": > {}", at(path)),
            Step::Link { at: link, to } => format!("ln -s {} {}", quote(&to.display().to_string()), at(link)),
            Step::Bind { from, at: path } => {
                format!(
                    "mount --rbind {} {}",
                    quote(&from.display().to_string()),
                    at(path)
                )
            }
        });
    }
    lines.push(format!("exec chroot {ROOT} \"$@\""));
    lines.join("\n")
}

fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn a_mount_replaces_its_path_and_leaves_its_neighbours() {
        let machine = TempDir::new_in("/var/tmp").unwrap();
        let root = machine.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("etc/kept")).unwrap();
        fs::write(root.join("etc/file"), "").unwrap();
        fs::create_dir_all(root.join("source")).unwrap();
        let sources = BTreeMap::from([(root.join("etc/new/certs"), root.join("source"))]);
        let mut steps = Vec::new();
        mirror(&root.join("etc"), &sources, &mut steps).unwrap();
        let etc = |name: &str| root.join("etc").join(name);
        let bind = |from: PathBuf, at: PathBuf| Step::Bind { from, at };
        assert_eq!(
            steps,
            [
                Step::File(etc("file")),
                bind(etc("file"), etc("file")),
                Step::Folder(etc("kept")),
                bind(etc("kept"), etc("kept")),
                Step::Folder(etc("new")),
                Step::Folder(etc("new/certs")),
                bind(root.join("source"), etc("new/certs")),
            ]
        );
    }

    #[test]
    fn links_on_the_way_are_followed() {
        let machine = TempDir::new().unwrap();
        let root = machine.path().canonicalize().unwrap();
        fs::create_dir(root.join("run")).unwrap();
        std::os::unix::fs::symlink("run", root.join("link")).unwrap();
        assert_eq!(resolve(&root.join("link/secrets/x")), root.join("run/secrets/x"));
    }

    #[test]
    fn names_are_quoted_for_the_shell() {
        assert_eq!(quote("it's; rm"), r"'it'\''s; rm'");
    }
}
