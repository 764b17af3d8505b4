//! The target that a sample belongs to, by what `/proc` says when its process is first sampled.

use std::fs;

use crate::discover::{CgroupPlace, Spec};
use crate::parse::pid_stat;

/// Facts about a process, or about the program that it was before execve(2).
#[derive(Clone, Debug, Default)]
pub(super) struct Process {
    pub(super) pid: u32,
    pub(super) command: String,
    pub(super) is_kernel: bool,
    /// Its parent, grandparent, and so on.
    pub(super) ancestors: Vec<u32>,
    cgroups: String,
}

/// Names for samples of no target.
pub(super) const KERNEL: &str = "kernel";
pub(super) const SOFTIRQ: &str = "softirq";
pub(super) const IDLE: &str = "idle";
pub(super) const ENGINE: &str = "engine";
pub(super) const MONITOR: &str = "tare-probe";
pub(super) const OTHER: &str = "other";

/// Programs of container engines, with names cut to 15 characters by the kernel.
const OF_ENGINES: [&str; 11] = [
    "dockerd",
    "docker-proxy",
    "containerd",
    "containerd-shim",
    "runc",
    "crun",
    "podman",
    "conmon",
    "pasta",
    "slirp4netns",
    "rootlessport",
];

const PF_KTHREAD: u64 = 0x0020_0000;

impl Process {
    /// Reads a process from `/proc`; only the pid is known of one that has ended.
    #[must_use]
    pub(super) fn of_host(pid: u32) -> Self {
        let Ok(stat) = fs::read(format!("/proc/{pid}/stat")) else {
            return Self { pid, command: "[ended]".to_owned(), ..Self::default() };
        };
        let command = pid_stat::command(&stat).map(String::from_utf8_lossy).unwrap_or_default();
        Self {
            pid,
            command: command.into_owned(),
            is_kernel: pid_stat::flags(&stat).is_some_and(|flags| flags & PF_KTHREAD != 0),
            ancestors: ancestors(&stat),
            cgroups: fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default(),
        }
    }
}

fn ancestors(stat: &[u8]) -> Vec<u32> {
    const MOST: usize = 64;
    let mut found = Vec::new();
    let mut parent = pid_stat::parent(stat);
    while let Some(pid) = parent.and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid > 0) {
        found.push(pid);
        if found.len() == MOST {
            break;
        }
        parent =
            fs::read(format!("/proc/{pid}/stat")).ok().and_then(|stat| pid_stat::parent(&stat));
    }
    found
}

/// Targets, each with what identifies its samples.
pub(super) struct Subjects {
    own_pid: u32,
    own_cgroups: String,
    targets: Vec<Target>,
}

enum Target {
    Process {
        name: String,
        pid: u32,
        tree: bool,
    },
    /// Lines of `/proc/PID/cgroup` that differ from tare-probe's own; only these tell groups apart.
    Group {
        name: String,
        paths: Vec<(String, String)>,
    },
}

impl Subjects {
    #[must_use]
    pub(super) fn of_host() -> Self {
        let own_cgroups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        Self { own_pid: std::process::id(), own_cgroups, targets: Vec::new() }
    }

    /// Adds targets. Network namespaces and children of groups have no samples.
    pub(super) fn add(&mut self, specs: &[Spec]) {
        for spec in specs {
            match spec {
                Spec::Process { name, pid, tree } => {
                    let target = Target::Process { name: name.clone(), pid: *pid, tree: *tree };
                    self.targets.push(target);
                }
                Spec::Cgroup { name, place: CgroupPlace::OfProcess(pid) } => {
                    let groups =
                        fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
                    let paths = apart(&groups, &self.own_cgroups);
                    self.targets.push(Target::Group { name: name.clone(), paths });
                }
                Spec::Cgroup { name, place: CgroupPlace::Path(path) } => {
                    let paths = vec![(String::new(), path.clone())];
                    self.targets.push(Target::Group { name: name.clone(), paths });
                }
                Spec::Children { .. } | Spec::Interfaces { .. } => {}
            }
        }
    }

    /// Name for samples of a process. A target that is the process itself comes before the group
    /// that it is in, and that before a tree of processes.
    #[must_use]
    pub(super) fn name(&self, process: &Process) -> &str {
        if process.is_kernel {
            return if process.command.starts_with("ksoftirqd") { SOFTIRQ } else { KERNEL };
        }
        if process.pid == self.own_pid {
            return MONITOR;
        }
        let rank = |target: &&Target| target.claims(process);
        let best = self.targets.iter().filter_map(|target| Some((rank(&target)?, target)));
        if let Some((_, target)) = best.min_by_key(|(rank, _)| *rank) {
            return target.name();
        }
        match process.command.as_str() {
            MONITOR => MONITOR,
            command if OF_ENGINES.contains(&command) => ENGINE,
            _ => OTHER,
        }
    }
}

