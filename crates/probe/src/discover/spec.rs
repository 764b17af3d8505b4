//! Targets that the user has specified.

/// Place of a control group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CgroupPlace {
    /// Path below the root of every hierarchy, such as `/docker/ID`.
    Path(String),
    /// Group of a process, which may differ between hierarchies.
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

/// One target on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spec {
    Cgroup {
        name: String,
        place: CgroupPlace,
    },
    /// All children of a control group, also future ones. Each is named after its directory, or by
    /// its path if another has that name.
    Children {
        path: String,
    },
    /// A process; with `tree`, also its descendants.
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
    /// Name in messages.
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
