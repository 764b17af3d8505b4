//! `tare-guest`: everything that runs in tare's virtual machines, except for the kernel and the task.
//!
//! It is process 1 of the machine's initramfs. Under other names, it is the few programs that are
//! needed to observe the task from inside (`launch`, `readlink`, `sha256sum`). What it does, and why
//! it is not an init system: docs/decisions/0017-process-1-of-our-own.md.

mod boot;
mod bytes;
mod container;
mod counters;
mod digest;
mod exits;
mod launch;
mod line;
mod machine;
mod network;
mod places;
mod ports;
mod root;
mod task;
mod tools;

use std::path::Path;

/// Error in one line, for users.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Path of the program in an initramfs, by the kernel's convention.
const OWN_PATH: &str = "/init";

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let name = Path::new(&words[0]).file_name().map_or("", |name| name.to_str().unwrap_or(""));
    let code = match (name, words.get(1).map(String::as_str)) {
        ("readlink", _) => tools::readlink(&words[1..]),
        ("sha256sum", _) => tools::sha256sum(&words[1..]),
        (_, Some("launch")) => launch::launch(),
        (_, Some("serve")) => machine::serve(),
        _ if std::process::id() == 1 => boot::process_1(),
        _ => {
            eprintln!(
                "tare-guest is process 1 of a virtual machine that tare makes, and of no use elsewhere"
            );
            2
        }
    };
    std::process::exit(code);
}
