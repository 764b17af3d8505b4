//! Virtio-serial ports, by their names in QEMU's options.

use std::fs::{self, File, OpenOptions};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::Failure;

const APPEARS_WITHIN: Duration = Duration::from_secs(20);
const PORTS: &str = "/sys/class/virtio-ports";

/// Opens a port for reading and writing; it may take a moment to appear after its driver's module.
///
/// # Errors
/// The machine has no port of that name, or it is in use.
pub(crate) fn open(name: &str) -> Result<File, Failure> {
    let began = Instant::now();
    loop {
        if let Some(device) = find(name) {
            let path = format!("/dev/{device}");
            return Ok(OpenOptions::new()
                .read(true)
                .write(true)
                .open(&path)
                .map_err(|error| format!("{path}: {error}"))?);
        }
        if began.elapsed() > APPEARS_WITHIN {
            return Err(format!("the machine has no port {name}").into());
        }
        sleep(Duration::from_millis(5));
    }
}

fn find(name: &str) -> Option<String> {
    fs::read_dir(PORTS).ok()?.flatten().find_map(|entry| {
        let port = fs::read_to_string(entry.path().join("name")).ok()?;
        (port.trim() == name).then(|| entry.file_name().to_string_lossy().into_owned())
    })
}
