//! Finding and opening of targets, outside of the sampling thread.

pub mod cgroup;
pub mod hierarchy;
pub mod host;
pub mod mailbox;
pub mod process;
pub mod registry;
pub mod spec;
pub mod watcher;

pub use mailbox::Mailbox;
pub use registry::Registry;
pub use spec::{CgroupPlace, Spec};
