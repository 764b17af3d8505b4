//! What bears a mark, and what does not.

use super::*;

/// As in the table.
pub(crate) const OWNER: &str = "4711:1234567:0f8a1d5c-8f5e-4b57-9d3b-2f0e6c1a7b42";

/// Writes the mark of a home, whatever else is in it.
pub(crate) fn mark_as_home(home: &Path) {
    let inode = inode_of(&open(home, FOLDER, Mode::empty()).unwrap()).unwrap();
    fs::write(home.join(FILE), inode).unwrap();
}

#[test]
fn names_are_judged_as_the_shared_table_has_them() {
    let home = Path::new("/srv/tare");
    let table = include_str!("../../tests/data/marks");
    let mut rows = 0;
    for line in table.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let [verdict, kind, ident] = line.splitn(3, ' ').collect::<Vec<_>>()[..] else {
            panic!("{line:?} has no three columns");
        };
        let own = match kind {
            "path" => own_place(ident, home).is_ok(),
            "cgroup" => refuse_cgroup(ident, OWNER).is_ok(),
            "link" => refuse_link(ident, OWNER).is_ok(),
            "rules" => {
                let (maker, tag) = ident.split_once(':').unwrap_or((ident, ""));
                refuse_rules(maker, tag, OWNER).is_ok()
            }
            "token" => ident == token_of(OWNER),
            _ => continue, // of an engine or a containerd: in Python, and in engine.rs
        };
        assert_eq!(own, verdict == "own", "{line}");
        rows += 1;
    }
    assert!(rows > 30);
}

#[test]
fn a_directory_needs_its_own_mark_and_a_copied_one_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let (home, first) = (folder.path().join("home"), folder.path().join("tare-task.a"));
    let second = folder.path().join("tare-task.b");
    for place in [&first, &second] {
        fs::create_dir(place).unwrap();
    }
    let about = rustix::fs::stat(&first).unwrap();
    for place in [&first, &second] {
        fs::write(place.join(FILE), format!("{}:{}\n", about.st_dev, about.st_ino)).unwrap();
    }
    let judged = |place: &Path| opened(place.to_str().unwrap(), &home);
    assert!(judged(&first).unwrap().is_some());
    let why = judged(&second).unwrap_err().to_string();
    assert_eq!(why, "it bears no mark of tare's, so it was left unchanged");
    fs::remove_file(second.join(FILE)).unwrap();
    assert!(judged(&second).unwrap().is_some(), "an empty one was being made");
    fs::write(second.join("precious"), "x").unwrap();
    assert!(judged(&second).is_err());
    let link = folder.path().join("tare-task.link");
    std::os::unix::fs::symlink(&first, &link).unwrap();
    assert!(judged(&link).is_err(), "a link is no directory");
}

#[test]
fn no_part_of_a_path_in_a_home_may_be_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let (home, others) = (folder.path().join("home"), folder.path().join("others"));
    for place in [home.join("work"), others.join("precious")] {
        fs::create_dir_all(place).unwrap();
    }
    std::os::unix::fs::symlink(&others, home.join("work/aside")).unwrap();
    mark_as_home(&home);
    let judged = |name: &str| opened(home.join(name).to_str().unwrap(), &home);
    assert_eq!(
        judged("work/aside/precious").unwrap_err().to_string(),
        "a part of it is a link, so it was left unchanged"
    );
    assert!(judged("work/aside").unwrap().is_some(), "the link itself is in tare's directory");
    assert!(judged("work/gone").unwrap().is_none());
}

#[test]
fn what_was_looked_at_is_removed_and_not_what_was_put_in_its_way() {
    let folder = tempfile::tempdir().unwrap();
    let (home, others) = (folder.path().join("home"), folder.path().join("others"));
    fs::create_dir_all(home.join("work/run")).unwrap();
    fs::create_dir_all(others.join("run")).unwrap();
    fs::write(others.join("run/precious"), "x").unwrap();
    mark_as_home(&home);
    let place = opened(home.join("work/run").to_str().unwrap(), &home).unwrap().unwrap();
    fs::rename(home.join("work"), home.join("moved")).unwrap();
    std::os::unix::fs::symlink(&others, home.join("work")).unwrap();
    place.remove().unwrap();
    assert!(others.join("run/precious").exists() && !home.join("moved/run").exists());
}

#[test]
fn a_home_is_a_directory_that_tare_made_or_found_empty() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("new/home");
    let images = home.join("images");
    fs::create_dir_all(home.join("lost+found")).unwrap();
    make_home(&home).unwrap();
    make_home(&home).unwrap();
    fs::create_dir(&images).unwrap();
    make_home(&home).unwrap();
    assert!(opened(images.to_str().unwrap(), &home).unwrap().is_some());
    // A user's own directory, and one into which a home was copied.
    for text in ["", "7\n"] {
        fs::write(home.join(FILE), text).unwrap();
        let why = opened(images.to_str().unwrap(), &home).unwrap_err().to_string();
        assert!(why.ends_with("bears no mark of tare's, so it was left unchanged"), "{why}");
        let why = make_home(&home).unwrap_err().to_string();
        assert!(why.contains("holds what tare did not make"), "{why}");
    }
    fs::remove_dir(&images).unwrap();
    make_home(&home).unwrap();
}
