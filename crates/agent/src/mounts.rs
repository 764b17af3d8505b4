//! Mount points of this process's namespace.

use std::collections::BTreeSet;
use std::fs;
use std::io;

/// Mount points of file systems of the wanted types, parents first.
pub(crate) fn mounts(wanted: impl Fn(&str) -> bool) -> io::Result<BTreeSet<String>> {
    Ok(parse_mounts(&fs::read_to_string("/proc/self/mountinfo")?, wanted))
}

fn parse_mounts(mountinfo: &str, wanted: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let lines = mountinfo.lines().filter_map(|line| {
        let (about, kind) = line.split_once(" - ")?;
        wanted(kind.split(' ').next()?).then(|| about.split(' ').nth(4).map(unescaped))?
    });
    lines.collect()
}

/// Spaces, tabs, newlines and backslashes are three octal digits there (`proc_pid_mountinfo(5)`).
fn unescaped(text: &str) -> String {
    let (mut plain, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('\\') {
        plain.push_str(before);
        if let Some(byte) = after.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            plain.push(byte.into());
            rest = &after[3..];
        } else {
            plain.push('\\');
            rest = after;
        }
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_read_with_their_blanks() {
        let text = "1 2 0:1 / /a\\040b rw - tmpfs x rw\n1 2 0:1 / /sys/fs/cgroup rw shared:1 - cgroup2 x rw\n";
        assert_eq!(
            parse_mounts(text, |kind| kind == "tmpfs").into_iter().collect::<Vec<_>>(),
            ["/a b"]
        );
    }
}
