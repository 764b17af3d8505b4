//! Unambiguous names of processes: pid, start time and boot, as `PID:TICKS:BOOT`.

use std::fs;
use std::io;
use std::sync::OnceLock;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Identity {
    pub(crate) pid: u32,
    pub(crate) started_ticks: u64,
}

/// The kernel's id of this boot; empty if it cannot be read.
pub(crate) fn boot_id() -> &'static str {
    static BOOT: OnceLock<String> = OnceLock::new();
    BOOT.get_or_init(|| {
        fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
    })
}

impl Identity {
    /// Identity of the process that has this pid now.
    ///
    /// # Errors
    /// There is no such process.
    pub(crate) fn of(pid: u32) -> io::Result<Self> {
        let (_, started_ticks) = stat(pid)?;
        Ok(Self { pid, started_ticks })
    }

    /// Identity of this process.
    ///
    /// # Errors
    /// It cannot be read from /proc.
    pub(crate) fn own() -> io::Result<Self> {
        Self::of(std::process::id())
    }

    /// Parses an identity; `None` unless it is of a process of this boot.
    pub(crate) fn parse(ident: &str) -> Option<Self> {
        let mut parts = ident.splitn(3, ':');
        let (pid, ticks, boot) = (parts.next()?, parts.next()?, parts.next()?);
        (boot == boot_id())
            .then_some(Self { pid: pid.parse().ok()?, started_ticks: ticks.parse().ok()? })
    }

    /// Whether exactly this process still runs; a zombie does not.
    pub(crate) fn alive(&self) -> bool {
        stat(self.pid)
            .is_ok_and(|(state, ticks)| ticks == self.started_ticks && !"ZX".contains(state))
    }

    pub(crate) fn ident(&self) -> String {
        format!("{}:{}:{}", self.pid, self.started_ticks, boot_id())
    }
}

/// State and start time: fields 3 and 22 of `/proc/PID/stat`, counted from the bracket after the command.
fn stat(pid: u32) -> io::Result<(char, u64)> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat"))?)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "/proc/PID/stat cannot be read"))
}

/// Pid of the parent; `None` if the process is gone.
pub(crate) fn parent_of(pid: u32) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    text.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

fn parse_stat(text: &str) -> Option<(char, u64)> {
    let fields: Vec<&str> = text.rsplit_once(") ")?.1.split(' ').collect();
    Some((fields.first()?.chars().next()?, fields.get(19)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_may_hold_blanks_and_brackets() {
        let text = "7 (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20\n";
        assert_eq!(parse_stat(text), Some(('S', 4242)));
    }

    #[test]
    fn a_process_is_known_by_its_start_and_its_boot() {
        let own = Identity::own().unwrap();
        assert!(own.alive());
        assert_eq!(Identity::parse(&own.ident()), Some(own.clone()));
        assert!(!Identity { started_ticks: own.started_ticks + 1, ..own }.alive());
        assert_eq!(Identity::parse("1:2:another-boot"), None);
        assert_eq!(Identity::parse("1"), None);
    }
}
