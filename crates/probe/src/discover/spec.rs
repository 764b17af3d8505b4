//! What the user asked to be sampled.

/// Where a control group is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CgroupPlace {
    /// Below the root of every hierarchy, such as `/docker/ID`.
    Path(String),
    /// That of a process, which may differ from hierarchy to hierarchy.
    OfProcess(u32),
}

impl std::fmt::Display for CgroupPlace {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Path(path) => write!(formatter, "at {path}"),
            Self::OfProcess(pid) => write!(formatter, "of process {pid}"),
        }
    }
}

/// One target as named on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spec {
    Cgroup {
        name: String,
        place: CgroupPlace,
    },
    /// Each child of a control group, as they come and go, named after its directory, or by its path
    /// where another has that name.
    Children {
        path: String,
    },
    /// A process; with `tree`, its descendants too.
    Process {
        name: String,
        pid: u32,
        tree: bool,
    },
    /// The network namespace of a process.
    Interfaces {
        name: String,
        pid: u32,
    },
}

impl Spec {
    /// What messages call it.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Cgroup { name, .. }
            | Self::Process { name, .. }
            | Self::Interfaces { name, .. } => name,
            Self::Children { path } => path,
        }
    }
}
