//! Mount points of control groups.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::spec::CgroupPlace;

/// Name of the v2 hierarchy among the controllers.
pub const UNIFIED: &str = "";

/// Controller → mount point; the v2 hierarchy under [`UNIFIED`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hierarchies {
    mounts: BTreeMap<String, PathBuf>,
}

impl Hierarchies {
    /// Hierarchies of this machine.
    #[must_use]
    pub fn of_host() -> Self {
        Self::parse(&std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default())
    }

    /// Reads `mountinfo` (proc(5)): the fields after ` - ` are type, source and super options.
    #[must_use]
    pub fn parse(mountinfo: &str) -> Self {
        let mut mounts = BTreeMap::new();
        for line in mountinfo.lines() {
            let Some((before, after)) = line.split_once(" - ") else { continue };
            let Some(mount_point) = before.split(' ').nth(4) else { continue };
            let mut after = after.split(' ');
            let (kind, options) = (after.next(), after.nth(1).unwrap_or(""));
            match kind {
                Some("cgroup2") => {
                    mounts.entry(UNIFIED.to_owned()).or_insert_with(|| PathBuf::from(mount_point));
                }
                Some("cgroup") => {
                    for option in
                        options.split(',').filter(|option| !matches!(*option, "rw" | "ro"))
                    {
                        let mount = PathBuf::from(mount_point);
                        mounts.entry(option.to_owned()).or_insert(mount);
                    }
                }
                _ => {}
            }
        }
        Self { mounts }
    }

    /// `v1`, `hybrid`, `v2` or `none`.
    #[must_use]
    pub fn layout(&self) -> &'static str {
        let has_v1 =
            ["cpuacct", "memory", "blkio"].iter().any(|name| self.mounts.contains_key(*name));
        match (has_v1, self.mounts.contains_key(UNIFIED)) {
            (true, true) => "hybrid",
            (true, false) => "v1",
            (false, true) => "v2",
            (false, false) => "none",
        }
    }

    /// Directory of a control group in the hierarchy of each controller, if it exists.
    #[must_use]
    pub fn directories(&self, place: &CgroupPlace) -> Directories {
        let found = match place {
            CgroupPlace::Path(path) => {
                let below = self.below_root(path);
                self.mounts
                    .iter()
                    .map(|(name, mount)| (name.clone(), mount.join(below)))
                    .collect::<BTreeMap<_, _>>()
            }
            CgroupPlace::OfProcess(pid) => {
                let lines =
                    std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
                self.of_process(&lines)
            }
        };
        Directories { found: found.into_iter().filter(|(_, path)| path.is_dir()).collect() }
    }

    /// Reads `/proc/PID/cgroup`: `number:controllers:path`.
    fn of_process(&self, lines: &str) -> BTreeMap<String, PathBuf> {
        let mut found = BTreeMap::new();
        for line in lines.lines() {
            let mut parts = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
            for controller in controllers.split(',') {
                if let Some(mount) = self.mounts.get(controller) {
                    found.insert(controller.to_owned(), mount.join(path.trim_start_matches('/')));
                }
            }
        }
        found
    }

    /// Path below the mount point: `a` for `/sys/fs/cgroup/memory/a`.
    fn below_root<'a>(&self, path: &'a str) -> &'a str {
        let stripped = self
            .mounts
            .values()
            .filter_map(|mount| Path::new(path).strip_prefix(mount).ok()?.to_str())
            .min_by_key(|rest| rest.len());
        stripped.unwrap_or(path).trim_start_matches('/')
    }
}

/// The directories of one control group, by controller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directories {
    found: BTreeMap<String, PathBuf>,
}

impl Directories {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Directory of a v1 controller, or of v2 for [`UNIFIED`].
    #[must_use]
    pub fn of(&self, controller: &str) -> Option<&Path> {
        self.found.get(controller).map(PathBuf::as_path)
    }

    pub fn all(&self) -> impl Iterator<Item = &Path> {
        self.found.values().map(PathBuf::as_path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
33 31 0:30 / /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup rw,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
38 31 0:35 / /sys/fs/cgroup/blkio rw,relatime - cgroup cgroup rw,blkio
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";
    const V2: &str =
        "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
    const JOINED: &str =
        "33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n";

    #[test]
    fn layouts_are_told_apart() {
        assert_eq!(Hierarchies::parse(HYBRID).layout(), "hybrid");
        assert_eq!(Hierarchies::parse(V2).layout(), "v2");
        assert_eq!(Hierarchies::parse(JOINED).layout(), "v1");
        assert_eq!(Hierarchies::parse("").layout(), "none");
    }

    #[test]
    fn controllers_that_share_a_mount_share_a_directory() {
        let hierarchies = Hierarchies::parse(JOINED);
        assert_eq!(hierarchies.mounts["cpu"], hierarchies.mounts["cpuacct"]);
    }

    #[test]
    fn a_full_path_names_the_same_group_in_every_hierarchy() {
        let hierarchies = Hierarchies::parse(HYBRID);
        assert_eq!(hierarchies.below_root("/sys/fs/cgroup/memory/docker/ab"), "docker/ab");
        assert_eq!(hierarchies.below_root("/docker/ab"), "docker/ab");
        assert_eq!(Hierarchies::parse(V2).below_root("/sys/fs/cgroup/docker/ab"), "docker/ab");
    }

    #[test]
    fn a_process_may_be_elsewhere_in_each_hierarchy() {
        let lines = "9:name=systemd:/\n4:memory:/process_api/f4\n2:cpuacct:/x\n0::/u\n";
        let found = Hierarchies::parse(HYBRID).of_process(lines);
        assert_eq!(found["memory"], Path::new("/sys/fs/cgroup/memory/process_api/f4"));
        assert_eq!(found["cpuacct"], Path::new("/sys/fs/cgroup/cpuacct/x"));
        assert_eq!(found[UNIFIED], Path::new("/sys/fs/cgroup/unified/u"));
    }
}
