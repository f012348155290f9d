//! Writes the files of a volume so that they change all at once.
//!
//! As kubelet does it (`pkg/volume/util/atomic_writer.go`): the files are in a folder with a name of its own, `..data`
//! is a symbolic link to that folder, and each name that users see is a link through `..data`. A rename replaces
//! `..data`.

use std::{
    collections::BTreeSet,
    fs, io,
    os::unix::fs::{OpenOptionsExt, symlink},
    path::Path,
};

use jiff::Timestamp;

use super::content::Content;

const DATA: &str = "..data";

/// Makes a folder hold exactly these files.
pub(super) fn write(folder: &Path, content: &Content) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let before = fs::read_link(folder.join(DATA)).ok();
    let name = format!("..{}", Timestamp::now().strftime("%Y_%m_%d_%H_%M_%S.%9f"));
    for (path, file) in content {
        let path = folder.join(&name).join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        let mut options = fs::OpenOptions::new();
        let mut open = options.write(true).create_new(true).mode(file.mode).open(path)?;
        io::Write::write_all(&mut open, &file.bytes)?;
    }
    fs::create_dir_all(folder.join(&name))?;
    let link = folder.join("..data_tmp");
    remove(&link)?;
    symlink(&name, &link)?;
    fs::rename(&link, folder.join(DATA))?;
    show(folder, content)?;
    if let Some(before) = before.filter(|before| before.as_os_str() != name.as_str()) {
        fs::remove_dir_all(folder.join(before))?;
    }
    Ok(())
}

/// Makes the names that users see.
fn show(folder: &Path, content: &Content) -> io::Result<()> {
    let names: BTreeSet<_> = content.keys().filter_map(|path| path.iter().next()).collect();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        if !name.to_string_lossy().starts_with("..") && !names.contains(name.as_os_str()) {
            remove(&folder.join(name))?;
        }
    }
    for name in names {
        let (link, target) = (folder.join(name), Path::new(DATA).join(name));
        if fs::read_link(&link).ok().as_deref() != Some(target.as_path()) {
            symlink(target, link)?;
        }
    }
    Ok(())
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use tempfile::TempDir;

    use super::{super::content::File, *};

    fn content(files: &[(&str, &str)]) -> Content {
        let file = |text: &str| File {
            bytes: text.as_bytes().to_vec(),
            mode: 0o400,
        };
        files
            .iter()
            .map(|(path, text)| (path.into(), file(text)))
            .collect()
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn files_are_replaced_added_and_removed_through_one_link() {
        let folder = TempDir::new().unwrap();
        write(folder.path(), &content(&[("a", "1"), ("b/c", "2")])).unwrap();
        let first = fs::read_link(folder.path().join(DATA)).unwrap();
        write(folder.path(), &content(&[("a", "3"), ("d", "4")])).unwrap();
        let second = fs::read_link(folder.path().join(DATA)).unwrap();
        assert_ne!(first, second);
        assert_eq!(fs::read_to_string(folder.path().join("a")).unwrap(), "3");
        assert_eq!(
            fs::read_link(folder.path().join("a")).unwrap(),
            Path::new("..data/a")
        );
        let expected = vec![
            DATA.to_owned(),
            second.to_str().unwrap().to_owned(),
            "a".to_owned(),
            "d".to_owned(),
        ];
        let mut sorted = expected;
        sorted.sort();
        assert_eq!(names(folder.path()), sorted);
        let mode = fs::metadata(folder.path().join("a"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o400);
    }

    #[test]
    fn an_empty_volume_is_an_empty_folder() {
        let folder = TempDir::new().unwrap();
        write(folder.path(), &content(&[])).unwrap();
        assert_eq!(
            names(folder.path())
                .iter()
                .filter(|name| !name.starts_with(".."))
                .count(),
            0
        );
    }
}