impl Target {
    fn name(&self) -> &str {
        match self {
            Self::Process { name, .. } | Self::Group { name, .. } => name,
        }
    }

    /// How closely it matches the process: 0 is closest.
    fn claims(&self, process: &Process) -> Option<usize> {
        match self {
            Self::Process { pid, .. } if *pid == process.pid => Some(0),
            Self::Process { pid, tree: true, .. } => {
                // The nearest of several ancestors: a client may be started by what is a target itself.
                process.ancestors.iter().position(|ancestor| ancestor == pid).map(|at| 2 + at)
            }
            Self::Group { paths, .. } => is_below(&process.cgroups, paths).then_some(1),
            Self::Process { .. } => None,
        }
    }
}

/// Lines of `/proc/PID/cgroup` that differ from another's and are not a root, as (controllers, path).
fn apart(groups: &str, others: &str) -> Vec<(String, String)> {
    groups
        .lines()
        .filter(|line| !others.lines().any(|other| other == *line))
        .filter_map(split)
        .filter(|(_, path)| *path != "/")
        .map(|(controllers, path)| (controllers.to_owned(), path.to_owned()))
        .collect()
}

fn split(line: &str) -> Option<(&str, &str)> {
    let mut parts = line.splitn(3, ':').skip(1);
    Some((parts.next()?, parts.next()?))
}

/// Whether all of these paths are a process's, or above it. `""` as controllers stands for any.
fn is_below(cgroups: &str, paths: &[(String, String)]) -> bool {
    let is_in = |(controllers, path): &(String, String)| {
        cgroups.lines().filter_map(split).any(|(of, at)| {
            (controllers.is_empty() || of == controllers)
                && at
                    .strip_prefix(path.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    };
    !paths.is_empty() && paths.iter().all(is_in)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "4:memory:/process_api/f4\n2:cpuacct:/\n0::/\n";

    fn subjects(targets: Vec<Target>) -> Subjects {
        Subjects { own_pid: 99, own_cgroups: OWN.to_owned(), targets }
    }

    fn process(pid: u32, command: &str, ancestors: &[u32], cgroups: &str) -> Process {
        Process {
            pid,
            command: command.to_owned(),
            is_kernel: false,
            ancestors: ancestors.to_vec(),
            cgroups: cgroups.to_owned(),
        }
    }

    fn group(name: &str, groups: &str) -> Target {
        Target::Group { name: name.to_owned(), paths: apart(groups, OWN) }
    }

    #[test]
    fn a_group_is_told_by_what_is_not_tare_probes_own() {
        let groups = "4:memory:/process_api/f4\n2:cpuacct:/tare-1/ab\n0::/\n";
        let known = subjects(vec![group("sut", groups)]);
        assert_eq!(known.name(&process(5, "mariadbd", &[1], groups)), "sut");
        let below = groups.replace("/tare-1/ab", "/tare-1/ab/init");
        assert_eq!(known.name(&process(6, "sh", &[1], &below)), "sut");
        let beside = groups.replace("/tare-1/ab", "/tare-1/abc");
        assert_eq!(known.name(&process(7, "sh", &[1], &beside)), OTHER);
        assert_eq!(known.name(&process(8, "sh", &[1], OWN)), OTHER);
    }

    #[test]
    fn a_group_that_is_not_apart_claims_nobody() {
        let known = subjects(vec![group("sut", OWN)]);
        assert_eq!(known.name(&process(8, "sh", &[1], OWN)), OTHER);
    }

    #[test]
    fn a_process_comes_before_its_group_and_the_nearest_tree_before_others() {
        let of = |name: &str, pid, tree| Target::Process { name: name.to_owned(), pid, tree };
        let groups = "2:cpuacct:/x\n";
        let known = subjects(vec![
            group("sut", groups),
            of("proxy", 7, false),
            of("tare", 3, true),
            of("client", 4, true),
        ]);
        assert_eq!(known.name(&process(7, "docker-proxy", &[1], groups)), "proxy");
        assert_eq!(known.name(&process(8, "sysbench", &[4, 3, 1], OWN)), "client");
        assert_eq!(known.name(&process(9, "sh", &[3, 1], OWN)), "tare");
    }

    #[test]
    fn what_no_target_claims_is_engine_kernel_monitor_or_other() {
        let known = subjects(Vec::new());
        assert_eq!(known.name(&process(7, "containerd-shim", &[], OWN)), ENGINE);
        assert_eq!(known.name(&process(99, "tare-probe", &[], OWN)), MONITOR);
        assert_eq!(known.name(&process(7, "bash", &[], OWN)), OTHER);
        let kernel = Process { is_kernel: true, ..process(17, "ksoftirqd/0", &[2], OWN) };
        assert_eq!(known.name(&kernel), SOFTIRQ);
        let kernel = Process { is_kernel: true, ..process(18, "kworker/0:1", &[2], OWN) };
        assert_eq!(known.name(&kernel), KERNEL);
    }
}
