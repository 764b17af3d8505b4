//! Process 1: it mounts pseudo file systems, loads modules, starts the server of the line, and reaps processes.

use std::fs;
use std::io;
use std::process::Command;

use rustix::mount::{MountFlags, mount};
use rustix::system::{RebootCommand, finit_module, reboot};

use crate::{Failure, OWN_PATH, exits};

const PLAIN: MountFlags = MountFlags::NOSUID.union(MountFlags::NODEV).union(MountFlags::NOEXEC);
const MODULES: &str = "/modules";

/// Does not return while the machine runs: its end would be a kernel panic.
pub(crate) fn process_1() -> i32 {
    if let Err(failure) = prepare() {
        eprintln!("tare-guest: {failure}");
    } else if let Err(failure) = look_after() {
        eprintln!("tare-guest: {failure}");
    }
    power_off();
    1
}

/// Powers off the machine, which ends QEMU.
pub(crate) fn power_off() {
    rustix::fs::sync();
    if let Err(error) = reboot(RebootCommand::PowerOff) {
        eprintln!("tare-guest: the machine cannot be switched off: {error}");
    }
}

fn prepare() -> Result<(), Failure> {
    let mounts = [
        ("proc", "/proc", PLAIN),
        ("sysfs", "/sys", PLAIN),
        ("devtmpfs", "/dev", MountFlags::NOSUID),
        ("cgroup2", "/sys/fs/cgroup", PLAIN),
    ];
    for (fstype, target, flags) in mounts {
        fs::create_dir_all(target)?;
        mount(fstype, target, fstype, flags, None)
            .map_err(|error| format!("{fstype} cannot be mounted: {error}"))?;
    }
    load_modules()?;
    trial();
    Ok(())
}

/// Loads modules in the order of their names, which were chosen for that.
fn load_modules() -> Result<(), Failure> {
    let mut paths: Vec<_> = fs::read_dir(MODULES)?.collect::<io::Result<Vec<_>>>()?;
    paths.sort_by_key(fs::DirEntry::file_name);
    for entry in paths {
        let file = fs::File::open(entry.path())?;
        match finit_module(&file, c"", 0) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => {
                return Err(format!("{} cannot be loaded: {error}", entry.path().display()).into());
            }
        }
    }
    Ok(())
}

/// For a machine that only reports what runs it, or what that takes: prints it and powers off.
fn trial() {
    let asked = fs::read_to_string("/proc/cmdline").unwrap_or_default();
    for word in asked.split_whitespace() {
        match word {
            "tare.trial" => println!("tare-guest: trial: run by {}", hypervisor()),
            "tare.exits" => println!("tare-guest: exits: {}", exits::figures(&hypervisor())),
            _ => continue,
        }
        power_off();
    }
}

/// Signature of the hypervisor or emulator, in CPUID leaf 0x40000000 (Documentation/virt/kvm/x86/cpuid.rst).
#[cfg(target_arch = "x86_64")]
pub(crate) fn hypervisor() -> String {
    let leaf = std::arch::x86_64::__cpuid(0x4000_0000);
    let bytes: Vec<u8> =
        [leaf.ebx, leaf.ecx, leaf.edx].iter().flat_map(|word| word.to_le_bytes()).collect();
    String::from_utf8_lossy(&bytes).trim_end_matches('\0').to_string()
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn hypervisor() -> String {
    String::new()
}

/// Reaps orphaned processes; when the server of the line ends, so does the machine.
fn look_after() -> Result<(), Failure> {
    let server = Command::new(OWN_PATH).arg("serve").env_clear().spawn()?.id();
    loop {
        match rustix::process::wait(rustix::process::WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid.as_raw_nonzero().get() as u32 == server => {
                if status.exit_status() == Some(0) {
                    return Ok(());
                }
                return Err(format!("who served the line ended: {status:?}").into());
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
