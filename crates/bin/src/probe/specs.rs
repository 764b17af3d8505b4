//! Parsing of targets in options and files.

use tare_probe::discover::{CgroupPlace, Spec};

/// Parses a file of targets: on each line a kind and the value of the option of that name.
pub(crate) fn targets(text: &str) -> Result<Vec<Spec>, String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(|line| target(line).map_err(|error| format!("{line:?}: {error}"))).collect()
}

fn target(line: &str) -> Result<Spec, String> {
    match line.split_once(' ') {
        Some(("cgroup", rest)) => cgroup(rest),
        Some(("pid", rest)) => process(rest),
        Some(("netns", rest)) => interfaces(rest),
        _ => Err("give cgroup, pid or netns, a space, and NAME=…".to_owned()),
    }
}

fn named(text: &str) -> Result<(String, &str), String> {
    match text.split_once('=') {
        Some((name, rest)) if !name.is_empty() && !rest.is_empty() => Ok((name.to_owned(), rest)),
        _ => Err("give NAME=…, such as db=/docker/4f0c".to_owned()),
    }
}

fn pid_of(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("{text}: not a process id"))
}

pub(crate) fn cgroup(text: &str) -> Result<Spec, String> {
    let (name, rest) = named(text)?;
    let place = match rest.strip_prefix("pid:") {
        Some(pid) => CgroupPlace::OfProcess(pid_of(pid)?),
        None => CgroupPlace::Path(rest.to_owned()),
    };
    Ok(Spec::Cgroup { name, place })
}

pub(crate) fn process(text: &str) -> Result<Spec, String> {
    let (name, rest) = named(text)?;
    let (pid, tree) = match rest.strip_suffix(",tree") {
        Some(pid) => (pid, true),
        None => (rest, false),
    };
    Ok(Spec::Process { name, pid: pid_of(pid)?, tree })
}

pub(crate) fn interfaces(text: &str) -> Result<Spec, String> {
    let (name, rest) = named(text)?;
    Ok(Spec::Interfaces { name, pid: pid_of(rest)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_named() {
        let spec = cgroup("db=/docker/ab").expect("named");
        let place = CgroupPlace::Path("/docker/ab".to_owned());
        assert_eq!(spec, Spec::Cgroup { name: "db".to_owned(), place });
        let spec = process("engine=12,tree").expect("named");
        assert_eq!(spec, Spec::Process { name: "engine".to_owned(), pid: 12, tree: true });
        assert!(cgroup("/docker/ab").is_err());
        assert!(process("engine=").is_err());
        assert!(interfaces("db=x").is_err());
    }

    #[test]
    fn a_file_names_targets_as_the_options_do() {
        let found = targets("cgroup db=/docker/ab\n\npid db=12,tree\nnetns db=12\n");
        let place = CgroupPlace::Path("/docker/ab".to_owned());
        let name = || "db".to_owned();
        let expected = vec![
            Spec::Cgroup { name: name(), place },
            Spec::Process { name: name(), pid: 12, tree: true },
            Spec::Interfaces { name: name(), pid: 12 },
        ];
        assert_eq!(found, Ok(expected));
        assert!(targets("cgroup db=/x\nthread db=1").is_err());
    }
}
