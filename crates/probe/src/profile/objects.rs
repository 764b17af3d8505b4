//! Program or library that contains an address of a process, from `/proc/PID/maps`.

use std::fs;

use super::frames::Frames;

/// Executable mappings of processes.
#[derive(Default)]
pub(super) struct Objects {
    mapped: Vec<Mapped>,
    /// Turn in which they were read: for an unknown address, they are read again once per turn.
    read_in: Option<u64>,
}

struct Mapped {
    from: u64,
    to: u64,
    frame: u32,
}

impl Objects {
    /// Frame for the object that contains an address.
    pub(super) fn frame(&mut self, pid: u32, address: u64, turn: u64, frames: &mut Frames) -> u32 {
        if let Some(frame) = self.find(address) {
            return frame;
        }
        if self.read_in != Some(turn) {
            self.read_in = Some(turn);
            // The old ones of a process that has ended are kept.
            if let Ok(text) = fs::read_to_string(format!("/proc/{pid}/maps")) {
                self.mapped = parse(&text, frames);
            }
        }
        self.find(address).unwrap_or_else(|| frames.intern("[unknown]"))
    }

    fn find(&self, address: u64) -> Option<u32> {
        let after = self.mapped.partition_point(|mapped| mapped.from <= address);
        let mapped = &self.mapped[after.checked_sub(1)?];
        (address < mapped.to).then_some(mapped.frame)
    }
}

/// Parses lines `from-to perms offset dev inode path` (`proc_pid_maps(5)`), which are sorted by address.
fn parse(text: &str, frames: &mut Frames) -> Vec<Mapped> {
    let of = |line: &str, frames: &mut Frames| {
        let mut words = line.splitn(6, ' ');
        let (from, to) = words.next()?.split_once('-')?;
        if !words.next()?.contains('x') {
            return None;
        }
        let path = words.nth(3).unwrap_or("").trim();
        let frame = frames.intern(&name(path));
        let number = |text| u64::from_str_radix(text, 16).ok();
        Some(Mapped { from: number(from)?, to: number(to)?, frame })
    };
    text.lines().filter_map(|line| of(line, frames)).collect()
}

/// The file's name in brackets, as perf(1) shows what it has no symbols for; code without a file is compiled at run time.
fn name(path: &str) -> String {
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    match path.rsplit('/').next().unwrap_or("") {
        "" => "[compiled]".to_owned(),
        name if name.starts_with('[') => name.to_owned(),
        name => format!("[{}]", name.replace(';', ":")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
55d000000000-55d000100000 r--p 00000000 fd:00 131 /usr/sbin/mariadbd
55d000100000-55d000900000 r-xp 00100000 fd:00 131 /usr/sbin/mariadbd
7f0000000000-7f0000200000 r-xp 00000000 00:00 0 
7f0000400000-7f0000500000 r-xp 00028000 fd:00 133                        /usr/lib/libc.so.6 (deleted)
7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0                          [vdso]
";

    #[test]
    fn an_address_is_told_by_the_file_that_is_mapped_there() {
        let mut frames = Frames::default();
        let mapped = parse(MAPS, &mut frames);
        let mut objects = Objects { mapped, read_in: Some(1) };
        let mut name = |address| {
            let frame = objects.frame(0, address, 1, &mut frames);
            frames.name(frame).to_owned()
        };
        assert_eq!(name(0x55d0_0010_0010), "[mariadbd]");
        assert_eq!(name(0x7f00_0000_0001), "[compiled]");
        assert_eq!(name(0x7f00_0040_0001), "[libc.so.6]");
        assert_eq!(name(0x7ffd_0000_0001), "[vdso]");
        assert_eq!(name(0x55d0_0000_0001), "[unknown]", "not executable");
        assert_eq!(name(0x10), "[unknown]");
    }
}
